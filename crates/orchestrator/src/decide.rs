//! From a pattern's orders to what the shell does next.

use crate::park;
use crate::ports::NewTurn;
use crate::step::{Closing, Decided, Next, ShellStep, everything};
use trellis_domain::SessionId;
use trellis_domain::fan_out::FannedOut;
use trellis_domain::record::{Body, Cause, Core, Ended, Name, Routed};
use trellis_domain::run::Termination;
use trellis_patterns::guard::{self, Asker};
use trellis_patterns::{Ending, Order, Session, Turn, fan_out, first_turn, pattern, router};

/// The next step of a turn, given how the nearest ended session above it ended, if one has.
pub(crate) fn next(session: &Session, turn: &Turn, above: Option<&Ended>) -> Next {
    if session.ended().is_some() {
        return Next::Step(ShellStep::Close(Closing::default()));
    }
    if let Some(above) = above {
        return Next::Step(ShellStep::End(ended_below(above.reason)));
    }
    match turn.name.core() {
        Some(Core::Check { round, .. } | Core::Deadline(round)) => {
            return time_is_up(session, turn).map_or(Next::FanIn(round), |ending| Next::Step(ShellStep::End(ending)));
        }
        Some(Core::ParkExpiry(number)) => return Next::Step(park::expiry(session, turn, number)),
        Some(_) | None => {}
    }
    Next::Step(match (step_of(session, orders(session, turn)), time_is_up(session, turn)) {
        // A call that was given up because the time is over did not fail: the run is at its limit.
        (ShellStep::End(Ending { reason: Termination::Error, .. }), Some(late)) => ShellStep::End(late),
        // An answer that is recorded was paid for and seen: it counts.
        (ShellStep::End(ending), _) => ShellStep::End(ending),
        (_, Some(ending)) => ShellStep::End(ending),
        (ShellStep::Close(closing), None) => ShellStep::Close(Closing { at: Some(turn.now), ..closing }),
        (step, None) => step,
    })
}

/// What is due in a turn for somebody who takes it up; nothing in those of fan-ins and expiries.
pub(crate) fn orders(session: &Session, turn: &Turn) -> Vec<Order> {
    orders_for(session, turn, Asker::NewHand)
}

pub(crate) fn orders_for(session: &Session, turn: &Turn, asker: Asker) -> Vec<Order> {
    match turn.name.core() {
        Some(Core::Route) => guard::guarded(session, turn, router::decide(session, turn), asker),
        Some(_) => Vec::new(),
        None => {
            let orders = match session.routed().map(|routed| pattern(&routed.pattern)) {
                Some(Ok(pattern)) => pattern.decide(session, turn),
                Some(Err(unknown)) => vec![Order::End(Ending::failed(Termination::Error, unknown.to_string()))],
                None => vec![Order::End(Ending::failed(Termination::Error, "the session has no pattern"))],
            };
            guard::guarded(session, turn, orders, asker)
        }
    }
}

/// The end of a session that has no time left.
pub(crate) fn time_is_up(session: &Session, turn: &Turn) -> Option<Ending> {
    if session.waited_for_until(turn.now).is_some_and(|deadline| deadline <= turn.now) {
        // Nobody waits for it any more, so nothing more is paid for.
        return Some(Ending::failed(Termination::Timeout, TOO_LATE));
    }
    run_is_over(session, turn)
}

/// The end of a session that has had all the time that its limits leave it.
pub(crate) fn run_is_over(session: &Session, turn: &Turn) -> Option<Ending> {
    let limit = session.limits().run_timeout_ms;
    let over = session.spent_ms(turn.now) >= limit;
    let error = || format!("the run took longer than {limit} ms, which is its limit");
    over.then(|| Ending::failed(Termination::Timeout, error()))
}

/// What is said of a subagent that nobody waits for any more.
pub(crate) const TOO_LATE: &str = "it had not ended when the time of its fan-out was over";

/// A session below one that ended can only end as well.
pub(crate) fn ended_below(above: Termination) -> Ending {
    let reason = if above == Termination::Timeout { Termination::Timeout } else { Termination::Cancelled };
    Ending::failed(reason, format!("the session above this one has ended ({above})"))
}

fn step_of(session: &Session, orders: Vec<Order>) -> ShellStep {
    let mut closing = Closing::default();
    let (mut due, mut closes) = (Vec::new(), false);
    let Some(id) = session.id() else { return broken("the session has no records") };
    for order in orders {
        match order {
            Order::Perform(name, effect) => {
                due.extend((!session.has(&name)).then_some((name, effect)));
                continue;
            }
            Order::End(ending) => return ShellStep::End(ending),
            Order::Close => {}
            Order::Open(name) => closing.open.push(turn(id, name)),
            Order::Become(routed) => become_pattern(session, id, *routed, &mut closing),
            Order::FanOut(fan_out) => begin_children(session, id, *fan_out, &mut closing),
            Order::Park(parked) => park::ask(session, id, *parked, &mut closing),
        }
        closes = true;
    }
    match (due.is_empty(), closes) {
        (false, _) => ShellStep::Perform(due),
        (true, true) => ShellStep::Close(closing),
        (true, false) => broken("the pattern ordered nothing"),
    }
}

fn broken(error: &str) -> ShellStep {
    ShellStep::End(Ending::failed(Termination::Error, error))
}

fn turn(session: &SessionId, name: Name) -> NewTurn {
    NewTurn { session: session.clone(), name, due: None }
}

fn become_pattern(session: &Session, id: &SessionId, routed: Routed, closing: &mut Closing) {
    closing.open.push(turn(id, first_turn(&routed.pattern)));
    closing.records.push(Decided {
        session: id.clone(),
        name: Name::pattern_decision(),
        causes: everything(session),
        body: Body::Routed(routed),
    });
}

/// The fan-out's record, the beginning of each subagent's session with its first turn, and the deadline.
fn begin_children(session: &Session, id: &SessionId, fan_out: FannedOut, closing: &mut Closing) {
    let round = fan_out.round;
    let (mut begun, mut first_turns) = (Vec::new(), Vec::new());
    for goal in &fan_out.goals {
        let Some((accepted, routed)) = fan_out::child(session, &fan_out, goal) else { continue };
        first_turns.push(turn(&goal.session, first_turn(&routed.pattern)));
        let record =
            |name: Name, cause, body| Decided { session: goal.session.clone(), name, causes: vec![cause], body };
        let sent_out = Cause::elsewhere(id.clone(), Name::fan_out(round));
        begun.push(record(Name::session(), sent_out, Body::from(accepted)));
        begun.push(record(Name::pattern_decision(), Name::session().into(), Body::Routed(routed)));
    }
    let due = Some(fan_out.deadline);
    closing.records.push(Decided {
        session: id.clone(),
        name: Name::fan_out(round),
        causes: everything(session),
        body: Body::FannedOut(fan_out),
    });
    closing.records.extend(begun);
    closing.open.extend(first_turns);
    closing.open.push(NewTurn { session: id.clone(), name: Name::deadline(round), due });
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
