//! A run replayed: because patterns are pure, every record can be derived again from those before it and the configuration
//! that it is pinned to, and compared.
//!
//! What a model or a tool really said is not known here: the log and checkpoints kept elsewhere bind that. Everything that
//! followed from it is: what was read out of a reply, what was decided, ordered, sent out, joined, and how it ended.

use crate::decide::{TOO_LATE, ended_below, time_is_up};
use crate::fan_in::{end_of, member, unjoined};
use crate::handling::causes_of;
use crate::perform::{idempotency_key, incomplete_reason, outcome_of_report};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::config::Settings;
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, JoinCause, Joined, Parent};
use trellis_domain::record::{
    Accepted, Body, Cause, Core, Ended, Header, Name, Observed, Reading, Record, Replied, Routed,
};
use trellis_domain::run::Termination;
use trellis_domain::usage::Usage;
use trellis_domain::{Hash, SessionId, Timestamp};
use trellis_patterns::router::{self, Wishes};
use trellis_patterns::{Effect, Ending, Order, PromptOrder, Session, Turn, fan_out, pattern};

/// Since this format a record holds everything that its replay needs.
pub const REPLAYED: u16 = 4;

/// The configuration of a given hash.
pub type Configurations<'a> = dyn Fn(Hash) -> Option<Arc<Settings>> + 'a;

/// What does not follow from what came before it, each with the record's name. Records of older formats, and runs whose
/// texts were erased, are not replayed.
pub fn replay(records: &[Arc<Record>], configurations: &Configurations<'_>) -> Vec<String> {
    if records.iter().any(|record| record.header.format < REPLAYED) {
        return Vec::new();
    }
    let mut run = Run { sessions: BTreeMap::new(), faults: Vec::new() };
    for record in records {
        run.take(record, configurations);
    }
    run.faults
}

struct Run {
    sessions: BTreeMap<SessionId, Replayed>,
    faults: Vec<String>,
}

/// A session as far as it was replayed.
struct Replayed {
    session: Session,
    /// The turns that are open, but for those of fan-ins.
    open: Vec<Name>,
    /// How a subagent is routed, as its supervisor decided.
    routing: Option<Routed>,
}

impl Run {
    fn take(&mut self, record: &Arc<Record>, configurations: &Configurations<'_>) {
        let id = record.header.session.clone();
        let found = match &record.body {
            Body::Accepted(accepted) => self.begin(&record.header, accepted, configurations),
            _ => match self.sessions.get(&id) {
                Some(replayed) => self.check(replayed, record),
                None => vec!["nothing began its session".to_owned()],
            },
        };
        let found = found.into_iter().chain(misnamed(record));
        self.faults.extend(found.map(|what| format!("record {id}/{}: {what}", record.header.name)));
        if let Some(replayed) = self.sessions.get_mut(&id) {
            replayed.apply(record);
        }
    }

    /// A subagent begins as its supervisor's fan-out says. What the root was asked is given.
    fn begin(&mut self, header: &Header, accepted: &Accepted, configurations: &Configurations<'_>) -> Vec<String> {
        let settings = if header.config == Hash::ZERO { Some(Arc::default()) } else { configurations(header.config) };
        let Some(settings) = settings else {
            return vec![format!("its configuration {} is not there", header.config)];
        };
        let session = Session::new(settings, accepted.operator.clone().unwrap_or_default());
        let mut replayed = Replayed { session, open: vec![Name::route()], routing: None };
        let sent_out = |parent: &Parent| Cause::elsewhere(parent.session.clone(), Name::fan_out(parent.round));
        let mut faults = Vec::new();
        if !header.causes.iter().eq(accepted.parent.as_ref().map(sent_out).iter()) {
            faults.push("it follows from something else than what began it".to_owned());
        }
        if let Some(parent) = &accepted.parent {
            let above = self.sessions.get(&parent.session).map(|above| &above.session);
            let sent_out = above.and_then(|above| Some((above, above.fan_out(parent.round)?)));
            let goal = sent_out.and_then(|(above, fan_out)| {
                let goal =
                    fan_out.goals.iter().find(|goal| goal.index == parent.index && goal.session == header.session)?;
                fan_out::child(above, fan_out, goal)
            });
            match goal {
                Some((expected, routing)) => {
                    faults.extend(differs(&expected, accepted));
                    replayed.routing = Some(routing);
                }
                None => faults.push("no fan-out began it".to_owned()),
            }
            let pinned = above.and_then(|above| above.record(&Name::session())).map(|record| record.header.config);
            if pinned != Some(header.config) {
                faults.push("it is not pinned to the configuration of its run".to_owned());
            }
        }
        self.sessions.insert(header.session.clone(), replayed);
        faults
    }

