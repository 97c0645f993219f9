//! One session replayed: which turns are open, what each of them orders, and whether a record is what was ordered.

use super::difference::differs;
use crate::decide::{orders, orders_for};
use crate::park::decision;
use crate::perform::{
    held_while_decoding, idempotency_key, incomplete_reason, outcome_as_told, outcome_of_agent, outcome_of_decline,
    outcome_of_report,
};
use std::sync::Arc;
use trellis_domain::config::ToolItem;
use trellis_domain::decision::DecidedBy;
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, Goal};
use trellis_domain::input;
use trellis_domain::park::{Parked, Settled, answer};
use trellis_domain::record::{
    Body, Header, Incomplete, InputRequired, Intended, Name, Observed, Reading, Record, Replied, Routed,
};
use trellis_domain::usage::Usage;
use trellis_domain::{Timestamp, ToolName};
use trellis_patterns::guard::{self, Asker};
use trellis_patterns::router::{self, Wishes};
use trellis_patterns::{
    Effect, Order, PromptOrder, ReplyForm, Session, Turn, after_join, agents_of, first_turn, form, read_in, spending,
};

/// Rounded to milliseconds, what lies between two moments may come out a little beside what both give.
const ROUNDING_MS: u64 = 2;

/// A session as far as it was replayed.
pub(super) struct Replayed {
    pub(super) session: Session,
    /// The turns that are open, but for those of fan-ins.
    pub(super) open: Vec<Name>,
    /// How a subagent is routed, as its supervisor decided.
    pub(super) routing: Option<Routed>,
}

