//! What is said of a session that the process itself gives up, whatever its pattern had decided.

use trellis_domain::record::Ended;
use trellis_domain::run::Termination;

/// Begins the reason if a turn stopped the process again and again, or if what it needs cannot be read.
pub(crate) const SET_ASIDE: &str = "set aside: ";
/// The reason if handling a turn panicked.
pub(crate) const INTERNAL: &str = "an internal error ended this run; the log says more";
/// The reason if another session has a name that is needed.
pub(crate) const ID_TAKEN: &str = "what follows cannot be recorded: an id is taken already";

/// Whether the process gave the session up.
pub(crate) fn was_given_up(ended: &Ended) -> bool {
    let said = |error: &String| error.starts_with(SET_ASIDE) || error == INTERNAL || error == ID_TAKEN;
    ended.reason == Termination::Error && ended.error.as_ref().is_some_and(said)
}
