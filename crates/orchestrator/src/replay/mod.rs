//! A run replayed: because patterns are pure, every record can be derived again from those before it and the configuration
//! that it is pinned to, and compared.
//!
//! What a model or a tool really said is not known here: the log and checkpoints kept elsewhere bind that. Everything that
//! followed from it is: what was read out of a reply, what was decided, ordered, sent out, joined, and how it ended.

mod difference;
mod session;

use crate::decide::{TOO_LATE, ended_below, orders, run_is_over};
use crate::fan_in::{end_of, member, unjoined};
use crate::given_up::was_given_up;
use crate::handling::{causes_after, causes_of, heard};
use difference::differs;
use session::Replayed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trellis_domain::config::Settings;
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, JoinCause, Joined, Member, Parent};
use trellis_domain::record::{Accepted, Body, Cause, Ended, Header, Name, Record};
use trellis_domain::run::Termination;
use trellis_domain::usage::Usage;
use trellis_domain::{Hash, SessionId};
use trellis_patterns::{Ending, Order, Session, Turn, fan_out, is_implemented};

/// Since this format a record holds everything that its replay needs.
pub const REPLAYED: u16 = 4;

/// The configuration of a given hash.
pub type Configurations<'a> = dyn Fn(Hash) -> Option<Arc<Settings>> + 'a;

/// What came of a replay.
#[derive(Debug, Default)]
pub struct Replay {
    /// What does not follow from what came before it, each with the record's name.
    pub faults: Vec<String>,
    /// Why the run, or a part of it, was not replayed; nothing if all of it was.
    pub gaps: Vec<String>,
    /// The sessions of patterns that this program does not have.
    pub unknown: BTreeSet<SessionId>,
}

impl Replay {
    /// Nothing was replayed, for this reason.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self { gaps: vec![reason.into()], ..Self::default() }
    }
}

/// Derives every record again. Runs with records of older formats are not replayed, nor are sessions of patterns that this
/// program does not have.
pub fn replay(records: &[Arc<Record>], configurations: &Configurations<'_>) -> Replay {
    if let Some(format) = records.iter().map(|record| record.header.format).find(|format| *format < REPLAYED) {
        return Replay::skipped(format!("it has records of format {format}, which say too little for that"));
    }
    let mut run = Run { sessions: BTreeMap::new(), found: Replay::default(), outage_ms: outage_of(records) };
    for record in records {
        run.take(record, configurations);
    }
    run.found
}

/// For how long nobody served the store during the run, as its end says: deadlines moved by no more than that. Not known
/// before it has ended.
fn outage_of(records: &[Arc<Record>]) -> Option<u64> {
    let mut root = records.iter().filter(|record| record.header.session == record.header.run);
    root.find_map(|record| record.body.as_ended()).map(|ended| ended.outage_ms)
}

struct Run {
    sessions: BTreeMap<SessionId, Replayed>,
    found: Replay,
    outage_ms: Option<u64>,
}

