//! Why: what an answer, a step or a sentence rests on, in sentences.

use super::decisions::{self, Told};
use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::look::{Basis, Placed, RunView, decisions_of, error_of, looks_like_a_step, support};
use crate::show::{clean, columns_for, excerpt, one_line, print_json, print_said, short};
use serde_json::json;
use trellis_domain::counted;
use trellis_domain::decision::DecisionKind;
use trellis_provenance::trace::{DecisionTrace, Step, Word};

/// How much of a text is shown.
const SHOWN: usize = 300;

pub(crate) async fn run(desk: &Desk, global: &Global, wish: &str, about: Option<&str>) -> Result<Exit, Failure> {
    let view = RunView::of(desk, wish).await?;
    let place = Place { view: &view, global, columns: columns_for(global), flags: desk.flags() };
    let Some(about) = about.filter(|about| !about.trim().is_empty() && *about != "answer") else {
        return place.answer();
    };
    if let Some(step) = view.find_step(about) {
        return place.step(step);
    }
    if looks_like_a_step(about) {
        let id = short(&view.run);
        let message = format!(
            "run {id} has no step `{about}`; `trellis run decisions {id}` and `trellis run show {id}` name them"
        );
        return Err(Failure::new(Exit::NotFound, message));
    }
    place.sentence(about)
}

struct Place<'a> {
    view: &'a RunView,
    global: &'a Global,
    columns: Option<usize>,
    flags: String,
}

impl<'a> Place<'a> {
    fn say(&self, before: &str, text: &str) -> Result<(), Failure> {
        Ok(print_said(before, text, self.columns)?)
    }

    fn json(&self) -> bool {
        self.global.output == Output::Json
    }

    /// The node that the run ended with.
    fn end(&self) -> Result<Placed<'a>, Failure> {
        let id = short(&self.view.run);
        let message = format!("run {id} has no answer yet; name a step, such as `trellis run why {id} routing`");
        self.view.end().ok_or_else(|| Failure::new(Exit::NotFound, message))
    }

    /// Of the answer, all that the run itself chose; what its agents chose is counted.
    fn answer(&self) -> Result<Exit, Failure> {
        let (view, end) = (self.view, self.end()?);
        let basis = Basis::of(view, end.1.id());
        let all = view.decisions();
        let own = |decision: &DecisionTrace| {
            !matches!(
                decision.kind.as_ref().and_then(Word::known),
                Some(DecisionKind::Tool | DecisionKind::SubagentGroup | DecisionKind::SubagentPattern)
            )
        };
        let (listed, counted): (Vec<_>, Vec<_>) =
            all.iter().partition(|((session, _), decision)| session.parent.is_none() && own(decision));
        if self.json() {
            let decisions: Vec<_> = all.iter().map(|(_, decision)| decision).collect();
            let object = json!({"run_id": view.run, "step": end.1.id(), "basis": basis, "decisions": decisions});
            print_json(&object.to_string())?;
            return Ok(Exit::Ok);
        }
        self.say("", &format!("The answer rests on {}.", basis.sentence()))?;
        if let Some(error) = error_of(end.1) {
            self.say("", &format!("It ended with: {}", excerpt(error, SHOWN)))?;
        }
        for (number, (placed, decision)) in listed.iter().enumerate() {
            self.decision(&format!("{}. ", number + 1), *placed, decision)?;
        }
        if !counted.is_empty() {
            self.say(&format!("{}. ", listed.len() + 1), &summed(counted.iter().map(|(_, decision)| *decision)))?;
        }
        let (id, flags) = (short(&view.run), &self.flags);
        self.say("", &format!("all of them: trellis run decisions {id}{flags}"))?;
        self.say("", &format!("a sentence: trellis run why {id} \"…\"{flags}"))?;
        Ok(Exit::Ok)
    }

    fn step(&self, placed: Placed<'a>) -> Result<Exit, Failure> {
        let (view, (session, step)) = (self.view, placed);
        let basis = Basis::of(view, step.id());
        let decisions = Self::decisions_about(placed);
        if self.json() {
            let chosen: Vec<_> = decisions.iter().map(|(_, decision)| decision).collect();
            let object = json!({"run_id": view.run, "step": step.id(), "basis": basis, "decisions": chosen});
            print_json(&object.to_string())?;
            return Ok(Exit::Ok);
        }
        self.say("", &format!("{}, of {}.", view.step_name(placed), view.agent_name(session)))?;
        if let Some(what) = what_it_was(step) {
            self.say("", &what)?;
        }
        self.say("", &format!("It rests on {}.", basis.sentence()))?;
        match (error_of(step), view.output(step)) {
            (Some(error), _) => self.say("", &format!("It failed: {}", excerpt(error, SHOWN)))?,
            (None, "") => {}
            (None, output) => self.say("", &format!("It brought: {}", excerpt(output, SHOWN)))?,
        }
        if decisions.is_empty() {
            self.say("", "Nothing was chosen in it.")?;
        }
        for (number, (placed, decision)) in decisions.iter().enumerate() {
            self.decision(&format!("{}. ", number + 1), *placed, decision)?;
        }
        Ok(Exit::Ok)
    }

    /// Its own choices; those of the call for what a call brought, and those that sent the agent out for a finding.
    fn decisions_about((session, step): Placed<'a>) -> Vec<(Placed<'a>, &'a DecisionTrace)> {
        let own = |step: &'a Step| decisions_of(step).iter().map(move |decision| ((session, step), decision));
        let mut found: Vec<_> = own(step).collect();
        if let Step::Observation(observation) = step {
            let call = observation.id.strip_suffix("/observation");
            found.extend(session.steps.iter().filter(|step| Some(step.id()) == call).flat_map(own));
        }
        if let Step::Finding(finding) = step {
            let number = finding.index.to_string();
            let goal = |decision: &DecisionTrace| {
                decision.goal.as_deref().and_then(|goal| goal.rsplit('/').next()) == Some(number.as_str())
            };
            found.extend(session.steps.iter().flat_map(own).filter(|(_, decision)| goal(decision)));
        }
        found
    }

    fn decision(&self, before: &str, placed: Placed<'_>, decision: &DecisionTrace) -> Result<(), Failure> {
        let told = Told::of(self.view, placed, decision);
        self.say(before, &told.choice)?;
        let hang = " ".repeat(before.len());
        told.more.iter().try_for_each(|more| self.say(&hang, more))
    }

    fn sentence(&self, sentence: &str) -> Result<Exit, Failure> {
        let view = self.view;
        let support = support(view, self.end()?, sentence);
        if self.json() {
            let cited = support.cited.iter().map(|(placed, label, near)| {
                json!({"step": placed.1.id(), "name": view.step_name(*placed), "label": label, "in_sentence": !near})
            });
            let passages = support.passages.iter().map(|passage| {
                let (name, text) = (view.step_name(passage.at), passage.text);
                json!({"step": passage.at.1.id(), "name": name, "text": text, "shared_percent": passage.shared})
            });
            let object = json!({
                "run_id": view.run, "sentence": sentence, "in_answer": support.is_in_answer,
                "cited": cited.collect::<Vec<_>>(), "passages": passages.collect::<Vec<_>>(),
            });
            print_json(&object.to_string())?;
            return Ok(Exit::Ok);
        }
        self.say("", &format!("“{}”", one_line(sentence)))?;
        if !support.is_in_answer {
            self.say("", "The answer does not have this sentence; it is compared with the sources all the same.")?;
        }
        if support.cited.is_empty() {
            self.say("", "On record: neither it nor what it stands in cites anything.")?;
        } else {
            self.say("", "On record: what is cited.")?;
        }
        for ((session, step), label, near) in &support.cited {
            let place = if *near { "cited near it" } else { "cited in it" };
            let name = view.step_name((session, step));
            self.say("  ", &format!("{label}, {place}: {name}, of {}", view.agent_name(session)))?;
        }
        if support.passages.is_empty() {
            self.say("", "Same words: no source has half of its telling words. It may be the model's own.")?;
        } else {
            self.say("", "Same words, which is a comparison of texts and not on record:")?;
        }
        for passage in &support.passages {
            let (session, step) = passage.at;
            let source = what_called(session, step).unwrap_or_else(|| view.step_name(passage.at));
            let before = format!("  {:>3} %  ", passage.shared);
            let text = excerpt(passage.text, SHOWN);
            self.say(&before, &format!("{source}, {}: {text}", view.step_name(passage.at)))?;
        }
        Ok(Exit::Ok)
    }
}

