//! Two runs side by side: the first decision that differs, then option sets, costs and answers.

use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::look::{RunView, kind_word};
use crate::show::{clean, columns_for, excerpt, grouped, print_json, print_said, seconds, short};
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use trellis_domain::document::Document;
use trellis_orchestrator::ports::{RealWorld, World};
use trellis_orchestrator::summary::end_of;
use trellis_provenance::trace::{DecisionTrace, Word};

/// What is told of both runs.
#[derive(Debug, Serialize)]
struct Fact {
    about: &'static str,
    runs: [String; 2],
}

/// One decision that is not the same in both; nothing on a side where there is none.
#[derive(Debug, Serialize)]
struct Difference {
    /// Which agent, and what was decided.
    about: String,
    what: &'static str,
    runs: [String; 2],
}

pub(crate) async fn run(desk: &Desk, global: &Global, one: &str, other: &str) -> Result<Exit, Failure> {
    let views = [RunView::of(desk, one).await?, RunView::of(desk, other).await?];
    let facts = facts(&views);
    let differences = differences(&views);
    let answers = views.each_ref().map(answer);
    let first = first_difference(&answers);
    if global.output == Output::Json {
        let object = json!({
            "runs": views.each_ref().map(|view| &view.run), "facts": facts, "decisions": differences,
            "same_answer": first.is_none(), "answers": answers,
        });
        print_json(&object.to_string())?;
        return Ok(Exit::Ok);
    }
    let columns = columns_for(global);
    let say = |before: &str, text: &str| print_said(before, text, columns);
    let names = views.each_ref().map(|view| short(&view.run));
    say("", &format!("{} beside {}", names[0], names[1]))?;
    if let Some(Difference { about, what, runs }) = differences.first() {
        say("", &format!("First difference, {about}: {what}"))?;
        for (name, side) in names.iter().zip(runs) {
            say(&format!("  {name}  "), side)?;
        }
    } else {
        say("", "All decisions are the same: options and choices.")?;
    }
    say("", "Facts")?;
    for Fact { about, runs } in &facts {
        let same = runs[0] == runs[1];
        let text = if same { format!("{} in both", runs[0]) } else { format!("{}  |  {}", runs[0], runs[1]) };
        say(&format!("  {about:<15}"), &text)?;
    }
    if differences.len() > 1 {
        say("", "Further decisions that differ")?;
    }
    for Difference { about, what, runs } in differences.iter().skip(1) {
        say("  ", &format!("{about}, {what}: {}  |  {}", runs[0], runs[1]))?;
    }
    match first {
        None => say("", "The answers are the same.")?,
        Some((line, sides)) => {
            say("", &format!("The answers differ, first in line {line}"))?;
            for (name, side) in names.iter().zip(sides) {
                say(&format!("  {name}  "), &excerpt(side, 200))?;
            }
        }
    }
    Ok(Exit::Ok)
}

fn answer(view: &RunView) -> Option<&str> {
    end_of(&view.records, &view.run)?.answer.as_ref().map(Document::text)
}

