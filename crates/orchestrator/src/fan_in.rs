//! The aggregator: are all subagents of a fan-out there? Its only state is the records, so duplicates, reordering,
//! restarts and a second aggregator change nothing.

use crate::decide::{TOO_LATE, ended_below};
use crate::handling::{Handling, causes_of};
use crate::orchestrator::{Orchestrator, TurnError};
use crate::ports::{BoxFuture, JournalError, NewTurn, TurnKey};
use crate::step::{Closing, Decided, ShellStep};
use trellis_domain::fan_out::{FannedOut, Goal, JoinCause, Joined, Member, UNREADABLE};
use trellis_domain::record::{Body, Cause, Core, Ended, Name};
use trellis_domain::run::Termination;
use trellis_domain::usage::Usage;
use trellis_domain::{SessionId, Timestamp, Workspace};
use trellis_patterns::{Ending, Session, Turn, after_join};

/// A session that nobody waits for any more, wound up.
#[derive(Debug)]
struct WindUp {
    /// How the session ended: now, or by itself before.
    end: Ended,
    /// Where that is recorded; none if the session cannot be read.
    recorded: Option<Cause>,
    /// The ends that are to be recorded: its own, and of everything below it.
    records: Vec<Decided>,
    /// The versions of the sessions that these ends were decided from.
    seen: Vec<(SessionId, u64)>,
}

/// How a subagent ended, and where that is recorded; nowhere if its session cannot be read.
type SubagentEnd = (Ended, Option<Cause>);

impl WindUp {
    fn given_up(error: &JournalError) -> Self {
        Self { end: unreadable(error), recorded: None, records: Vec::new(), seen: Vec::new() }
    }
}

/// How a session ended whose records cannot be read, for those who waited for it.
fn unreadable(error: &JournalError) -> Ended {
    Ended {
        reason: Termination::Error,
        answer: None,
        error: Some(format!("{UNREADABLE}{error}")),
        usage: Usage::default(),
        total: None,
        criteria: String::new(),
        missing: Vec::new(),
        left_out: Vec::new(),
        outage_ms: 0,
        by: None,
    }
}

fn no_records(session: &SessionId) -> JournalError {
    JournalError::Damaged(format!("the session {session} has no records"))
}

impl Orchestrator {
    /// Joins if all subagents have ended, or if the deadline has come. Otherwise the turn just closes: the end of
    /// each subagent opens another one.
    pub(crate) async fn fan_in(&self, handling: &Handling, turn: &Turn, round: u32) -> Result<ShellStep, TurnError> {
        let session = &handling.session;
        let Some(fan_out) = session.fan_out(round).filter(|_| session.joined(round).is_none()) else {
            return Ok(ShellStep::Close(Closing::default()));
        };
        let is_deadline = matches!(turn.name.core(), Some(Core::Deadline(_)));
        let outage_ms = session.outage_ms_since_fan_out(round, turn.now);
        if is_deadline && turn.now < fan_out.deadline.plus_ms(outage_ms) {
            return Ok(ShellStep::Wait);
        }
        let Some(ends) = self.ends(&handling.key.scope.workspace, fan_out, turn, is_deadline).await? else {
            return Ok(ShellStep::Close(Closing::default()));
        };
        Ok(ShellStep::Close(self.join(handling, fan_out, ends, outage_ms).await?))
    }

    /// How each subagent ended, in the order of the goals. None as soon as one is missing, unless the deadline has
    /// come and missing ones are waited for no longer.
    async fn ends(
        &self,
        workspace: &Workspace,
        fan_out: &FannedOut,
        turn: &Turn,
        is_deadline: bool,
    ) -> Result<Option<Vec<Option<SubagentEnd>>>, TurnError> {
        // Begins behind the subagent that has just ended: those behind it are the likeliest to be still at work.
        let index = if let Some(Core::Check { index, .. }) = turn.name.core() { index } else { 0 };
        let count = fan_out.goals.len();
        let start = fan_out.goals.iter().position(|goal| goal.index == index).map_or(0, |place| place + 1);
        let mut ends = vec![None; count];
        for place in (start..count).chain(0..start) {
            let goal = &fan_out.goals[place];
            ends[place] = match self.patiently(|journal| journal.end(workspace, &goal.session)).await {
                Ok(end) => end.and_then(|record| Some((record.body.as_ended()?.clone(), Some(end_of(&goal.session))))),
                Err(error) if error.is_unreadable() => Some((unreadable(&error), None)),
                Err(error) => return Err(error.into()),
            };
            if ends[place].is_none() && !is_deadline {
                return Ok(None);
            }
        }
        Ok(Some(ends))
    }