impl Replayed {
    pub(super) fn apply(&mut self, record: &Arc<Record>) {
        self.session.apply(Arc::clone(record));
        if record.header.late {
            return;
        }
        match &record.body {
            Body::Routed(routed) => self.open = vec![first_turn(&routed.pattern)],
            Body::FannedOut(FannedOut { turn: Some(caller), .. }) => self.open.retain(|name| name != caller),
            Body::FannedOut(_) => {
                let (session, now) = (&self.session, record.header.time);
                // The turn that sent them out is closed with it.
                self.open.retain(|name| {
                    let orders = orders(session, &Turn { name: name.clone(), now });
                    !orders.iter().any(|order| matches!(order, Order::FanOut(_)))
                });
            }
            Body::Joined(joined) => self.open.push(after_join(&self.session, joined.round)),
            Body::Parked(parked) => self.open.retain(|name| *name != parked.turn),
            Body::Settled(settled) => self.open.extend(self.session.park(settled.number).map(|park| park.turn.clone())),
            Body::Accepted(_)
            | Body::Replied(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::Observed(_)
            | Body::Told(_)
            | Body::Ended(_) => {}
        }
        self.settle(record.header.time);
    }

    /// Closes the turns that nothing is left to do in, and opens what follows.
    fn settle(&mut self, now: Timestamp) {
        let mut names = std::mem::take(&mut self.open);
        while let Some(name) = names.pop() {
            let orders = orders(&self.session, &Turn { name: name.clone(), now });
            let closes =
                !orders.is_empty() && orders.iter().all(|order| matches!(order, Order::Open(_) | Order::Close));
            if !closes {
                self.open.push(name);
                continue;
            }
            for order in orders {
                if let Order::Open(next) = order {
                    names.push(next);
                }
            }
        }
    }

    /// The effect that was ordered under a name, if it was, with calls that were begun still in hand.
    fn ordered(&self, header: &Header, outcome: &Name) -> Option<Effect> {
        let turn = |name: &Name| Turn { name: name.clone(), now: header.time };
        let orders = self.open.iter().flat_map(|name| orders_for(&self.session, &turn(name), Asker::SameHand));
        orders.into_iter().find_map(|order| {
            let Order::Perform(name, effect) = order else { return None };
            (name == *outcome).then_some(effect)
        })
    }

    /// A call was about to be made: it was ordered, it is one that this is recorded of, and it was not about to be made
    /// already.
    pub(super) fn intended(&self, header: &Header, intended: &Intended) -> Vec<String> {
        let Some((outcome, n)) = header.name.as_intent() else { return vec!["it is not called an intent".to_owned()] };
        let Some(Effect::CallTool { tool, arguments }) = self.ordered(header, &outcome) else {
            return vec!["nothing ordered the call".to_owned()];
        };
        let mut faults = Vec::new();
        let asked = self.session.last_input(&outcome).map_or(0, |asked| asked.intent);
        let is_new = n <= asked + 1 || self.session.park_about(&Name::intent(&outcome, n - 1)).is_some();
        if !is_new || n != self.session.intents(&outcome) + 1 || !guard::is_recorded_before(&self.session, &tool) {
            faults.push("it is not recorded of this call".to_owned());
        }
        let expected = Intended { idempotency_key: idempotency_key(&header.session, &outcome, &arguments), tool };
        faults.extend(differs(&expected, intended));
        faults
    }

    pub(super) fn routed(&self, header: &Header, routed: &Routed) -> Vec<String> {
        if self.session.routed().is_some() {
            return vec!["the session is routed already".to_owned()];
        }
        let Some(accepted) = self.session.accepted() else { return vec!["nothing was accepted".to_owned()] };
        let (settings, operator) = (self.session.settings(), self.session.operator());
        let without = || router::without_model(settings, &header.workspace, Wishes::of(accepted), operator);
        let by_model = || {
            let orders = router::decide(&self.session, &Turn { name: Name::route(), now: header.time });
            orders.into_iter().find_map(|order| if let Order::Become(routed) = order { Some(*routed) } else { None })
        };
        match self.routing.clone().or_else(without).or_else(by_model) {
            Some(expected) => differs(&expected, routed).into_iter().collect(),
            None => vec!["nothing decided this routing".to_owned()],
        }
    }

    /// What somebody said is given, but it was said one thing after the other, and to a session that could hear it.
    pub(super) fn told(&self, header: &Header) -> Vec<String> {
        let next = Name::told(self.session.told_count().saturating_add(1));
        (header.name != next).then(|| format!("it should be called {next}")).into_iter().collect()
    }

    pub(super) fn replied(&self, header: &Header, replied: &Replied) -> Vec<String> {
        if replied.heard > self.session.told_count() {
            return vec!["its model had heard what nobody had said".to_owned()];
        }
        match self.ordered(header, &header.name) {
            Some(Effect::AskModel(order)) if replied.was_declined() => self.declined(&order, replied),
            Some(Effect::AskModel(order)) => self.read_again(&order, replied),
            Some(
                Effect::CallTool { .. }
                | Effect::Report { .. }
                | Effect::Take { .. }
                | Effect::Bring { .. }
                | Effect::Decline { .. },
            ) => {
                vec!["no model was to be asked here".to_owned()]
            }
            None => vec!["nothing ordered it".to_owned()],
        }
    }

    /// Nobody was asked because a budget was used up, as one is.
    fn declined(&self, order: &PromptOrder, replied: &Replied) -> Vec<String> {
        let reason = replied.reading.problem().unwrap_or_default();
        let reached = spending::reached_before(&self.session, form(&order.reader));
        if !reached.iter().any(|reached| reached == reason) {
            return vec![format!("no model was asked ({reason}), but the budget is not used up")];
        }
        let expected = outcome_of_decline(&self.session, order.id, order.offered.clone(), reason.to_owned());
        differs(&expected, replied).into_iter().collect()
    }

    /// The reply means what its pattern reads out of it, and nothing else.
    fn read_again(&self, order: &PromptOrder, replied: &Replied) -> Vec<String> {
        let mut faults = Vec::new();
        if replied.prompt.id != order.id {
            faults.push(format!("it answers {}, but {} was asked", replied.prompt.id, order.id));
        }
        let template = self.session.settings().prompts.get(order.id).map(|prompt| prompt.hash);
        if replied.prompt.template.is_some() && replied.prompt.template != template {
            faults.push("it was asked with another template than the configuration's".to_owned());
        }
        let limit = self.session.limits().max_reply_bytes;
        // Where there is no reply, nothing was read and nothing chosen.
        let without_reply = match &replied.reading {
            Reading::Failed { reason } => Some(Reading::Failed { reason: reason.clone() }),
            Reading::Unusable { .. } if replied.was_too_long() => {
                Some(Reading::Unusable { reason: incomplete_reason(Incomplete::Context, limit) })
            }
            Reading::Acted { .. } | Reading::Answered { .. } | Reading::Decided { .. } | Reading::Unusable { .. } => {
                None
            }
        };
        let expected = if let Some(reading) = without_reply {
            let (decision, citations) = (order.offered.clone(), Vec::new());
            Replied { thought: None, reading, decision, citations, ..replied.clone() }
        } else {
            let mut read = read_in(&self.session, &order.reader, replied.reply(), order.offered.clone());
            if let Some(incomplete) = replied.incomplete {
                read.reading = Reading::Unusable { reason: incomplete_reason(incomplete, limit) };
                read.decisions.iter_mut().for_each(|decision| decision.chosen.clear());
            } else if replied.enforced {
                held_while_decoding(&mut read.decisions);
            }
            let repairs =
                [&replied.repairs[..replied.repairs.len().saturating_sub(read.repairs.len())], &read.repairs].concat();
            let (thought, reading, decision, citations) = (read.thought, read.reading, read.decisions, read.citations);
            Replied { thought, reading, decision, citations, repairs, ..replied.clone() }
        };
        faults.extend(differs(&expected, replied));
        faults
    }

    /// A tool asked for input: it was called, it may ask, and it had been answered whatever it asked before.
    pub(super) fn input_required(&self, header: &Header, asked: &InputRequired) -> Vec<String> {
        let Some((outcome, n)) = header.name.as_input() else { return vec!["it is not called an input".to_owned()] };
        let Some(Effect::CallTool { tool, arguments }) = self.ordered(header, &outcome) else {
            // It may have been called twice, and the other call has brought something already.
            let brought = self.session.observed(&outcome).and_then(|observed| observed.idempotency_key.as_ref());
            let was_called = brought == Some(&asked.idempotency_key);
            return if was_called { Vec::new() } else { vec!["nothing ordered the call".to_owned()] };
        };
        let mut faults = Vec::new();
        let may_ask = |item: &Arc<ToolItem>| guard::may_ask(&self.session, item);
        let is_next = n == self.session.inputs(&outcome) + 1 && n <= InputRequired::MOST_TIMES;
        if !is_next || !self.session.settings().tools.get(&tool).is_some_and(may_ask) {
            faults.push("the tool was not to be asked about again".to_owned());
        }
        let idempotency_key = idempotency_key(&header.session, &outcome, &arguments);
        let intent = self.session.intents(&outcome);
        faults.extend(differs(&InputRequired { tool, idempotency_key, intent, ..asked.clone() }, asked));
        faults
    }

    pub(super) fn observed(&self, header: &Header, observed: &Observed) -> Vec<String> {
        if let Some(tool) = self.begun_call(&header.name, observed) {
            return self.called(tool, observed.idempotency_key.clone(), observed);
        }
        match self.ordered(header, &header.name) {
            Some(Effect::Report { error }) => as_reported(&error, observed),
            Some(Effect::Bring { tool, session, result }) => {
                let state = self.session.settings().tools.get(&tool).and_then(|item| item.state.clone());
                let Body::Observed(expected) = outcome_of_agent(&session, result, state) else { return Vec::new() };
                differs(&expected, observed).into_iter().collect()
            }
            Some(Effect::Take { tool, result }) => {
                let state = self.session.settings().tools.get(&tool).and_then(|item| item.state.clone());
                let Body::Observed(expected) = outcome_as_told(result, state) else { return Vec::new() };
                differs(&expected, observed).into_iter().collect()
            }
            Some(Effect::CallTool { tool, arguments }) => {
                if observed.idempotency_key.is_none() && self.was_too_dear(&tool, observed) {
                    return as_reported(observed.error.as_deref().unwrap_or_default(), observed);
                }
                let key = idempotency_key(&header.session, &header.name, &arguments);
                self.called(&tool, Some(key), observed)
            }
            Some(Effect::AskModel(_) | Effect::Decline { .. }) => vec!["no tool was to be called here".to_owned()],
            None if self.had_no_agent_left(header, observed) => {
                as_reported(observed.error.as_deref().unwrap_or_default(), observed)
            }
            // The call was made twice, and the other one's tool asked for input meanwhile.
            None if let Some(tool) = self.asked_under(&header.name, observed) => {
                self.called(tool, observed.idempotency_key.clone(), observed)
            }
            None => vec!["nothing ordered it".to_owned()],
        }
    }

    /// The tool that asked for input when it was called under this key.
    fn asked_under(&self, outcome: &Name, observed: &Observed) -> Option<&ToolName> {
        let asked = self.session.last_input(outcome)?;
        (observed.idempotency_key.as_ref() == Some(&asked.idempotency_key)).then_some(&asked.tool)
    }

    /// Whether an agent was not called because others, which have come back since, left no room for it.
    fn had_no_agent_left(&self, header: &Header, observed: &Observed) -> bool {
        let turn = |name: &Name| Turn { name: name.clone(), now: header.time };
        let mut orders = self.open.iter().flat_map(|name| orders(&self.session, &turn(name)));
        let called = orders.find_map(|order| {
            let Order::FanOut(fan_out) = order else { return None };
            fan_out.goals.into_iter().find(|goal| goal.call.as_ref() == Some(&header.name))
        });
        let had_none = |goal: Goal| spending::most_called_before(&self.session, agents_of(&goal.pattern)) == 0;
        called.is_some_and(had_none) && observed.error == Some(spending::no_subagents(&self.session))
    }

    /// Whether a tool was not called because it asks models, for which the budget has no room.
    fn was_too_dear(&self, tool: &ToolName, observed: &Observed) -> bool {
        let asks = self.session.settings().tools.get(tool).is_some_and(|item| item.kind.asks_a_model());
        let reached = spending::reached_before(&self.session, ReplyForm::Whole);
        asks && observed.error.as_ref().is_some_and(|error| reached.contains(error))
    }

    /// The tool of a call that was about to be made, if this is what came of it: it may have come when somebody had
    /// already been asked about it.
    pub(super) fn begun_call(&self, outcome: &Name, observed: &Observed) -> Option<&ToolName> {
        let key = observed.idempotency_key.as_ref()?;
        let intents = (1..=self.session.intents(outcome)).map(|n| Name::intent(outcome, n));
        let mut intended = intents.filter_map(|intent| self.session.record(&intent)?.body.as_intended());
        intended.find(|intended| intended.idempotency_key == *key).map(|intended| &intended.tool)
    }

    /// What can have come of a call of this tool under this key.
    fn called(&self, tool: &ToolName, key: Option<String>, observed: &Observed) -> Vec<String> {
        let Some(item) = self.session.settings().tools.get(tool) else {
            return as_reported(&format!("there is no tool `{tool}`"), observed);
        };
        let state = if observed.error.is_none() { item.state.clone() } else { None };
        let mut usage = Usage::default();
        observed.calls.iter().for_each(|call| usage.add(&call.usage()));
        let told = observed.error.as_ref().map(|error| Document::stored(format!("Error: {error}")));
        let result = told.unwrap_or_else(|| observed.result.clone());
        let expected = Observed { idempotency_key: key, state, usage, result, ..observed.clone() };
        differs(&expected, observed).into_iter().collect()
    }

    pub(super) fn fanned_out(&self, header: &Header, fan_out: &FannedOut, outage_ms: Option<u64>) -> Vec<String> {
        // Steps that go on side by side may each call an agent.
        let find = |order| {
            let Order::FanOut(other) = order else { return None };
            (other.turn == fan_out.turn).then_some(*other)
        };
        let Some((earliest, latest)) = self.ordered_until(header, find) else {
            return vec!["nothing ordered it".to_owned()];
        };
        let expected = FannedOut { deadline: fan_out.deadline, ..latest.clone() };
        let mut faults: Vec<_> = differs(&expected, fan_out).into_iter().collect();
        let between = [earliest.deadline, latest.deadline];
        faults.extend((!lies_between(fan_out.deadline, between, outage_ms)).then(|| TIME.to_owned()));
        faults
    }

    pub(super) fn parked(&self, header: &Header, parked: &Parked, outage_ms: Option<u64>) -> Vec<String> {
        // Steps that go on side by side may each have a question.
        let find = |order| {
            if let Order::Park(other) = order
                && other.about == parked.about
            {
                return Some(*other);
            }
            None
        };
        let Some((earliest, latest)) = self.ordered_until(header, find) else {
            return vec!["nothing ordered it".to_owned()];
        };
        let expected = Parked { expires: parked.expires, ..latest.clone() };
        let mut faults: Vec<_> = differs(&expected, parked).into_iter().collect();
        let between = [earliest.expires, latest.expires];
        faults.extend((!lies_between(parked.expires, between, outage_ms)).then(|| TIME.to_owned()));
        faults
    }

    /// What somebody answered is given, but it was an answer to what was asked, by somebody who may.
    pub(super) fn settled(&self, header: &Header, settled: &Settled) -> Vec<String> {
        let Some(park) = self.session.park(settled.number) else { return vec!["nothing was asked".to_owned()] };
        if self.session.settled(settled.number).is_some() {
            return vec!["it was decided already".to_owned()];
        }
        let mut faults = Vec::new();
        let chosen = settled.decision.chosen.first().map_or("", String::as_str);
        if settled.content.is_some() != (chosen == answer::ANSWER) {
            faults.push("what was asked for belongs to `answer`, and to nothing else".to_owned());
        }
        let content = settled.content.as_ref().map(|content| input::check(&park.forms, content));
        faults.extend(content.and_then(Result::err).map(|why| format!("it is not what was asked for: {why}")));
        let mut expected = Settled { decision: decision(park, chosen, None), ..settled.clone() };
        expected.decision.rationale.clone_from(&settled.decision.rationale);
        if let Some(by) = &settled.by {
            let may = |who: &Vec<String>| by.name.as_ref().is_some_and(|name| who.contains(name));
            if park.who.as_ref().is_some_and(|who| !may(who)) {
                faults.push("whoever answered was not to".to_owned());
            }
        } else {
            expected.decision.decided_by = DecidedBy::Rule;
            (expected.decision.rationale, expected.arguments, expected.result) = (None, None, None);
            expected.content = None;
            if chosen != park.otherwise || header.time < park.expires {
                faults.push("nobody answered, and it is not what was said for that case".to_owned());
            }
        }
        faults.extend(differs(&expected, settled));
        faults
    }

    /// What was ordered, had it been decided as early and as late as it can have been: the decision lies between what it
    /// follows from and this record.
    fn ordered_until<T>(&self, header: &Header, find: impl Fn(Order) -> Option<T>) -> Option<(T, T)> {
        let times = self.session.tips().iter().filter_map(|name| self.session.record(name)).map(|it| it.header.time);
        let at = |now: Timestamp| {
            let all = self.open.iter().flat_map(move |name| orders(&self.session, &Turn { name: name.clone(), now }));
            all.into_iter().find_map(&find)
        };
        at(times.max().unwrap_or_default()).zip(at(header.time))
    }
}

const TIME: &str = "its deadline does not follow from the limits";

/// Whether a time lies between two others. Deadlines may have moved by as long as nobody served the store.
fn lies_between(time: Timestamp, between: [Timestamp; 2], outage_ms: Option<u64>) -> bool {
    let [one, other] = between;
    let too_early = time.plus_ms(ROUNDING_MS) < one.min(other);
    let too_late = outage_ms.is_some_and(|ms| time > one.max(other).plus_ms(ROUNDING_MS + ms));
    !too_early && !too_late
}

fn as_reported(error: &str, observed: &Observed) -> Vec<String> {
    let Body::Observed(expected) = outcome_of_report(error) else { return Vec::new() };
    differs(&expected, observed).into_iter().collect()
}
