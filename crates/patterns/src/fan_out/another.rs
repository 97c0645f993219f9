//! Whether there is another round of subagents, and who says so.

use crate::session::Session;
use crate::spending::{most_to_ask_for, no_subagents};
use trellis_domain::counted;
use trellis_domain::decision::option::{AGAIN, ANSWER};
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement, Excluded};

/// How many rounds there may be: the limit of rounds, and of iterations, of which a round takes two.
pub(crate) fn most_rounds(session: &Session) -> u32 {
    let limits = session.limits();
    limits.max_rounds.min(limits.max_iterations / 2).max(1)
}

/// The choice that a model is asked for.
pub(crate) fn round_by_model(session: &Session) -> Decision {
    let options = vec![ANSWER.to_owned(), AGAIN.to_owned()];
    session.offered(DecisionKind::Round, options, session.config_source("agent-pattern"))
}

/// A choice that is none, because one of the two is ruled out.
pub(crate) fn round_by_rule(session: &Session, chosen: &str, reason: impl Into<String>) -> Decision {
    let offered = round_by_model(session);
    let (options, others): (Vec<_>, Vec<_>) = offered.options.iter().cloned().partition(|option| option == chosen);
    let reason = reason.into();
    let excluded = others.into_iter().map(|name| Excluded { name, reason: reason.clone() }).collect();
    let (decided_by, enforcement) = (DecidedBy::Rule, Enforcement::None);
    Decision { chosen: options.clone(), options, excluded, decided_by, enforcement, ..offered }
}

/// Where no model judged whether another round of at least so many subagents is needed, it is said who did: a rule, or
/// the fallback.
pub(crate) fn round_without_model(session: &Session, fewest: u32, is_judged: impl Fn(u32) -> bool) -> Option<Decision> {
    let last = u32::try_from(session.fan_outs().count()).unwrap_or(u32::MAX);
    if last >= most_rounds(session) {
        let reason = format!("{} made, which is the limit", counted(last, "round"));
        return Some(round_by_rule(session, ANSWER, reason));
    }
    if is_judged(last) {
        return None;
    }
    if most_to_ask_for(session) < fewest {
        return Some(round_by_rule(session, ANSWER, no_subagents(session)));
    }
    let (chosen, decided_by, enforcement) = (vec![ANSWER.to_owned()], DecidedBy::Fallback, Enforcement::None);
    Some(Decision { chosen, decided_by, enforcement, ..round_by_model(session) })
}