    /// The one join of a fan-out, and the end of every subagent that is missing in it.
    async fn join(
        &self,
        handling: &Handling,
        fan_out: &FannedOut,
        ends: Vec<Option<SubagentEnd>>,
        outage_ms: u64,
    ) -> Result<Closing, TurnError> {
        let mut closing = Closing::default();
        let mut members = Vec::new();
        let mut causes = vec![Cause::from(Name::fan_out(fan_out.round))];
        for (goal, end) in fan_out.goals.iter().zip(ends) {
            let (end, recorded) = if let Some(end) = end {
                end
            } else {
                let ending = Ending::failed(Termination::Timeout, TOO_LATE);
                let wound_up = self.wind_up(handling, &goal.session, &ending).await?;
                closing.records.extend(wound_up.records);
                closing.seen_of_others.extend(wound_up.seen);
                (wound_up.end, wound_up.recorded)
            };
            causes.extend(recorded);
            members.push(member(goal, end));
        }
        let cause = if closing.records.is_empty() { JoinCause::AllEnded } else { JoinCause::Deadline };
        let (round, correlation) = (fan_out.round, fan_out.correlation.clone());
        let joined = Joined { round, correlation, cause, members, outage_ms };
        // Behind the ends that it follows from.
        let (session, name) = (handling.key.session.clone(), Name::join(round));
        closing.records.push(Decided { session, name, causes, body: Body::Joined(joined) });
        closing.close.extend(fan_in_turns(fan_out).filter(|name| *name != handling.key.name));
        let next = after_join(&handling.session, round);
        closing.open.push(NewTurn { session: handling.key.session.clone(), name: next, due: None });
        Ok(closing)
    }

    /// The end of a session: its record, the ends of everything below it that is still at work, and the check turn
    /// on its parent.
    pub(crate) async fn ending(&self, handling: &Handling, ending: Ending) -> Result<Closing, TurnError> {
        let mut closing = Closing::default();
        let (mut below, mut ends) = (Usage::default(), Vec::new());
        for (fan_out, goal) in unjoined(&handling.session) {
            let wound_up = self.wind_up(handling, &goal.session, &ended_below(ending.reason)).await?;
            closing.records.extend(wound_up.records);
            closing.seen_of_others.extend(wound_up.seen);
            closing.close.extend([Name::deadline(fan_out.round), Name::check(fan_out.round, goal.index)]);
            handling.session.add_subagent(&mut below, wound_up.end.total());
            ends.extend(wound_up.recorded);
        }
        let now = self.ports.world.now();
        let mut end = handling.own(Name::end(), Body::from(ended(&handling.session, ending, &below, now)));
        end.causes.extend(ends);
        // Last: whoever follows the run stops listening at the root's end.
        closing.records.push(end);
        let parent = handling.session.accepted().and_then(|accepted| accepted.parent.as_ref());
        closing.open.extend(parent.map(|parent| NewTurn {
            session: parent.session.clone(),
            name: Name::check(parent.round, parent.index),
            due: None,
        }));
        Ok(closing)
    }

    /// Ends a session and all below it, as far as they have not ended by themselves. One that cannot be read cannot be
    /// written to either: it is given up, and those who wait for it go on without it.
    fn wind_up<'a>(
        &'a self,
        handling: &'a Handling,
        session: &'a SessionId,
        ending: &'a Ending,
    ) -> BoxFuture<'a, Result<WindUp, TurnError>> {
        Box::pin(async move {
            let key = TurnKey { session: session.clone(), ..handling.key.clone() };
            let folded = match self.load_without_settings(&key).await {
                Ok(Some(folded)) => folded,
                Ok(None) => return Ok(WindUp::given_up(&no_records(session))),
                Err(TurnError::Journal(error)) if error.is_unreadable() => return Ok(WindUp::given_up(&error)),
                Err(error) => return Err(error),
            };
            if let Some(end) = folded.ended() {
                let recorded = Some(end_of(session));
                return Ok(WindUp { end: end.clone(), recorded, records: Vec::new(), seen: Vec::new() });
            }
            let (mut records, mut below) = (Vec::new(), Usage::default());
            let mut causes = causes_of(&folded, &Name::end());
            let mut seen = vec![(session.clone(), folded.seen())];
            for (_, goal) in unjoined(&folded) {
                let wound_up = self.wind_up(handling, &goal.session, ending).await?;
                records.extend(wound_up.records);
                seen.extend(wound_up.seen);
                folded.add_subagent(&mut below, wound_up.end.total());
                causes.extend(wound_up.recorded);
            }
            let end = ended(&folded, ending.clone(), &below, self.ports.world.now());
            let body = Body::from(end.clone());
            records.push(Decided { session: session.clone(), name: Name::end(), causes, body });
            Ok(WindUp { end, recorded: Some(end_of(session)), records, seen })
        })
    }
}

/// The subagents of fan-outs that have not been joined.
pub(crate) fn unjoined(session: &Session) -> impl Iterator<Item = (&FannedOut, &Goal)> {
    let open = session.fan_outs().filter(|fan_out| session.joined(fan_out.round).is_none());
    open.flat_map(|fan_out| fan_out.goals.iter().map(move |goal| (fan_out, goal)))
}

pub(crate) fn end_of(session: &SessionId) -> Cause {
    Cause::elsewhere(session.clone(), Name::end())
}

/// The turns that a fan-out is joined in: once one of them has done it, the others have lost their purpose.
fn fan_in_turns(fan_out: &FannedOut) -> impl Iterator<Item = Name> {
    let checks = fan_out.goals.iter().map(|goal| Name::check(fan_out.round, goal.index));
    checks.chain([Name::deadline(fan_out.round)])
}

/// The record of an end, with what subagents had cost that were never joined.
fn ended(session: &Session, ending: Ending, below: &Usage, now: Timestamp) -> Ended {
    let mut end = ending.into_ended(session, now);
    if let Some(total) = &mut end.total {
        total.add(below);
    }
    end
}

pub(crate) fn member(goal: &Goal, end: Ended) -> Member {
    let usage = end.total().clone();
    let Ended { reason, answer, error, .. } = end;
    Member { index: goal.index, session: goal.session.clone(), goal: goal.goal.clone(), reason, answer, error, usage }
}