    fn check(&self, replayed: &Replayed, record: &Record) -> Vec<String> {
        let header = &record.header;
        let mut faults = match &record.body {
            Body::Accepted(_) => Vec::new(),
            Body::Routed(routed) => replayed.routed(header, routed),
            Body::Replied(replied) => replayed.replied(header, replied),
            Body::Observed(observed) => replayed.observed(header, observed),
            Body::FannedOut(fan_out) => replayed.fanned_out(header, fan_out),
            Body::Joined(joined) => self.joined(replayed, header, joined),
            Body::Ended(ended) => self.ended(replayed, header, ended),
        };
        let pinned = replayed.session.record(&Name::session()).map(|first| first.header.config);
        if pinned != Some(header.config) {
            faults.push("it is not pinned to the configuration of its session".to_owned());
        }
        if !header.late {
            faults.extend(self.causes(replayed, record));
        }
        faults
    }

    /// Everything that it follows from, and nothing else.
    fn causes(&self, replayed: &Replayed, record: &Record) -> Option<String> {
        let header = &record.header;
        let mut expected: Vec<Cause> = match &record.body {
            Body::Joined(joined) => {
                let fan_out = replayed.session.fan_out(joined.round)?;
                let ends = fan_out.goals.iter().map(|goal| &goal.session).filter(|session| self.has_ended(session));
                let ends = ends.map(end_of);
                std::iter::once(Cause::from(Name::fan_out(joined.round))).chain(ends).collect()
            }
            _ => causes_of(&replayed.session, &header.name),
        };
        if record.body.as_ended().is_some() {
            let below = unjoined(&replayed.session).map(|(_, goal)| &goal.session);
            expected.extend(below.filter(|session| self.has_ended(session)).map(end_of));
        }
        let mut found = header.causes.clone();
        expected.sort();
        found.sort();
        (expected != found).then(|| {
            let list = |causes: &[Cause]| causes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!("it says that it follows from {}, but it follows from {}", list(&found), list(&expected))
        })
    }

    fn has_ended(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_some_and(|replayed| replayed.session.ended().is_some())
    }

    fn joined(&self, replayed: &Replayed, header: &Header, joined: &Joined) -> Vec<String> {
        let Some(fan_out) = replayed.session.fan_out(joined.round) else {
            return vec!["there is no fan-out to join".to_owned()];
        };
        if replayed.session.joined(joined.round).is_some() {
            return vec!["the fan-out is joined already".to_owned()];
        }
        let mut faults = Vec::new();
        if joined.members.len() != fan_out.goals.len() {
            faults.push(format!("it joins {} of {} subagents", joined.members.len(), fan_out.goals.len()));
        }
        for (goal, found) in fan_out.goals.iter().zip(&joined.members) {
            let end = self.sessions.get(&goal.session).and_then(|it| it.session.ended());
            // A subagent whose records could not be read has left none, and the join says so.
            let expected = end.map(|end| member(goal, end.clone()));
            faults.extend(expected.and_then(|expected| differs(&expected, found)));
        }
        let own = (&joined.correlation, joined.round) == (&fan_out.correlation, fan_out.round);
        let in_time = joined.cause == JoinCause::AllEnded || header.time >= fan_out.deadline;
        let nobody_missing = joined.cause == JoinCause::Deadline && !joined.members.iter().any(|it| it.is_missing());
        faults.extend((!own).then(|| "it joins another fan-out".to_owned()));
        faults.extend((!in_time || nobody_missing).then(|| format!("its cause cannot be {}", joined.cause)));
        faults
    }

