//! A session with a plan, as the tests of this module need it.

use super::Plan;
use crate::contract::{Ending, Order, Pattern, PromptOrder};
use crate::fixture::{Fixture, asked, question, settings, turn};
use crate::plan::PlanNames;
use crate::session::Session;
use serde_json::Value;
use trellis_domain::limits::{Limits, SomeLimits};
use trellis_domain::record::{Accepted, Body, Name, Replied, Routed};

#[derive(Debug, Clone)]
pub(super) struct Planning(Fixture);

/// `search` leads to the state `searched`, in which alone `read` applies; `sum` always applies.
pub(super) const TOOLS: [(&str, &str); 3] =
    [("search", r#","state":"searched""#), ("read", r#","applicable-states":["searched"]"#), ("sum", "")];

impl Planning {
    pub(super) fn new() -> Self {
        Self::with(SomeLimits::default())
    }

    pub(super) fn with(limits: SomeLimits) -> Self {
        Self::of(&TOOLS, Accepted { limits, ..question("why?") })
    }

    pub(super) fn of(tools: &[(&str, &str)], accepted: Accepted) -> Self {
        let value = |(name, extra): &(&str, &str)| {
            format!(r#"{{"type":"text-completion","name":"{name}","description":"about {name}"{extra}}}"#)
        };
        let values: Vec<_> = tools.iter().map(value).collect();
        let items: Vec<_> =
            tools.iter().zip(&values).map(|((name, _), value)| ("tool", *name, value.as_str())).collect();
        let routed = Routed {
            task_type: "general".into(),
            pattern: Plan::NAME.into(),
            framing: "Be brief.".into(),
            told: std::sync::Arc::default(),
            termination: String::new(),
            limits: Limits::default().refined(&accepted.limits, &SomeLimits::default()),
            decisions: Vec::new(),
        };
        let mut fixture = Fixture::begun(settings(&items), accepted);
        fixture.become_routed(routed);
        Self(fixture)
    }

    pub(super) fn session(&self) -> &Session {
        &self.0.session
    }

    pub(super) fn record(&mut self, name: Name, body: Body) {
        self.0.record(name, body);
    }

    pub(super) fn replied(&self, name: &Name) -> &Replied {
        self.session().replied(name).unwrap()
    }

    pub(super) fn decide(&self, name: &Name) -> Vec<Order> {
        Plan.decide(self.session(), &turn(name.clone()))
    }

    /// What a turn asks the model.
    #[track_caller]
    pub(super) fn prompt(&self, turn: &Name) -> PromptOrder {
        asked(&self.decide(turn)).1.clone()
    }

    #[track_caller]
    pub(super) fn variable(&self, turn: &Name, name: &str) -> Value {
        self.prompt(turn).variables[name].clone()
    }

    /// The reply to what the turn asks.
    #[track_caller]
    pub(super) fn reply(&mut self, turn: &Name, raw: &str) {
        let orders = self.decide(turn);
        self.0.reply(&orders, raw);
    }

    #[track_caller]
    pub(super) fn replies(&mut self, turn: &Name, reply: Value) {
        self.reply(turn, &reply.to_string());
    }

    /// The call that the turn asks for fails for good.
    #[track_caller]
    pub(super) fn fail(&mut self, turn: &Name, reason: &str) {
        let orders = self.decide(turn);
        self.0.fail(&orders, reason);
    }

    /// The turn tells the model why nothing was called.
    #[track_caller]
    pub(super) fn report(&mut self, turn: &Name) {
        let orders = self.decide(turn);
        self.0.report(&orders);
    }

    pub(super) fn observe(&mut self, number: u32, result: Result<&str, &str>, state: Option<&str>) {
        self.0.observe(Name::step_result(number), result, state);
    }

    /// A plan of steps that depend on these others.
    #[track_caller]
    pub(super) fn plan(&mut self, dependencies: &[&[u32]]) {
        let steps = dependencies.iter().enumerate();
        let steps: Vec<_> = steps
            .map(|(number, others)| serde_json::json!({"goal": format!("goal {number}"), "depends_on": others}))
            .collect();
        self.replies(&Name::plan(0), serde_json::json!({ "steps": steps }));
    }

    /// A step calls a tool, which returns.
    #[track_caller]
    pub(super) fn run(&mut self, number: u32, result: Result<&str, &str>) {
        self.reply(&Name::step(number), r#"{"tool": "sum", "arguments": {}}"#);
        self.observe(number, result, None);
    }

    #[track_caller]
    pub(super) fn ending(&self, turn: &Name) -> Ending {
        match self.decide(turn).as_slice() {
            [Order::End(ending)] => ending.clone(),
            other => panic!("{turn} does not end the session: {other:?}"),
        }
    }

    /// The turns that the turn's closing opens.
    #[track_caller]
    pub(super) fn opened(&self, turn: &Name) -> Vec<String> {
        let name = |order: Order| match order {
            Order::Open(name) => Some(name.to_string()),
            Order::Close => None,
            other @ (Order::Perform(..) | Order::Become(_) | Order::FanOut(_) | Order::Park(_) | Order::End(_)) => {
                panic!("{turn} is not closed: {other:?}")
            }
        };
        self.decide(turn).into_iter().filter_map(name).collect()
    }
}
