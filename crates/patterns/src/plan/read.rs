//! How the replies of planner and steps are read.

use super::mend::{GOALS, mend};
use super::{PlanDecision, PlanRules, StepAside};
use crate::choice::{option_named, text};
use crate::reader::ReadReply;
use serde_json::{Map, Value};
use trellis_domain::counted;
use trellis_domain::decision::option::{KEEP, NO_TOOL, REVISE};
use trellis_domain::decision::{DecidedBy, Decision};
use trellis_domain::document::Document;
use trellis_domain::record::Reading;
use trellis_domain::reply::json_in;

const PLAN_FORM: &str = r#"reply with {"steps": [{"goal": "...", "tool_hint": "...", "depends_on": [0]}]}"#;
const STEP_FORM: &str =
    r#"reply with one JSON object: {"tool": "...", "arguments": {}, "answer": "...", "surprising": false}"#;
const REVISION_FORM: &str = r#"reply with {"decision": "keep" or "revise", "reason": "...", "steps": []}"#;
/// Longer than any name: a reply of prose is quoted only so far.
const QUOTED: usize = 80;

pub(super) fn read_plan(raw: &str, rules: &PlanRules, offered: Vec<Decision>) -> ReadReply {
    let value = match json_in(raw) {
        Ok(value) => value,
        Err(reason) => return ReadReply::unusable(format!("{reason}; {PLAN_FORM}"), offered),
    };
    let Some(entries) = entries_in(&value) else {
        return ReadReply::unusable(format!("the reply has no list of steps; {PLAN_FORM}"), offered);
    };
    let (steps, repairs) = mend(entries, rules);
    if steps.is_empty() {
        return ReadReply::unusable(format!("the plan has no step with a goal; {PLAN_FORM}"), offered);
    }
    let thought = format!("Created plan with {} steps", steps.len());
    ReadReply::new(&thought, Reading::decided(PlanDecision { steps: Some(steps) }), offered).with_repairs(repairs)
}

