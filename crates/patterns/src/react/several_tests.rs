//! Several calls in one reply: made side by side, recorded each by itself, told in their order.

use super::*;
use crate::contract::{Effect, Ending};
use crate::fixture::{Fixture, question, settings, turn};
use serde_json::json;
use trellis_domain::Timestamp;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::{Accepted, Body, Record};
use trellis_domain::run::Termination;

const ITEMS: [(&str, &str, &str); 2] = [
    ("tool", "search", r#"{"type": "text-completion", "name": "search", "description": "looks things up"}"#),
    ("tool", "read", r#"{"type": "text-completion", "name": "read", "description": "reads a page"}"#),
];
const SEARCH: (&str, &str) = ("search", r#"{"thought": "Both at once.", "question": "X"}"#);
const READ: (&str, &str) = ("read", r#"{"question": "X"}"#);
const UNKNOWN: (&str, &str) = ("telepathy", "{}");

struct Working(Fixture);

impl Working {
    fn new() -> Self {
        let limits = SomeLimits { max_iterations: Some(100), ..SomeLimits::default() };
        let accepted = Accepted { pattern: Some(React::NAME.into()), limits, ..question("Who owns X?") };
        Self(Fixture::routed(settings(&ITEMS), accepted))
    }

    fn orders(&self, n: u32) -> Vec<Order> {
        React.decide(&self.0.session, &turn(Name::iteration(n)))
    }

    fn calls(&mut self, n: u32, calls: &[(&str, &str)]) -> &mut Self {
        let orders = self.orders(n);
        self.0.call(&orders, calls);
        self
    }

    fn finds(&mut self, n: u32, call: u32, text: &str) -> &mut Self {
        self.0.observe(Name::observation_of(n, call), Ok(text), None);
        self
    }

    /// Tells the model of what was not called.
    fn told(&mut self, n: u32, call: u32) -> &mut Self {
        let name = Name::observation_of(n, call);
        let mut orders = self.orders(n);
        orders.retain(|order| matches!(order, Order::Perform(it, Effect::Report { .. }) if *it == name));
        self.0.report(&orders);
        self
    }

    fn answers(&mut self, n: u32) -> &mut Self {
        let orders = self.orders(n);
        self.0.reply(&orders, "Thought: enough\nFinal Answer: Z.");
        let [Order::End(ending)] = &self.orders(n)[..] else { panic!("it has not ended") };
        self.end(ending.clone())
    }

    fn end(&mut self, ending: Ending) -> &mut Self {
        let ended = ending.into_ended(&self.0.session, Timestamp::from_micros(0));
        self.0.record(Name::end(), Body::from(ended));
        self
    }

    /// What is due in an iteration, as `name: what`.
    fn due(&self, n: u32) -> Vec<String> {
        let due = |order: &Order| match order {
            Order::Perform(name, Effect::CallTool { tool, .. }) => format!("{name}: {tool}"),
            Order::Perform(name, Effect::Report { error }) => format!("{name}: {error}"),
            Order::Perform(name, Effect::AskModel(_)) => format!("{name}: model"),
            Order::Perform(name, Effect::Decline { reason, .. }) => format!("{name}: {reason}"),
            Order::Perform(name, Effect::Take { result, .. }) => format!("{name}: {result}"),
            Order::Perform(name, Effect::Bring { result, .. }) => format!("{name}: {result:?}"),
            other @ (Order::Open(_)
            | Order::Close
            | Order::Become(_)
            | Order::FanOut(_)
            | Order::Park(_)
            | Order::End(_)) => format!("{other:?}"),
        };
        self.orders(n).iter().map(due).collect()
    }
}

/// Results that come in another order, a call of an unknown tool among others, and an end in the middle.
pub(crate) fn samples() -> Vec<Vec<Record>> {
    let mut whole = Working::new();
    whole.calls(1, &[SEARCH, READ, SEARCH]).finds(1, 3, "third").finds(1, 1, "first").finds(1, 2, "second");
    whole.calls(2, &[UNKNOWN, READ]).finds(2, 2, "page").told(2, 1).answers(3);
    let mut cut = Working::new();
    cut.calls(1, &[SEARCH, READ]).finds(1, 2, "second").end(Ending::failed(Termination::Cancelled, "enough"));
    vec![whole.0.records(), cut.0.records()]
}

/// A session with two calls in each of so many iterations.
pub(crate) fn long(iterations: u32) -> Vec<Record> {
    let mut working = Working::new();
    for n in 1..=iterations {
        let first = format!("{{\"question\": \"{n}\"}}");
        working.calls(n, &[("search", &first), READ]).finds(n, 2, "second").finds(n, 1, "first");
    }
    working.answers(iterations + 1);
    working.0.records()
}

#[test]
fn all_calls_of_a_reply_are_due_at_once_and_the_next_iteration_after_the_last_of_them() {
    let mut working = Working::new();
    working.calls(1, &[SEARCH, READ]);
    assert_eq!(working.due(1), ["i1/observation: search", "i1/call/2/observation: read"]);
    working.finds(1, 2, "second");
    assert_eq!(working.due(1), ["i1/observation: search"]);
    working.finds(1, 1, "first");
    assert_eq!(working.due(1), [format!("{:?}", Order::Open(Name::iteration(2)))]);
}

#[test]
fn each_call_is_a_choice_of_its_own_and_one_outside_the_set_is_told() {
    let mut working = Working::new();
    working.calls(1, &[UNKNOWN, READ]);
    let due = working.due(1);
    assert!(due[0].starts_with("i1/observation: there is no tool `telepathy`"), "{due:?}");
    assert_eq!(due[1], "i1/call/2/observation: read");
    let decisions = &working.0.session.replied(&Name::iteration(1)).unwrap().decision;
    let chosen: Vec<_> = decisions.iter().map(|decision| decision.chosen.concat()).collect();
    assert_eq!(chosen, ["", "read"]);
}

#[test]
fn no_call_follows_from_another_and_the_next_step_follows_from_all() {
    let mut working = Working::new();
    working.calls(1, &[SEARCH, READ]);
    let causes = |working: &Working, name: &Name| React.causes(&working.0.session, name);
    assert_eq!(causes(&working, &Name::observation_of(1, 2)), [Name::iteration(1)]);
    working.finds(1, 2, "second");
    assert_eq!(causes(&working, &Name::observation(1)), [Name::iteration(1)], "whichever came first");
}

#[test]
fn the_model_is_shown_every_call_with_its_result_and_the_thought_once() {
    let mut working = Working::new();
    working.calls(1, &[SEARCH, READ]).finds(1, 2, "second").finds(1, 1, "first");
    let orders = working.orders(2);
    let (_, prompt) = crate::fixture::asked(&orders);
    let (search, read) = (json!({ "question": "X" }), json!({ "question": "X" }));
    let expected = json!([
        { "thought": "Both at once.", "action": "search", "arguments": search, "observation": "first" },
        { "thought": "", "action": "read", "arguments": read, "observation": "second" },
    ]);
    assert_eq!(prompt.variables["history"], expected);
    let told: Vec<_> = React.history(&working.0.session, &Name::iteration(2)).into_iter().map(|it| it.action).collect();
    assert_eq!(told, ["search", "read"], "as neighbours in TrustGraph are told");
}

#[test]
fn the_same_calls_again_and_again_are_a_loop() {
    let mut working = Working::new();
    for n in 1..=3 {
        working.calls(n, &[SEARCH, READ]);
        if n < 3 {
            working.finds(n, 1, "first").finds(n, 2, "second");
        }
    }
    let not_again = |due: &String| due.contains("so it was not called again");
    assert!(working.due(3).iter().all(not_again), "{:?}", working.due(3));
    working.told(3, 1).told(3, 2).calls(4, &[READ, SEARCH]);
    assert!(working.due(4).iter().all(not_again), "in whatever order: {:?}", working.due(4));
}
