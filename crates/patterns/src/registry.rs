//! Every pattern there is, and who is asked for what.

use crate::choice;
use crate::contract::Pattern;
use crate::debate::Debate;
use crate::describe::{Notice, plain};
use crate::dispatch::Dispatch;
use crate::echo;
use crate::plan::Plan;
use crate::react::{IterationNames, React};
use crate::reader::{ReadReply, Reader, ReplyForm};
use crate::reflexion::Reflexion;
use crate::router::together;
use crate::session::Session;
use crate::supervisor::Supervisor;
use crate::synthesis::SynthesisName;
use trellis_domain::PatternName;
use trellis_domain::config::{Problem, Settings};
use trellis_domain::decision::Decision;
use trellis_domain::parts::Reply;
use trellis_domain::record::{Name, Replied};

const PATTERNS: &[&dyn Pattern] = &[&React, &Plan, &Supervisor, &Reflexion, &Dispatch, &Debate];

/// There is no pattern of that name. The router chooses only what there is, so a newer program has recorded it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this program has no pattern `{0}`; the program that began the run is newer")]
pub struct UnknownPattern(PatternName);

/// The pattern of that name.
pub fn pattern(name: &PatternName) -> Result<&'static dyn Pattern, UnknownPattern> {
    let known = PATTERNS.iter().copied().find(|pattern| *name == pattern.name());
    known.ok_or_else(|| UnknownPattern(name.clone()))
}

/// The turn that a session of that pattern begins with. One that nobody here knows needs a turn all the same, to end in.
pub fn first_turn(name: &PatternName) -> Name {
    pattern(name).map_or_else(|_| Name::iteration(1), Pattern::first_turn)
}

/// The turn that follows the join of a round, be it only to end in.
pub fn after_join(session: &Session, round: u32) -> Name {
    if let Some(caller) = session.fan_out(round).and_then(|fan_out| fan_out.turn.clone()) {
        return caller;
    }
    let own = session.routed().and_then(|routed| pattern(&routed.pattern).ok());
    own.map_or_else(Name::synthesis, |pattern| pattern.after_join(session, round))
}

/// The pattern that asks a prompt; none for the router's.
fn owner_of(prompt: &str) -> Option<&'static dyn Pattern> {
    PATTERNS.iter().copied().find(|pattern| pattern.prompts().contains(&prompt))
}

/// The sample runs of all patterns.
#[cfg(test)]
pub(crate) fn samples() -> Vec<Vec<trellis_domain::record::Record>> {
    PATTERNS.iter().flat_map(|pattern| pattern.samples()).collect()
}

/// A reply, read by the pattern that asked for it. What the router asks is one name of the only offered set, or two names.
pub fn read(reader: &Reader, reply: &Reply, offered: Vec<Decision>) -> ReadReply {
    match owner_of(reader.prompt()) {
        Some(pattern) => pattern.read(reader, reply, offered),
        None if reader.prompt() == together::PROMPT => together::read(reader, &reply.text(), offered),
        None => choice::read_described(&reply.text(), &reader.rules(), offered),
    }
}

/// The same for a reply in this session, by the rules that it began with.
pub fn read_in(session: &Session, reader: &Reader, reply: Reply, offered: Vec<Decision>) -> ReadReply {
    let revision = session.revision();
    let read = read(reader, &reply.under(revision), offered.clone());
    if revision == 0 {
        return read;
    }
    let template = session.settings().prompts.get(reader.prompt()).map_or("", |prompt| &prompt.text);
    echo::refused(read, template, offered)
}

/// How the reply to a prompt is written.
pub fn form(reader: &Reader) -> ReplyForm {
    owner_of(reader.prompt()).map_or(ReplyForm::Whole, |pattern| pattern.form(reader.prompt()))
}

/// What a reply means to whoever follows a run, as the pattern says that asked for it.
pub fn notice<'r>(name: &Name, replied: &'r Replied) -> Notice<'r> {
    let own = owner_of(&replied.prompt.id).and_then(|pattern| pattern.notice(name, replied));
    own.unwrap_or_else(|| plain(replied))
}

/// The prompts that runs under this configuration can come to and that it lacks. `react` is what everything falls back
/// to; a router without a choice asks nobody.
pub fn missing_prompts(settings: &Settings) -> Vec<Problem> {
    let router =
        [("task-type-classify", settings.task_types.len() > 1), ("pattern-select", settings.patterns.len() > 1)];
    let of_router = router.into_iter().filter(|(_, is_asked)| *is_asked);
    let of_router = of_router.map(|(prompt, _)| (prompt, "the router".to_owned()));
    let is_open = |name: &str| name == React::NAME || settings.patterns.contains_key(name);
    let of_patterns = PATTERNS.iter().filter(|pattern| is_open(pattern.name())).flat_map(|pattern| {
        let user = format!("pattern `{}`", pattern.name());
        pattern.prompts().iter().map(move |prompt| (*prompt, user.clone()))
    });
    let needed = of_router.chain(of_patterns).filter(|(prompt, _)| !settings.prompts.contains_key(*prompt));
    let problem = |(prompt, user): (&str, String)| Problem {
        kind: "prompt".to_owned(),
        key: format!("template.{prompt}"),
        field: "value".to_owned(),
        what: format!("is missing, and {user} needs it"),
        mend: "restore it from its history or an export".to_owned(),
    };
    needed.map(problem).collect()
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
