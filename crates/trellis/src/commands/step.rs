//! One step of a run with everything that is on record of it: what was chosen, what a model was asked and said, what a tool
//! brought, and what all of it took.

use super::decisions::{Told, set};
use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::look::{Placed, RunView, decisions_of, error_of};
use crate::show::{Marks, clean, columns_for, one_line, print_json, print_said, seconds, short, tokens};
use serde_json::json;
use std::iter::successors;
use trellis_domain::document::Document;
use trellis_domain::record::{Body, Name, Record, Replied};
use trellis_provenance::trace::Step;

pub(super) async fn run(desk: &Desk, global: &Global, wish: &str, step: &str) -> Result<Exit, Failure> {
    let view = RunView::of(desk, wish).await?;
    // A bare number is a call, and a step where there is a plan.
    let found = view.find_step(step).or_else(|| view.find_step(&format!("step {}", step.trim())));
    let placed = found.ok_or_else(|| {
        let id = short(&view.run);
        let message =
            format!("run {id} has no step `{step}`; `trellis run show {id}` and `run decisions {id}` name them");
        Failure::new(Exit::NotFound, message)
    })?;
    let records = records_of(&view, placed);
    if global.output == Output::Json {
        let (session, step) = placed;
        let object = json!({
            "run_id": view.run, "session_id": session.session, "agent": view.number_of(session),
            "step_name": view.step_name(placed), "step": step, "output": view.output(step), "records": records,
        });
        print_json(&object.to_string())?;
        return Ok(Exit::Ok);
    }
    let page = Page { columns: columns_for(global), marks: Marks::of(global.ascii) };
    page.step(&view, placed)?;
    for record in records {
        if let Body::Replied(replied) = &record.body {
            page.reply(record, replied)?;
        } else if let Body::Observed(observed) = &record.body {
            page.say("", &format!("The tool took {}.", seconds(observed.ms)))?;
        }
    }
    Ok(Exit::Ok)
}

fn name_of(record: &Record) -> &str {
    record.header.name.as_str()
}

/// The records that a step was made of, in order. Its name in the graph ends with that of the record.
fn records_of<'a>(view: &'a RunView, (session, step): Placed<'_>) -> Vec<&'a Record> {
    let all = view.records.iter().map(|record| &**record);
    let all: Vec<&Record> = all.filter(|record: &&Record| record.header.session.as_str() == session.session).collect();
    let path = step.id().strip_prefix(session.id.as_str()).unwrap_or_default().trim_start_matches('/');
    // One of several calls in a reply is below the name of the reply.
    let mut above = successors(Some(path), |path| Some(path.rsplit_once('/')?.0));
    let own = above.find(|path| all.iter().any(|record| name_of(record) == *path));
    let (ends, end) = (matches!(step, Step::Conclusion(_) | Step::Synthesis(_)), Name::end());
    let has_result = matches!(step, Step::StepResult(_));
    let is_own = |record: &Record| {
        let below = own.and_then(|own| name_of(record).strip_prefix(own));
        let is_below = |below: &str| {
            below.is_empty() || below.starts_with("/retry") || has_result && below.starts_with("/observation")
        };
        below.is_some_and(is_below) || ends && record.header.name == end
    };
    // What a model was asked for a route or for an end has a name of its own.
    let asked: Vec<&Name> = all
        .iter()
        .copied()
        .filter(|&record| is_own(record) && matches!(record.body, Body::Routed(_) | Body::Ended(_)))
        .flat_map(|record| &record.header.causes)
        .filter(|cause| cause.session.is_none())
        .map(|cause| &cause.name)
        .collect();
    let is_asked = |record: &Record| matches!(record.body, Body::Replied(_)) && asked.contains(&&record.header.name);
    all.iter().copied().filter(|&record| is_own(record) || is_asked(record)).collect()
}

/// Where it is written for people.
struct Page {
    columns: Option<usize>,
    marks: &'static Marks,
}

