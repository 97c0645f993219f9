//! Questions to people: a session waits for an answer as a record, and no worker is held. The answer is a commit that opens
//! the waiting turn again; so is the expiry, if nobody answers.

use crate::ports::NewTurn;
use crate::step::{Closing, Decided, ShellStep, everything};
use trellis_domain::SessionId;
use trellis_domain::decision::{DecidedBy, Decision, Enforcement};
use trellis_domain::document::Document;
use trellis_domain::park::{Parked, Settled};
use trellis_domain::record::{Body, Name};
use trellis_patterns::{Session, Turn};

/// Closes the turn with the question, and opens its expiry.
pub(crate) fn ask(session: &Session, id: &SessionId, parked: Parked, closing: &mut Closing) {
    let (number, due) = (parked.number, Some(parked.expires));
    let body = Body::Parked(Box::new(parked));
    closing.records.push(Decided { session: id.clone(), name: Name::park(number), causes: everything(session), body });
    closing.open.push(NewTurn { session: id.clone(), name: Name::park_expiry(number), due });
}

/// The turn of a question's expiry: if nobody has answered in time, what was said for that case is decided.
pub(crate) fn expiry(session: &Session, turn: &Turn, number: u32) -> ShellStep {
    let open = session.park(number).filter(|_| session.settled(number).is_none());
    let Some((park, id)) = open.zip(session.id()) else { return ShellStep::Close(Closing::default()) };
    if turn.now < park.expires.plus_ms(session.outage_ms_since_park(number, turn.now)) {
        return ShellStep::Wait;
    }
    let decision = Decision { decided_by: DecidedBy::Rule, ..decision(park, &park.otherwise, None) };
    let settled = Settled { number, decision, arguments: None, result: None, content: None, by: None };
    let mut closing = Closing::default();
    let (name, body) = (Name::park_decision(number), Body::Settled(Box::new(settled)));
    closing.records.push(Decided { session: id.clone(), name, causes: everything(session), body });
    closing.open.push(NewTurn { session: id.clone(), name: park.turn.clone(), due: None });
    ShellStep::Close(closing)
}

/// The choice with the set that it was made from.
pub(crate) fn decision(park: &Parked, chosen: &str, reason: Option<&str>) -> Decision {
    Decision {
        chosen: vec![chosen.to_owned()],
        decided_by: DecidedBy::Caller,
        enforcement: Enforcement::Validated,
        rationale: reason.and_then(Document::stored),
        ..park.offered.clone()
    }
}
