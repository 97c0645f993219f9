//! What models and tools say in a simulated run. It depends on what is asked and never on when, so that two runs of
//! the same script differ in nothing but the order of things.

use crate::contract::PromptOrder;
use crate::plan::PlanTurn;
use proptest::prelude::*;
use serde_json::{Value, json};
use trellis_domain::document::Document;
use trellis_domain::limits::SomeLimits;
use trellis_domain::parts::Reply;
use trellis_domain::record::{Body, Name, Observed, PromptUse, Reading, Replied};
use trellis_domain::usage::Usage;

#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) limits: SomeLimits,
    pub(super) plan: Vec<Said>,
    /// By step number, round and round.
    pub(super) steps: Vec<Act>,
    /// By revision, round and round.
    pub(super) revisions: Vec<Said>,
}

/// What a planner says: something, or nothing at all because it cannot be reached.
#[derive(Debug, Clone)]
pub(super) enum Said {
    Text(String),
    Nothing,
}

/// What happens in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Tool,
    State,
    Answer,
    ToolAfterGarble,
    ToolFails,
    Surprise,
    Garble,
    UnknownTool,
    Unreachable,
}

impl Act {
    pub(super) const SMOOTH: [Self; 4] = [Self::Tool, Self::State, Self::Answer, Self::ToolAfterGarble];
    pub(super) const ROUGH: [Self; 5] =
        [Self::ToolFails, Self::Surprise, Self::Garble, Self::UnknownTool, Self::Unreachable];
}

impl Script {
    pub(super) fn reply(&self, name: &Name, order: &PromptOrder) -> Body {
        let again = name.first_asking() != *name;
        let turn = PlanTurn::of(&name.first_asking());
        let said = if let Some(PlanTurn::Plan(0)) = turn {
            self.plan[usize::from(again) % self.plan.len()].clone()
        } else if let Some(PlanTurn::Plan(k)) = turn {
            self.revisions[usize::try_from(k).unwrap() % self.revisions.len()].clone()
        } else if let Some(PlanTurn::Step(number)) = turn {
            self.act(number).said(number, again)
        } else {
            Said::Text("The answer.".into())
        };
        replied(order, &said)
    }

    pub(super) fn tool(&self, name: &Name, tool: &str) -> Body {
        let number = name.as_str().trim_start_matches("step/").trim_end_matches("/result").parse().unwrap();
        if self.act(number) == Act::ToolFails {
            return Self::told("the tool is broken");
        }
        let state = (tool == "search").then(|| "searched".to_owned());
        observed(format!("result {number} of {tool}"), None, state)
    }

    pub(super) fn told(error: &str) -> Body {
        observed(format!("Error: {error}"), Some(error.to_owned()), None)
    }

    pub(super) fn act(&self, number: u32) -> Act {
        self.steps[usize::try_from(number).unwrap() % self.steps.len()]
    }
}

impl Act {
    fn said(self, number: u32, again: bool) -> Said {
        let reply = match self {
            Self::ToolAfterGarble if !again => return Said::Text("let me think".into()),
            Self::Tool | Self::ToolFails | Self::ToolAfterGarble => json!({"tool": "sum", "arguments": {"n": number}}),
            Self::State => json!({"tool": "search", "arguments": {}}),
            Self::Answer => json!({"tool": "none", "answer": format!("answer {number}")}),
            Self::Surprise => json!({"answer": format!("answer {number}"), "surprising": true}),
            Self::UnknownTool => json!({"tool": "telepathy"}),
            Self::Garble => return Said::Text("let me think".into()),
            Self::Unreachable => return Said::Nothing,
        };
        Said::Text(reply.to_string())
    }
}

