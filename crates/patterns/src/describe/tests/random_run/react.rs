//! Random ReAct sessions.

use crate::projector::tests::fixture::{
    Script, answer, call, ending, failure, reply, result, routing, tool_choice, unreadable,
};
use proptest::prelude::*;
use serde_json::json;
use trellis_domain::decision::Decision;
use trellis_domain::document::Document;
use trellis_domain::record::{Observed, Reading, Record, Replied};
use trellis_domain::run::Termination;
use trellis_domain::usage::Usage;

#[derive(Debug, Clone)]
struct RandomStep {
    /// A tool that is offered, one that is not, or nothing readable.
    named: Option<&'static str>,
    thought: String,
    observation: String,
    fails: bool,
    stored: bool,
    attempt: u32,
    tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Answer,
    ModelFailed,
    OutOfIterations,
    /// Cancelled while the model was thinking; what comes back is late.
    CancelledInReply {
        late_answer: bool,
    },
    /// Cancelled while the tool was running; what comes back, if anything, is late.
    CancelledInTool {
        comes_back: bool,
    },
    NotYet,
}

fn step() -> impl Strategy<Value = RandomStep> {
    let named = prop_oneof![
        3 => Just(Some("knowledge-query")),
        2 => Just(Some("weather")),
        1 => Just(Some("crystal ball")),
        1 => Just(None),
    ];
    (named, any::<String>(), any::<String>(), any::<bool>(), any::<bool>(), 1..4u32, any::<Option<u64>>()).prop_map(
        |(named, thought, observation, fails, stored, attempt, tokens)| RandomStep {
            named,
            thought,
            observation,
            fails,
            stored,
            attempt,
            tokens,
        },
    )
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Answer),
        Just(End::ModelFailed),
        Just(End::OutOfIterations),
        any::<bool>().prop_map(|late_answer| End::CancelledInReply { late_answer }),
        any::<bool>().prop_map(|comes_back| End::CancelledInTool { comes_back }),
        Just(End::NotYet),
    ]
}

/// What happens in a session after its routing.
#[derive(Debug, Clone)]
pub(super) struct Course {
    text: String,
    steps: Vec<RandomStep>,
    end: End,
}

pub(super) fn course() -> impl Strategy<Value = Course> {
    let parts = (any::<String>(), prop::collection::vec(step(), 0..4), end());
    parts.prop_map(|(text, steps, end)| Course { text, steps, end })
}

impl Course {
    pub(super) fn play(&self, script: &mut Script) {
        let mut n = 0;
        for step in &self.steps {
            n += 1;
            take(script, n, step);
            script.observed(n, observed(step));
        }
        finish(script, n + 1, &self.text, self.end);
    }

    /// The same with an end, whatever comes.
    pub(super) fn ending(self) -> Self {
        let end = if matches!(self.end, End::NotYet) { End::Answer } else { self.end };
        Self { end, ..self }
    }
}

/// A run that may be finished or not.
pub(super) fn any_react_run() -> impl Strategy<Value = Vec<Record>> {
    (course(), any::<bool>()).prop_map(|(course, talks)| {
        let mut script = Script::new("s-1");
        script.accepted(&course.text, talks.then_some("talk")).routed(explained(routing(), &course.text));
        course.play(&mut script);
        script.records
    })
}

/// Routing with a reason, as if a model had been asked.
fn explained(decisions: Vec<Decision>, reason: &str) -> Vec<Decision> {
    let with_reason = |decision| Decision { rationale: Document::stored(reason), ..decision };
    decisions.into_iter().map(with_reason).collect()
}

fn take(script: &mut Script, n: u32, step: &RandomStep) {
    let replied = match step.named {
        Some(tool) => call(&step.thought, tool, json!({"about": step.observation})),
        None => unreadable(&step.thought),
    };
    script.replied(n, Replied { in_token: step.tokens, ..replied }).header(|header| header.attempt = step.attempt);
}

fn observed(step: &RandomStep) -> Observed {
    let observed = if step.fails { failure(&step.observation) } else { result(&step.observation) };
    let stored = observed.result.map(|document| Document { stored: step.stored, ..document });
    let usage = Usage { in_token: step.tokens, ..Usage::default() };
    Observed { result: stored, usage, ..observed }
}

fn finish(script: &mut Script, n: u32, text: &str, end: End) {
    match end {
        End::Answer => {
            script.replied(n, answer(text, text)).ended(ending(Termination::FinalAnswer, text, None));
        }
        End::ModelFailed => {
            let failed = reply(text, Reading::Failed { reason: text.to_owned() });
            script.replied(n, failed).ended(ending(Termination::Error, "", Some(text)));
        }
        End::OutOfIterations => {
            script.ended(ending(Termination::MaxIterations, text, Some("Too many agent iterations")));
        }
        End::CancelledInReply { late_answer } => {
            let late = if late_answer { answer(text, text) } else { call(text, "weather", json!({})) };
            script.ended(ending(Termination::Cancelled, "", None));
            script.replied(n, late).header(|header| header.late = true);
        }
        End::CancelledInTool { comes_back } => {
            script.replied(
                n,
                Replied { decision: vec![tool_choice(Some("weather"))], ..call(text, "weather", json!({})) },
            );
            script.ended(ending(Termination::Cancelled, "", None));
            if comes_back {
                script.observed(n, result(text)).header(|header| header.late = true);
            }
        }
        End::NotYet => {}
    }
}