    fn ended(&self, replayed: &Replayed, header: &Header, ended: &Ended) -> Vec<String> {
        let session = &replayed.session;
        if session.ended().is_some() {
            return vec!["the session has ended already".to_owned()];
        }
        let turn = |name: &Name| Turn { name: name.clone(), now: header.time };
        let orders = replayed.open.iter().flat_map(|name| orders(session, &turn(name)));
        let decided =
            orders.filter_map(|order| if let Order::End(ending) = order { Some(ending) } else { None }).next();
        let said = Ending {
            reason: ended.reason,
            answer: ended.answer.as_ref().map(Document::text).unwrap_or_default().to_owned(),
            error: ended.error.clone(),
            missing: ended.missing.clone(),
            by: ended.by.clone(),
        };
        let from_outside = Ending { answer: String::new(), missing: Vec::new(), ..said.clone() };
        let late = time_is_up(session, &turn(&Name::end()));
        let expected = match (ended.reason, decided) {
            // Somebody wished it, or somebody above ended it: that is not decided here.
            (Termination::Cancelled, _) => from_outside,
            (Termination::Timeout, _) if wound_up(ended) => from_outside,
            (Termination::Timeout, _) => {
                late.unwrap_or_else(|| Ending::failed(Termination::Error, "its time was not over"))
            }
            (_, Some(decided)) => decided,
            // The process gave it up: the reason is all there is.
            (Termination::Error, None) => from_outside,
            (_, None) => return vec!["nothing ordered this end".to_owned()],
        };
        let mut expected = Ending { by: ended.by.clone(), ..expected }.into_ended(session, header.time);
        if let Some(total) = &mut expected.total {
            for (_, goal) in unjoined(session) {
                if let Some(end) = self.sessions.get(&goal.session).and_then(|it| it.session.ended()) {
                    total.add(end.total());
                }
            }
        }
        expected.outage_ms = ended.outage_ms;
        differs(&expected, ended).into_iter().collect()
    }
}

/// What has one name in every pattern has it.
fn misnamed(record: &Record) -> Option<String> {
    let name = match &record.body {
        Body::Accepted(_) => Name::session(),
        Body::Routed(_) => Name::pattern_decision(),
        Body::FannedOut(fan_out) => Name::fan_out(fan_out.round),
        Body::Joined(joined) => Name::join(joined.round),
        Body::Ended(_) => Name::end(),
        Body::Replied(_) | Body::Observed(_) => return None,
    };
    (record.header.name != name).then(|| format!("it should be called {name}"))
}

/// Whether an end says that somebody above did not wait any longer.
fn wound_up(ended: &Ended) -> bool {
    let above = Termination::ALL.iter().filter_map(|reason| ended_below(*reason).error);
    let told = above.chain([TOO_LATE.to_owned()]);
    told.into_iter().any(|told| ended.error.as_ref() == Some(&told))
}

fn orders(session: &Session, turn: &Turn) -> Vec<Order> {
    match turn.name.core() {
        Some(Core::Route) => router::decide(session, turn),
        Some(_) => Vec::new(),
        None => pattern(session.routed().map_or("", |routed| &routed.pattern)).decide(session, turn),
    }
}