/// The tool whose result it is.
#[expect(clippy::wildcard_enum_match_arm, reason = "asks for one kind only")]
fn what_called(session: &trellis_provenance::trace::SessionTrace, step: &Step) -> Option<String> {
    if let Step::StepResult(result) = step {
        return result.tool.as_deref().map(clean);
    }
    let call = step.id().strip_suffix("/observation")?;
    session.steps.iter().find_map(|other| match other {
        Step::Analysis(analysis) if analysis.id == call => Some(clean(&analysis.tool)),
        _ => None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others say it by their names")]
fn what_it_was(step: &Step) -> Option<String> {
    match step {
        Step::Analysis(call) => Some(format!("A call of the tool {}.", clean(&call.tool))),
        Step::StepResult(result) => {
            let by = if result.mark.brought { ", taken by others before this session" } else { "" };
            Some(format!("A step of the plan{by}: {}", excerpt(&result.goal, SHOWN)))
        }
        Step::Finding(finding) if finding.mark.brought => {
            Some(format!("What others had found before this session: {}", excerpt(&finding.goal, SHOWN)))
        }
        Step::Finding(finding) => {
            Some(format!("What an agent found that was sent after: {}", excerpt(&finding.goal, SHOWN)))
        }
        _ => None,
    }
}

/// `12 choices of a tool, each out of 1 to 8 options; 0 outside of its set`.
fn summed<'a>(all: impl Iterator<Item = &'a DecisionTrace>) -> String {
    let all: Vec<_> = all.collect();
    let sizes = || all.iter().map(|decision| decision.options.len());
    let outside = all.iter().filter(|decision| decisions::is_outside(decision)).count();
    let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    let choices = counted(all.len(), "more choice");
    format!("{choices} of tools, and in agents, each out of {least} to {most} options; {outside} outside of its set")
}