/// The number of the first line that is not the same, and that line in both.
fn first_difference<'a>(answers: &[Option<&'a str>; 2]) -> Option<(usize, [&'a str; 2])> {
    if answers[0] == answers[1] {
        return None;
    }
    let [one, other] = answers.map(|answer| answer.map_or(vec!["(no answer)"], |text| text.lines().collect()));
    let longest = one.len().max(other.len());
    let side = |lines: &[&'a str], number: usize| lines.get(number).copied().unwrap_or("(it ends before)");
    let differs = |number: &usize| one.get(*number) != other.get(*number);
    let number = (0..longest).find(differs)?;
    Some((number + 1, [side(&one, number), side(&other, number)]))
}

fn facts(views: &[RunView; 2]) -> Vec<Fact> {
    let now = RealWorld.now();
    let fact = |about, of: &dyn Fn(&RunView) -> String| Fact { about, runs: views.each_ref().map(of) };
    let count = |number: Option<u64>| number.map_or_else(|| "not recorded".to_owned(), grouped);
    let accepted = |view: &RunView| view.records.first().and_then(|record| record.body.as_accepted().cloned());
    let totals = |view: &RunView| {
        let root = view.root();
        root.map(|root| root.totals_with_subagents.clone().unwrap_or_else(|| root.totals.clone())).unwrap_or_default()
    };
    vec![
        fact("question", &|view| excerpt(&view.summary.question, 120)),
        fact("configuration", &|view| {
            let configured = accepted(view).and_then(|accepted| accepted.configured);
            configured.map_or_else(|| "not recorded".to_owned(), |made| format!("version {}", made.version))
        }),
        fact("task type", &|view| clean(view.summary.task_type.as_deref().unwrap_or("–"))),
        fact("pattern", &|view| clean(view.summary.pattern.as_deref().unwrap_or("–"))),
        fact("model", &|view| clean(view.summary.usage.model.as_deref().unwrap_or("not recorded"))),
        fact("state", &|view| view.summary.state.to_string()),
        fact("took", &|view| seconds(view.summary.ms(now))),
        fact("tokens read", &|view| count(view.summary.usage.in_token)),
        fact("tokens written", &|view| count(view.summary.usage.out_token)),
        fact("model calls", &|view| count(totals(view).model_calls)),
        fact("tool calls", &|view| count(totals(view).tool_calls)),
    ]
}

/// A decision is the same one in both runs if it is of the same kind, at the same place of the agent with the same goal.
fn differences(views: &[RunView; 2]) -> Vec<Difference> {
    let mut order = Vec::new();
    let mut pairs: HashMap<String, (String, [Option<&DecisionTrace>; 2])> = HashMap::new();
    for (side, view) in views.iter().enumerate() {
        let mut places: HashMap<String, usize> = HashMap::new();
        for ((session, _), decision) in view.decisions() {
            let goal = if session.parent.is_some() { session.question.as_str() } else { "" };
            let kind = kind_word(decision.kind.as_ref());
            let place = places.entry(format!("{goal}\0{kind}")).or_default();
            let key = format!("{goal}\0{kind}\0{place}");
            *place += 1;
            let entry = pairs.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                (format!("{kind}, {}", view.agent_name(session)), [None, None])
            });
            entry.1[side] = Some(decision);
        }
    }
    let pairs = order.iter().filter_map(|key| pairs.get(key));
    pairs.flat_map(|(about, sides)| differing(about, *sides)).collect()
}

fn differing(about: &str, sides: [Option<&DecisionTrace>; 2]) -> Vec<Difference> {
    let told = |what: &'static str, of: &dyn Fn(&DecisionTrace) -> String| {
        let runs = sides.map(|side| side.map_or_else(|| "no such decision".to_owned(), of));
        (runs[0] != runs[1]).then(|| Difference { about: about.to_owned(), what, runs })
    };
    let list = |names: &[String]| {
        let names: Vec<_> = names.iter().map(|name| excerpt(name, 60)).collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    };
    if sides.iter().any(Option::is_none) {
        return told("only in one run", &|decision| list(&decision.chosen)).into_iter().collect();
    }
    let by = |decision: &DecisionTrace| match &decision.decided_by {
        Some(Word::Known(by)) => by.to_string(),
        Some(Word::Unknown(word)) => clean(word),
        None => "not recorded".to_owned(),
    };
    let all = [
        told("options", &|decision| list(&decision.options)),
        told("chosen", &|decision| list(&decision.chosen)),
        told("decided by", &by),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_first_line_that_differs_is_found() {
        assert_eq!(first_difference(&[Some("a\nb"), Some("a\nb")]), None);
        assert_eq!(first_difference(&[Some("a\nb"), Some("a\nc")]), Some((2, ["b", "c"])));
        assert_eq!(first_difference(&[Some("a"), Some("a\nc")]), Some((2, ["(it ends before)", "c"])));
        assert_eq!(first_difference(&[None, Some("a")]), Some((1, ["(no answer)", "a"])));
    }
}