impl Replayed {
    fn apply(&mut self, record: &Arc<Record>) {
        self.session.apply(Arc::clone(record));
        if record.header.late {
            return;
        }
        match &record.body {
            Body::Routed(routed) => self.open = vec![pattern(&routed.pattern).first_turn()],
            Body::FannedOut(_) => {
                let (session, now) = (&self.session, record.header.time);
                // The turn that sent them out is closed with it.
                self.open.retain(|name| {
                    let orders = orders(session, &Turn { name: name.clone(), now });
                    !orders.iter().any(|order| matches!(order, Order::FanOut(_)))
                });
            }
            Body::Joined(joined) => {
                let routed = self.session.routed().map_or("", |routed| &routed.pattern);
                self.open.push(pattern(routed).after_join(&self.session, joined.round));
            }
            Body::Accepted(_) | Body::Replied(_) | Body::Observed(_) | Body::Ended(_) => {}
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

    /// The effect that was ordered under a name, if it was.
    fn ordered(&self, header: &Header) -> Option<Effect> {
        let turn = |name: &Name| Turn { name: name.clone(), now: header.time };
        let orders = self.open.iter().flat_map(|name| orders(&self.session, &turn(name)));
        orders.into_iter().find_map(|order| match order {
            Order::Perform(name, effect) if name == header.name => Some(effect),
            _ => None,
        })
    }

    fn routed(&self, header: &Header, routed: &Routed) -> Vec<String> {
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

    fn replied(&self, header: &Header, replied: &Replied) -> Vec<String> {
        match self.ordered(header) {
            Some(Effect::AskModel(order)) => self.read_again(&order, replied),
            Some(Effect::CallTool { .. } | Effect::Report { .. }) => vec!["no model was to be asked here".to_owned()],
            None => vec!["nothing ordered it".to_owned()],
        }
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
        let expected = if let Reading::Failed { reason } = &replied.reading {
            let reading = Reading::Failed { reason: reason.clone() };
            Replied {
                thought: None,
                reading,
                decision: order.offered.clone(),
                citations: Vec::new(),
                ..replied.clone()
            }
        } else {
            let mut read = order.reader.read(replied.raw.text(), order.offered.clone());
            if let Some(incomplete) = replied.incomplete {
                let limit = self.session.limits().max_reply_bytes;
                read.reading = Reading::Unusable { reason: incomplete_reason(incomplete, limit) };
                read.decisions.iter_mut().for_each(|decision| decision.chosen.clear());
            } else if replied.enforced {
                crate::perform::held_while_decoding(&mut read.decisions);
            }
            let mended =
                [&replied.mended[..replied.mended.len().saturating_sub(read.mended.len())], &read.mended].concat();
            let (thought, reading, decision, citations) = (read.thought, read.reading, read.decisions, read.citations);
            Replied { thought, reading, decision, citations, mended, ..replied.clone() }
        };
        faults.extend(differs(&expected, replied));
        faults
    }

    fn observed(&self, header: &Header, observed: &Observed) -> Vec<String> {
        match self.ordered(header) {
            Some(Effect::Report { error }) => as_reported(&error, observed),
            Some(Effect::CallTool { tool, arguments }) => {
                let Some(item) = self.session.settings().tools.get(&tool) else {
                    return as_reported(&format!("there is no tool `{tool}`"), observed);
                };
                let key = Some(idempotency_key(&header.session, &header.name, &arguments));
                let state = if observed.error.is_none() { item.state.clone() } else { None };
                let mut usage = Usage::default();
                observed.calls.iter().for_each(|call| usage.add(&call.usage()));
                let told = observed.error.as_ref().map(|error| Document::stored(format!("Error: {error}")));
                let result = told.unwrap_or_else(|| observed.result.clone());
                let expected = Observed { idempotency_key: key, state, usage, result, ..observed.clone() };
                differs(&expected, observed).into_iter().collect()
            }
            Some(Effect::AskModel(_)) => vec!["no tool was to be called here".to_owned()],
            None => vec!["nothing ordered it".to_owned()],
        }
    }

    /// The deadline counts from the moment of the decision, which lies between what it follows from and this record.
    fn fanned_out(&self, header: &Header, fan_out: &FannedOut) -> Vec<String> {
        let times = self.session.tips().iter().filter_map(|name| self.session.record(name)).map(|it| it.header.time);
        let before = times.max().unwrap_or_default();
        let at = |now: Timestamp| {
            let all = self.open.iter().flat_map(move |name| orders(&self.session, &Turn { name: name.clone(), now }));
            all.into_iter().find_map(|order| if let Order::FanOut(fan_out) = order { Some(*fan_out) } else { None })
        };
        let Some((earliest, latest)) = at(before).zip(at(header.time)) else {
            return vec!["nothing ordered it".to_owned()];
        };
        let expected = FannedOut { deadline: fan_out.deadline, ..latest.clone() };
        let mut faults: Vec<_> = differs(&expected, fan_out).into_iter().collect();
        // Rounded to milliseconds, what lies between two moments may come out a little beside what both give.
        const ROUNDING_MS: u64 = 2;
        let (first, last) = (earliest.deadline.min(latest.deadline), earliest.deadline.max(latest.deadline));
        if fan_out.deadline.plus_ms(ROUNDING_MS) < first || fan_out.deadline > last.plus_ms(ROUNDING_MS) {
            faults.push("its deadline does not follow from the limits".to_owned());
        }
        faults
    }
}

fn as_reported(error: &str, observed: &Observed) -> Vec<String> {
    let Body::Observed(expected) = outcome_of_report(error) else { return Vec::new() };
    differs(&expected, observed).into_iter().collect()
}

/// Where two values differ first, with what should be there.
fn differs<T: Serialize>(expected: &T, found: &T) -> Option<String> {
    let (expected, found) = (serde_json::to_value(expected).ok()?, serde_json::to_value(found).ok()?);
    let (path, expected, found) = difference("", &expected, &found)?;
    let short = |value: &Value| {
        let text = value.to_string();
        if text.chars().count() > 120 { format!("{}…", text.chars().take(120).collect::<String>()) } else { text }
    };
    Some(format!("{path} says {}, but {} follows", short(found), short(expected)))
}

fn difference<'v>(path: &str, expected: &'v Value, found: &'v Value) -> Option<(String, &'v Value, &'v Value)> {
    if expected == found {
        return None;
    }
    let inside = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (expected, found) {
        (Value::Object(one), Value::Object(other)) => {
            let null = &Value::Null;
            let keys = one.keys().chain(other.keys());
            keys.map(|key| (inside(key), one.get(key).unwrap_or(null), other.get(key).unwrap_or(null)))
                .find_map(|(path, one, other)| difference(&path, one, other))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let places = one.iter().zip(other).enumerate();
            places
                .map(|(at, (one, other))| (inside(&at.to_string()), one, other))
                .find_map(|(path, one, other)| difference(&path, one, other))
        }
        _ => Some((path.to_owned(), expected, found)),
    }
}