fn replied(order: &PromptOrder, said: &Said) -> Body {
    let (raw, read) = match said {
        Said::Text(raw) => {
            (raw.as_str(), crate::registry::read(&order.reader, &Reply::of_text(raw.as_str()), order.offered.clone()))
        }
        Said::Nothing => ("", crate::registry::read(&order.reader, &Reply::of_text(""), order.offered.clone())),
    };
    let reading = match said {
        Said::Text(_) => read.reading,
        Said::Nothing => Reading::Failed { reason: "nobody there".into() },
    };
    Body::from(Replied {
        prompt: PromptUse::default(),
        raw: raw.into(),
        parts: Vec::new(),
        stop: None,
        thought: read.thought,
        reading,
        decision: read.decisions,
        model: None,
        in_token: None,
        out_token: None,
        ms: 0,
        citations: read.citations,
        failures: Vec::new(),
        incomplete: None,
        enforced: false,
        repairs: Vec::new(),
        heard: 0,
    })
}

fn observed(text: String, error: Option<String>, state: Option<String>) -> Body {
    let result = Document::stored(text);
    Body::Observed(Observed {
        result,
        error,
        ms: 0,
        state,
        idempotency_key: None,
        usage: Usage::default(),
        calls: Vec::new(),
        trace: Vec::new(),
    })
}

/// Steps with any references at all.
fn steps(most: usize) -> impl Strategy<Value = Value> {
    let step = (0..6_u8, prop::collection::vec(-1..12_i32, 0..4))
        .prop_map(|(goal, depends_on)| json!({"goal": format!("goal {goal}"), "depends_on": depends_on}));
    prop::collection::vec(step, 1..most).prop_map(Value::Array)
}

fn first_plan() -> impl Strategy<Value = Vec<Said>> {
    let sound = steps(10).prop_map(|steps| vec![Said::Text(steps.to_string())]);
    let at_second = steps(10).prop_map(|steps| vec![Said::Text("hm".into()), Said::Text(steps.to_string())]);
    prop_oneof![8 => sound, 1 => at_second, 1 => Just(vec![Said::Text("hm".into())])]
}

fn keeping() -> impl Strategy<Value = Said> {
    let keep = Just(Said::Text(r#"{"decision": "keep"}"#.into()));
    prop_oneof![3 => keep, 1 => Just(Said::Text("hm".into())), 1 => Just(Said::Nothing)]
}

fn reviewing() -> impl Strategy<Value = Said> {
    let revise = steps(5).prop_map(|steps| Said::Text(json!({"decision": "revise", "steps": steps}).to_string()));
    prop_oneof![1 => keeping(), 1 => revise]
}

fn scripts(acts: Vec<Act>, revisions: impl Strategy<Value = Said>) -> impl Strategy<Value = Script> {
    let steps = prop::collection::vec(prop::sample::select(acts), 1..8);
    let limits = (1..4_u32, 0..4_u32, 1..14_u32).prop_map(|(steps_at_once, max_replans, max_plan_steps)| SomeLimits {
        steps_at_once: Some(steps_at_once),
        max_replans: Some(max_replans),
        max_plan_steps: Some(max_plan_steps),
        ..SomeLimits::default()
    });
    let parts = (limits, first_plan(), steps, prop::collection::vec(revisions, 1..4));
    parts.prop_map(|(limits, plan, steps, revisions)| Script { limits, plan, steps, revisions })
}

/// Nothing goes wrong that is not put right within its turn.
pub(super) fn smooth() -> impl Strategy<Value = Script> {
    scripts(Act::SMOOTH.to_vec(), keeping())
}

/// Anything may go wrong, and the plan stays what it is.
pub(super) fn kept() -> impl Strategy<Value = Script> {
    scripts([Act::SMOOTH.as_slice(), &Act::ROUGH].concat(), keeping())
}

/// Anything may go wrong, and the plan may be revised.
pub(super) fn any_script() -> impl Strategy<Value = Script> {
    scripts([Act::SMOOTH.as_slice(), &Act::SMOOTH, &Act::ROUGH].concat(), reviewing())
}