impl Page {
    fn say(&self, before: &str, text: &str) -> Result<(), Failure> {
        Ok(print_said(before, text, self.columns)?)
    }

    /// A text as it was written; nothing if there is none.
    fn whole(&self, title: &str, text: &str) -> Result<(), Failure> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.say("", title)?;
        clean(text).trim_end().lines().try_for_each(|line| self.say("  ", line))
    }

    fn step(&self, view: &RunView, placed: Placed<'_>) -> Result<(), Failure> {
        let (session, step) = placed;
        self.say("", &format!("{}, of {}.", view.step_name(placed), view.agent_name(session)))?;
        self.say("", &clean(step.id()))?;
        let (tool, arguments) = match step {
            Step::Analysis(call) => (Some(call.tool.as_str()), Some(&call.arguments)),
            Step::StepResult(result) => (result.tool.as_deref(), result.arguments.as_ref()),
            Step::PatternAct(act) => (act.tool.as_deref(), act.arguments.as_ref()),
            Step::Routing(_)
            | Step::Observation(_)
            | Step::Plan(_)
            | Step::PlanReview(_)
            | Step::Decomposition(_)
            | Step::Finding(_)
            | Step::Review(_)
            | Step::UnusedReply(_)
            | Step::LateReply(_)
            | Step::LateResult(_)
            | Step::Conclusion(_)
            | Step::Synthesis(_) => (None, None),
        };
        if let Some(tool) = tool {
            let arguments = arguments.map(|arguments| format!(" with {}", one_line(&arguments.to_string())));
            self.say("", &format!("It calls the tool {}{}.", clean(tool), arguments.unwrap_or_default()))?;
        }
        for (number, decision) in decisions_of(step).iter().enumerate() {
            let before = format!("{}. ", number + 1);
            let told = Told::of(view, placed, decision);
            self.say(&before, &told.choice)?;
            let hang = " ".repeat(before.len());
            for line in set(decision, self.marks).iter().chain(&told.more) {
                self.say(&hang, line)?;
            }
        }
        if let Some(error) = error_of(step) {
            self.whole("It failed:", error)?;
        }
        self.whole("It brought:", view.output(step))
    }

    /// What a model was asked, what it replied, and what that took.
    fn reply(&self, record: &Record, replied: &Replied) -> Result<(), Failure> {
        let prompt = &replied.prompt;
        let model = replied.model.as_deref().or(prompt.model.as_deref()).unwrap_or("a model that is not recorded");
        let name = clean(name_of(record));
        self.say("", &format!("Model call {name}: prompt “{}” to {}.", clean(&prompt.id), clean(model)))?;
        for (what, hash) in [("template", prompt.template), ("sent", prompt.sent), ("received", prompt.received)] {
            if let Some(hash) = hash {
                self.say("  ", &format!("{what}: sha256 {hash}"))?;
            }
        }
        match prompt.request.as_ref().map(Document::text) {
            Some(request) => self.whole("Prompt:", request)?,
            None => self.say("", "Prompt: its text was not kept; TRELLIS_KEEP_REQUESTS=1 keeps what is sent.")?,
        }
        self.whole("Thought:", replied.thought.as_ref().map_or("", Document::text))?;
        if replied.parts.is_empty() {
            self.whole("Reply:", replied.raw.text())?;
        } else {
            self.whole("Reply:", &json!(replied.parts).to_string())?;
        }
        if let Some(problem) = replied.reading.problem() {
            self.say("", &format!("Could not be used: {}", one_line(problem)))?;
        }
        for repair in &replied.repairs {
            self.say("", &format!("Put right: {}", one_line(repair)))?;
        }
        for failure in &replied.failures {
            self.say("", &format!("Failed before: {}", one_line(&failure.reason)))?;
        }
        let tokens = tokens(replied.in_token, replied.out_token);
        let tokens = if tokens.is_empty() { "tokens not recorded".to_owned() } else { format!("{tokens} tokens") };
        self.say("", &format!("Usage: {tokens}, {}.", seconds(replied.ms)))
    }
}
