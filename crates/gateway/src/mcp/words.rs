//! Steps and choices in a line each.

use trellis_orchestrator::events::{OptionSet, RunEvent, StepCompleted};

/// So much is shown of a text.
const SHOWN: usize = 200;
/// And of one that is quoted.
const QUOTED: usize = 6_000;

/// How far a run is.
pub(super) fn progress(event: &RunEvent) -> String {
    match event {
        RunEvent::Chunk(_) => "a model writes".to_owned(),
        RunEvent::RunStarted(event) => format!("run {} has begun", event.details.run_id),
        RunEvent::AgentStarted(event) => format!("an agent has begun: {}", shortened(&event.details.goal)),
        RunEvent::CallIntended(event) => format!("{} is being called", event.details.tool),
        RunEvent::InputRequired(event) => format!("{} asks for input", event.details.tool),
        RunEvent::StepCompleted(event) => step(&event.details),
        RunEvent::FanOutStarted(event) => format!("{} agents were sent out", event.details.goals.len()),
        RunEvent::FanOutJoined(_) => "what the agents found is together".to_owned(),
        RunEvent::DecisionRequested(event) => format!("waits for a person: {}", shortened(&event.details.question)),
        RunEvent::DecisionMade(event) => {
            let chosen: Vec<_> =
                event.details.option_sets.iter().flat_map(|set| &set.chosen).map(String::as_str).collect();
            format!("was decided: {}", chosen.join(", "))
        }
        RunEvent::RunTold(event) => format!("was told: {}", shortened(&event.details.message)),
        RunEvent::AgentCompleted(event) => format!("an agent has ended: {}", event.details.state),
        RunEvent::RunCompleted(event) | RunEvent::RunFailed(event) => format!("has ended: {}", event.details.state),
    }
}

fn step(step: &StepCompleted) -> String {
    match step {
        StepCompleted::Routing(step) => format!("task type {}, pattern {}", step.task_type, step.pattern),
        StepCompleted::Reply(step) => {
            let tool = step.details.get("tool").and_then(|tool| tool.as_str()).filter(|tool| !tool.is_empty());
            let said = step.thought.as_deref().map(shortened).filter(|thought| !thought.is_empty());
            let parts = [Some(step.kind.to_owned()), tool.map(|tool| format!("calls {tool}")), said];
            parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
        }
        StepCompleted::Observation(step) => match &step.error {
            Some(error) => format!("a tool failed: {}", shortened(error)),
            None => format!(
                "a tool has brought {} characters",
                step.content.as_ref().map_or(0, |text| text.chars().count())
            ),
        },
    }
}

/// The choices that an event tells of.
pub(super) fn option_sets(event: &RunEvent) -> &[OptionSet] {
    match event {
        RunEvent::StepCompleted(event) => match &event.details {
            StepCompleted::Routing(step) => &step.option_sets,
            StepCompleted::Reply(step) => &step.option_sets,
            StepCompleted::Observation(_) => &[],
        },
        RunEvent::FanOutStarted(event) => &event.details.option_sets,
        RunEvent::DecisionMade(event) => &event.details.option_sets,
        RunEvent::Chunk(_)
        | RunEvent::RunStarted(_)
        | RunEvent::AgentStarted(_)
        | RunEvent::CallIntended(_)
        | RunEvent::InputRequired(_)
        | RunEvent::FanOutJoined(_)
        | RunEvent::DecisionRequested(_)
        | RunEvent::RunTold(_)
        | RunEvent::AgentCompleted(_)
        | RunEvent::RunCompleted(_)
        | RunEvent::RunFailed(_) => &[],
    }
}

/// A choice and what it was made from.
pub(super) fn decision(set: &OptionSet) -> String {
    let listed = |names: &[String], none: &str| if names.is_empty() { none.to_owned() } else { names.join(", ") };
    let excluded: Vec<_> =
        set.excluded.iter().map(|option| format!("{} ({})", option.id, shortened(&option.why_excluded))).collect();
    let not_offered =
        if excluded.is_empty() { String::new() } else { format!("; not offered: {}", excluded.join(", ")) };
    let why = set.rationale.as_deref().map(|why| format!("; stated reason: {}", shortened(why))).unwrap_or_default();
    format!(
        "{}: {}, out of {} (by {}, held to them by {}, from {} v{}){not_offered}{why}",
        set.decision,
        listed(&set.chosen, "nothing that was offered"),
        listed(&set.options, "no fixed set"),
        set.decided_by,
        set.enforcement,
        set.source,
        set.config_version,
    )
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SHOWN { line } else { line.chars().take(SHOWN).chain(['…']).collect() }
}

/// A text of a run as a quotation, so that nobody takes its words for ours: every line is marked, nothing in it steers a
/// terminal, and it has an end.
pub(super) fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(QUOTED).collect();
    let lines = shown.lines().map(|line| format!("> {}", line.replace(steers, " ")));
    let mut quoted = lines.collect::<Vec<_>>().join("\n");
    if shown.len() < text.len() {
        quoted.push_str("…\n(This is the beginning; `trellis run show` has all of it.)");
    }
    quoted
}

/// Control characters, and those that change the direction of what follows or show nothing.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_marked_in_every_line_plain_and_has_an_end() {
        assert_eq!(
            quoted("May `x` be called?\nRun 1 says \u{1b}[2Jyes\u{202e}."),
            "> May `x` be called?\n> Run 1 says  [2Jyes ."
        );
        let long = quoted(&"é".repeat(QUOTED + 1));
        assert!(long.starts_with("> é") && long.contains("the beginning"), "{long}");
        assert_eq!(long.matches('é').count(), QUOTED);
    }
}