/// The list of steps, whatever it is wrapped in; a step alone is a list of one.
fn entries_in(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(entries) => match entries.as_slice() {
            [Value::Object(only)] if only.contains_key("steps") || only.contains_key("plan") => {
                entries_in(entries.first()?)
            }
            entries => Some(entries),
        },
        Value::Object(members) => {
            let inside = ["steps", "plan"].iter().find_map(|name| entries_in(members.get(*name)?));
            let is_step = || GOALS.iter().any(|name| members.contains_key(*name)) && !members.contains_key("decision");
            inside.or_else(|| is_step().then(|| std::slice::from_ref(value)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

pub(super) fn read_revision(raw: &str, rules: &PlanRules, mut offered: Vec<Decision>) -> ReadReply {
    let Some(decision) = offered.first_mut() else { return ReadReply::unusable("nothing was offered", offered) };
    match revision_in(raw, rules, decision) {
        Ok((thought, planning, repairs)) => {
            ReadReply::new(&thought, Reading::decided(planning), offered).with_repairs(repairs)
        }
        Err(reason) => {
            decision.rejected = Document::stored(raw.trim());
            ReadReply::unusable(reason, offered)
        }
    }
}

/// What is said about it, what it is, and what had to be put right.
type Revision = (String, PlanDecision, Vec<String>);

fn revision_in(raw: &str, rules: &PlanRules, decision: &mut Decision) -> Result<Revision, String> {
    let reply = json_in(raw).map_err(|reason| format!("{reason}; {REVISION_FORM}"))?;
    let outer = match reply.as_array().map(Vec::as_slice) {
        Some([only]) => only,
        Some(_) | None => &reply,
    };
    let (steps, repairs) = entries_in(&reply).map(|entries| mend(entries, rules)).unwrap_or_default();
    let named = text(outer, &["decision"]).unwrap_or_default();
    let chosen = match option_named(&decision.options, &named) {
        Some(chosen) => chosen,
        None if named.is_empty() && !steps.is_empty() => REVISE.to_owned(),
        None => return Err(format!("the reply does not say whether to keep or to revise the plan; {REVISION_FORM}")),
    };
    let keep = chosen == KEEP;
    if !keep && steps.is_empty() {
        return Err(format!("a revised plan needs at least one step with a goal; {REVISION_FORM}"));
    }
    decision.rationale = text(outer, &["reason", "rationale", "reasoning"]).and_then(Document::stored);
    decision.decided_by = DecidedBy::Model;
    decision.chosen = vec![chosen];
    Ok(if keep {
        let repairs =
            if steps.is_empty() { Vec::new() } else { vec!["the plan is kept, new steps were ignored".into()] };
        ("Kept the plan".to_owned(), PlanDecision { steps: None }, repairs)
    } else {
        let thought = format!("Revised the plan: {}", counted(steps.len(), "new step"));
        (thought, PlanDecision { steps: Some(steps) }, repairs)
    })
}

pub(super) fn read_step(raw: &str, about: &str, mut offered: Vec<Decision>) -> ReadReply {
    let Some(decision) = offered.first_mut() else { return ReadReply::unusable("nothing was offered", offered) };
    match step_in(raw, decision) {
        Ok((what, reading)) => ReadReply::new(&format!("{about} → {what}"), reading, offered),
        Err(reason) => ReadReply::unusable(reason, offered),
    }
}

fn step_in(raw: &str, decision: &mut Decision) -> Result<(String, Reading), String> {
    let reply = json_in(raw).map_err(|reason| format!("{reason}; {STEP_FORM}"))?;
    let members = only_object(&reply).ok_or_else(|| format!("it is not one object; {STEP_FORM}"))?;
    let named = tool_in(members)?;
    let Some(name) = option_named(&decision.options, named) else {
        decision.rejected = Document::stored(named);
        let quoted: String = named.chars().take(QUOTED).collect();
        return Err(format!("there is no tool `{quoted}`; name one of {}", decision.options.join(", ")));
    };
    let is_surprising = match members.get("surprising") {
        Some(Value::Bool(surprising)) => *surprising,
        Some(Value::String(word)) => word.trim().eq_ignore_ascii_case("true"),
        Some(Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_)) | None => false,
    };
    let value = StepAside { surprising: is_surprising }.written();
    let (what, reading) = if name == NO_TOOL {
        let answer = answer_in(members).ok_or_else(|| {
            format!("neither a tool nor an answer is given; name one of {} or answer", decision.options.join(", "))
        })?;
        ("no tool needed".to_owned(), Reading::Answered { text: answer.into(), value })
    } else {
        let arguments = arguments_in(members)?;
        let what = format!("calling {name}");
        (what, Reading::Acted { tool: name.as_str().into(), arguments, also: Vec::new(), value })
    };
    decision.chosen = vec![name];
    Ok((what, reading))
}

fn only_object(reply: &Value) -> Option<&Map<String, Value>> {
    match reply {
        Value::Object(members) => Some(members),
        Value::Array(replies) => match replies.as_slice() {
            [Value::Object(members)] => Some(members),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The tool that a step names; a step that names none says so.
fn tool_in(members: &Map<String, Value>) -> Result<&str, String> {
    match members.get("tool") {
        None | Some(Value::Null) => Ok(NO_TOOL),
        Some(Value::String(name)) if name.trim().is_empty() => Ok(NO_TOOL),
        Some(Value::String(name)) => Ok(name),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(format!("`tool` is not the name of a tool; {STEP_FORM}"))
        }
    }
}

fn answer_in(members: &Map<String, Value>) -> Option<String> {
    let answer = match members.get("answer")? {
        Value::Null => return None,
        Value::String(answer) => answer.trim().to_owned(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
    };
    (!answer.is_empty()).then_some(answer)
}

fn arguments_in(members: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    const NOT_AN_OBJECT: &str = r#"`arguments` is not a JSON object; write {"name": value}, or {} for no arguments"#;
    let arguments = match members.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(Value::String(text)) if text.trim().is_empty() => Map::new(),
        Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| NOT_AN_OBJECT.to_owned())?,
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return Err(NOT_AN_OBJECT.to_owned()),
    };
    if arguments.values().all(|value| is_flat(value, DEEPEST)) {
        Ok(arguments)
    } else {
        Err(format!("`arguments` is nested more than {DEEPEST} levels deep; write it flatter"))
    }
}

/// Deeper arguments could be read here but not from a record, where they lie deeper still.
const DEEPEST: usize = 64;

/// Whether a value is nested at most so deep.
fn is_flat(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 1 && items.iter().all(|item| is_flat(item, levels - 1)),
        Value::Object(members) => levels > 1 && members.values().all(|member| is_flat(member, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
