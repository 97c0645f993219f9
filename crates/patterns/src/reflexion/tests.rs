//! Each test folds records and reads the orders: no runtime, no clock.

use super::*;
use crate::contract::{Effect, Ending};
use crate::fixture::{Fixture, asked, question, settings, turn};
use crate::registry::notice;
use serde_json::json;
use trellis_domain::record::{Accepted, Body, Record};
use trellis_domain::run::Termination;

const ITEMS: [(&str, &str, &str); 2] = [
    ("tool", "search", r#"{"type": "text-completion", "name": "search", "description": "looks things up"}"#),
    ("agent-pattern", "reflexion", "{}"),
];

struct Thinking(Fixture);

impl Thinking {
    fn new() -> Self {
        let accepted = Accepted { pattern: Some(Reflexion::NAME.into()), ..question("Who owns X?") };
        Self(Fixture::routed(settings(&ITEMS), accepted))
    }

    fn orders(&self, n: u32) -> Vec<Order> {
        Reflexion.decide(&self.0.session, &turn(Name::iteration(n)))
    }

    /// Records the reply to whatever is asked in iteration `n`.
    fn says(&mut self, n: u32, text: &str) -> &mut Self {
        let orders = self.orders(n);
        self.0.reply(&orders, text);
        self
    }

    fn searches(&mut self, n: u32, what: &str) -> &mut Self {
        self.says(n, &format!("Thought: look\nAction: search\nArgs: {{\"question\": \"{what}\"}}"))
    }

    fn finds(&mut self, n: u32, text: &str) -> &mut Self {
        self.0.observe(Name::observation(n), Ok(text), None);
        self
    }

    fn records(&self) -> Vec<Record> {
        self.0.records()
    }

    fn end(&mut self, n: u32) -> &mut Self {
        let [Order::End(ending)] = &self.orders(n)[..] else { panic!("it has not ended") };
        let ended = ending.clone().into_ended(&self.0.session, trellis_domain::Timestamp::from_micros(0));
        self.0.record(Name::end(), Body::from(ended));
        self
    }
}

const SOUND: &str = r#"{"sound": true, "problem": "", "advice": "Ask who owned it before."}"#;
const WANTING: &str = r#"{"sound": false, "problem": "It is about Y.", "advice": "Name X in full."}"#;

/// A critique that is sound, one that is not, one that needs a second asking and one that cannot be had.
pub(super) fn samples() -> Vec<Vec<Record>> {
    let mut whole = Thinking::new();
    whole.searches(1, "X").finds(1, "X belongs to Z.").says(1, SOUND);
    whole.searches(2, "before").finds(2, "Y belonged to Q.").says(2, "hm").says(2, WANTING);
    whole.searches(3, "X before").finds(3, "nobody").says(3, "hm").says(3, "hm");
    whole.says(4, "Thought: enough\nFinal Answer: Z.").end(4);
    let mut cut = Thinking::new();
    cut.searches(1, "X").finds(1, "X belongs to Z.").says(1, "hm");
    let ended = Ending::failed(Termination::Cancelled, "enough")
        .into_ended(&cut.0.session, trellis_domain::Timestamp::from_micros(0));
    cut.0.record(Name::end(), Body::from(ended));
    let mut several = Thinking::new();
    let orders = several.orders(1);
    several.0.call(&orders, &[("search", r#"{"question": "X"}"#), ("search", r#"{"question": "Y"}"#)]);
    several.0.observe(Name::observation_of(1, 2), Ok("Y belongs to Q."), None);
    several.finds(1, "X belongs to Z.").says(1, SOUND).says(2, "Thought: enough\nFinal Answer: Z.").end(2);
    vec![whole.records(), cut.records(), several.records()]
}

#[test]
fn each_call_is_judged_before_the_next_step() {
    let mut thinking = Thinking::new();
    thinking.searches(1, "X");
    assert!(matches!(&thinking.orders(1)[..], [Order::Perform(_, Effect::CallTool { .. })]));
    thinking.finds(1, "X belongs to Z.");
    let orders = thinking.orders(1);
    let (name, prompt) = asked(&orders);
    assert_eq!((name.as_str(), prompt.id), ("i1/critique", "reflexion-critique"));
    assert_eq!(prompt.variables["step"]["observation"], "X belongs to Z.");
    thinking.says(1, SOUND);
    assert_eq!(thinking.orders(1), [Order::Open(Name::iteration(2))]);
}

#[test]
fn the_next_step_is_shown_what_was_thought_of_the_last_one() {
    let mut thinking = Thinking::new();
    thinking.searches(1, "X").finds(1, "Y belongs to Z.").says(1, WANTING);
    let orders = thinking.orders(2);
    let (_, prompt) = asked(&orders);
    assert_eq!(prompt.variables["history"][0]["critique"], "It is about Y. Name X in full.");
    assert_eq!(prompt.variables["to_take_up"], "It is about Y. Name X in full.");
    thinking.searches(2, "X in full").finds(2, "X belongs to Z.").says(2, SOUND);
    let orders = thinking.orders(3);
    let (_, prompt) = asked(&orders);
    assert_eq!(prompt.variables["to_take_up"], json!(null), "what is sound needs no correction");
    assert_eq!(prompt.variables["history"][1]["critique"], "Ask who owned it before.");
}

#[test]
fn a_call_that_was_found_wanting_is_not_made_again_unchanged() {
    let mut thinking = Thinking::new();
    thinking.searches(1, "X").finds(1, "Y belongs to Z.").says(1, WANTING).searches(2, "X");
    let orders = thinking.orders(2);
    let [Order::Perform(_, Effect::Report { error })] = &orders[..] else { panic!("{orders:?}") };
    assert!(error.starts_with("this is the call that was found wanting"), "{error}");
    thinking.0.report(&orders);
    // What was not done needs another judgement all the same: it is a call.
    assert_eq!(asked(&thinking.orders(2)).0.as_str(), "i2/critique");
    let mut other = Thinking::new();
    other.searches(1, "X").finds(1, "Y belongs to Z.").says(1, WANTING).searches(2, "X in full");
    assert!(matches!(&other.orders(2)[..], [Order::Perform(_, Effect::CallTool { .. })]));
}

#[test]
fn a_critique_that_cannot_be_had_keeps_nobody_from_going_on() {
    let mut thinking = Thinking::new();
    thinking.searches(1, "X").finds(1, "X belongs to Z.").says(1, "Looks fine to me.");
    let orders = thinking.orders(1);
    let (name, prompt) = asked(&orders);
    assert_eq!(name.as_str(), "i1/critique/retry");
    assert!(prompt.variables["problem"].as_str().unwrap().contains("it is not JSON"));
    thinking.says(1, r#"{"sound": false}"#);
    assert_eq!(thinking.orders(1), [Order::Open(Name::iteration(2))]);
    let mut dead = Thinking::new();
    dead.searches(1, "X").finds(1, "X belongs to Z.");
    let orders = dead.orders(1);
    dead.0.fail(&orders, "no model");
    assert_eq!(dead.orders(1), [Order::Open(Name::iteration(2))]);
}

#[test]
fn what_is_not_a_call_is_not_judged() {
    let mut thinking = Thinking::new();
    thinking.says(1, "hm");
    let orders = thinking.orders(1);
    thinking.0.report(&orders);
    assert_eq!(thinking.orders(1), [Order::Open(Name::iteration(2))]);
    thinking.says(2, "Thought: enough\nFinal Answer: Z.");
    assert_eq!(thinking.orders(2), [Order::End(Ending::answered(Termination::FinalAnswer, "Z."))]);
}

#[test]
fn a_critique_is_told_in_its_own_words() {
    let records = &samples()[0];
    let replied = |name: &str| records.iter().find(|record| record.header.name.as_str() == name).unwrap();
    let record = replied("i2/critique/retry");
    let mut told = record.body.as_replied().unwrap().clone();
    told.prompt.id = prompt::CRITIQUE.to_owned();
    let notice = notice(&record.header.name, &told);
    assert_eq!(notice.kind, "critique");
    assert_eq!(
        json!(notice.details),
        json!({"sound": false, "problem": "It is about Y.", "advice": "Name X in full."})
    );
}

#[test]
fn the_trace_shows_each_critique_behind_its_observation() {
    let quads = crate::project(&samples()[0]);
    let trace = trellis_provenance::trace(&quads);
    let ids = trace.sessions[0].steps.iter().map(|step| step.id().rsplit("agent:S/").next().unwrap().to_owned());
    let ids: Vec<_> = ids.collect();
    let expected = [
        "pattern-decision",
        "i1",
        "i1/observation",
        "i1/critique",
        "i2",
        "i2/observation",
        "i2/critique",
        "i3",
        "i3/observation",
        "i3/critique",
        "final",
    ];
    assert_eq!(ids, expected);
    let acts: Vec<_> = trace.sessions[0]
        .steps
        .iter()
        .filter_map(|step| {
            let trellis_provenance::Step::PatternAct(act) = step else { return None };
            Some((act.facts.get("sound").cloned(), act.error.is_some()))
        })
        .collect();
    let sound = |word: &str| Some(vec![word.to_owned()]);
    assert_eq!(acts, [(sound("true"), false), (sound("false"), false), (None, true)]);
}