impl Run {
    fn take(&mut self, record: &Arc<Record>, configurations: &Configurations<'_>) {
        let id = record.header.session.clone();
        if let Some(pattern) = record.body.as_routed().map(|routed| &routed.pattern).filter(|it| !is_implemented(it)) {
            self.found.gaps.push(format!("this program has no pattern `{pattern}`, which session {id} has"));
            self.found.unknown.insert(id.clone());
        }
        let found = match &record.body {
            _ if self.found.unknown.contains(&id) => Vec::new(),
            Body::Accepted(accepted) => self.begin(&record.header, accepted, configurations),
            Body::Routed(_)
            | Body::Replied(_)
            | Body::Observed(_)
            | Body::FannedOut(_)
            | Body::Joined(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::Parked(_)
            | Body::Settled(_)
            | Body::Told(_)
            | Body::Ended(_) => match self.sessions.get(&id) {
                Some(replayed) => self.check(replayed, record),
                None => vec!["nothing began its session".to_owned()],
            },
        };
        let found = found.into_iter().chain(misnamed(record));
        self.found.faults.extend(found.map(|what| format!("record {id}/{}: {what}", record.header.name)));
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
        let session = Session::new(settings, Arc::default());
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
            Body::Intended(intended) => replayed.intended(header, intended),
            Body::InputRequired(asked) => replayed.input_required(header, asked),
            Body::Observed(observed) => replayed.observed(header, observed),
            Body::FannedOut(fan_out) => replayed.fanned_out(header, fan_out, self.outage_ms),
            Body::Joined(joined) => self.joined(replayed, header, joined),
            Body::Parked(parked) => replayed.parked(header, parked, self.outage_ms),
            Body::Settled(settled) => replayed.settled(header, settled),
            Body::Told(_) => replayed.told(header),
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
        let mut expected = match record.body.as_joined() {
            Some(joined) => self.causes_of_join(replayed.session.fan_out(joined.round)?, joined),
            None => causes_of(&replayed.session, &header.name),
        };
        expected.extend(heard(&record.body));
        let begun = record.body.as_observed().and_then(|observed| replayed.begun_call(&header.name, observed));
        if begun.is_none() {
            // Whoever made a call that was made twice may not have known what its tool had asked the other one.
            let rounds = replayed.session.inputs(&header.name);
            let mut known = (0..rounds).rev().map(|n| causes_after(&replayed.session, &header.name, n));
            let said: BTreeSet<&Cause> = header.causes.iter().collect();
            let is_said = |causes: &Vec<Cause>| causes.iter().collect::<BTreeSet<_>>() == said;
            expected = known.find(is_said).unwrap_or(expected);
        }
        let asked = record.body.as_input_required().filter(|asked| asked.intent > 0);
        if let Some((asked, (about, _))) = asked.zip(header.name.as_input()) {
            expected = vec![Name::intent(&about, asked.intent).into()];
        }
        if begun.is_some() {
            // It follows from the time when it was about to be made that it belongs to, of which there may be several.
            let mut intents = (1..=replayed.session.intents(&header.name)).map(|n| Name::intent(&header.name, n));
            expected =
                intents.find(|it| header.causes == [Cause::from(it.clone())]).map(Cause::from).into_iter().collect();
        }
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

    /// The fan-out, and the end of every subagent that was there when its end was looked for.
    fn causes_of_join(&self, fan_out: &FannedOut, joined: &Joined) -> Vec<Cause> {
        let unread =
            |session: &SessionId| joined.members.iter().any(|it| it.session == *session && it.was_unreadable());
        let sessions = fan_out.goals.iter().map(|goal| &goal.session);
        let ends = sessions.filter(|session| self.has_ended(session) && !unread(session));
        std::iter::once(Cause::from(Name::fan_out(fan_out.round))).chain(ends.map(end_of)).collect()
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
            let is_own = found.session == goal.session && found.index == goal.index && found.goal == goal.goal;
            match end {
                // Its records could not be read at that moment, and the join says so.
                _ if is_own && found.was_unreadable() => {}
                Some(end) => faults.extend(differs(&member(goal, end.clone()), found)),
                None => faults.push(format!("subagent {} had not ended", goal.index)),
            }
        }
        let own = (&joined.correlation, joined.round) == (&fan_out.correlation, fan_out.round);
        let in_time = joined.cause == JoinCause::AllEnded || header.time >= fan_out.deadline;
        let nobody_missing = joined.cause == JoinCause::Deadline && !joined.members.iter().any(Member::is_missing);
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
        let mut orders = replayed.open.iter().flat_map(|name| orders(session, &turn(name)));
        let decided = orders.find_map(|order| if let Order::End(ending) = order { Some(ending) } else { None });
        let said = Ending {
            reason: ended.reason,
            answer: ended.answer.as_ref().map(Document::text).unwrap_or_default().to_owned(),
            error: ended.error.clone(),
            missing: ended.missing.clone(),
            by: ended.by.clone(),
        };
        let from_outside = Ending { answer: String::new(), missing: Vec::new(), ..said.clone() };
        // Outages are not known here: they only put it off.
        let over = run_is_over(session, &turn(&Name::end()));
        let expected = match (ended.reason, decided) {
            // Somebody wished it, or somebody above ended it: that is not decided here.
            (Termination::Cancelled, _) => from_outside,
            (Termination::Timeout, _) if wound_up(ended) => from_outside,
            (Termination::Timeout, _) => {
                over.unwrap_or_else(|| Ending::failed(Termination::Error, "its time was not over"))
            }
            // A pattern may pass on what a subagent was given up with: then it is its own decision all the same.
            (Termination::Error, decided)
                if was_given_up(ended) && decided.as_ref().is_none_or(|decided| decided.error != ended.error) =>
            {
                from_outside
            }
            (_, Some(decided)) => decided,
            // The process gave it up: the reason is all there is.
            (Termination::Error, None) => from_outside,
            (_, None) => return vec!["nothing ordered this end".to_owned()],
        };
        let mut expected = Ending { by: ended.by.clone(), ..expected }.into_ended(session, header.time);
        if let Some(total) = &mut expected.total {
            for (_, goal) in unjoined(session) {
                let end = self.sessions.get(&goal.session).and_then(|it| it.session.ended());
                session.add_subagent(total, end.map_or(&Usage::default(), Ended::total));
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
        Body::Parked(parked) => Name::park(parked.number),
        Body::Settled(settled) => Name::park_decision(settled.number),
        // Its number is looked at with those before it.
        Body::Told(_) => return None,
        Body::Ended(_) => Name::end(),
        Body::Replied(_) | Body::Intended(_) | Body::InputRequired(_) | Body::Observed(_) => return None,
    };
    (record.header.name != name).then(|| format!("it should be called {name}"))
}

/// Whether an end says that somebody above did not wait any longer.
fn wound_up(ended: &Ended) -> bool {
    let above = Termination::ALL.iter().filter_map(|reason| ended_below(*reason).error);
    let told = above.chain([TOO_LATE.to_owned()]);
    told.into_iter().any(|told| ended.error.as_ref() == Some(&told))
}
