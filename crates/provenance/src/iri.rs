//! The names of nodes and documents, computed from ids. Nothing here is ever looked up.
//!
//! Stock readers tell agent nodes by the text `agent` in their IRI, and sub-traces by `question`: keep
//! the first in every agent node's IRI and the second out of it.

pub use trellis_domain::ids::config_iri as config_item;

use trellis_domain::SessionId;
use trellis_domain::decision::DecisionKind;
use trellis_domain::ids::iri_part;
use trellis_domain::record::Name;
use trellis_domain::run::Termination;

/// What every agent IRI begins with.
pub const AGENT: &str = "urn:trustgraph:agent:";

/// The session itself: the question.
///
/// ```
/// use trellis_domain::SessionId;
/// use trellis_provenance::iri;
///
/// let session = SessionId::new("8f2c1a")?;
/// assert_eq!(iri::session(&session), "urn:trustgraph:agent:8f2c1a");
/// assert_eq!(iri::observation(&session, 3), "urn:trustgraph:agent:8f2c1a/i3/observation");
/// assert_eq!(iri::session_of(&iri::observation(&session, 3)), Some("8f2c1a"));
/// # Ok::<(), trellis_domain::ids::InvalidId>(())
/// ```
pub fn session(session: &SessionId) -> String {
    format!("{AGENT}{session}")
}

macro_rules! nodes {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $path:literal;)*) => {
        $($(#[$doc])*
        pub fn $name(session: &SessionId $(, $argument: $type)*) -> String {
            format!("{AGENT}{session}/{}", format_args!($path))
        })*
    };
}

nodes! {
    /// The activity behind a session's nodes.
    run() = "run";
    /// The steps that the caller brought along: node and document.
    brought_history() = "history";
    /// Whoever asked. Each run has a node of its own for them, so that no statement belongs to two runs.
    asker() = "asked-by";
    /// Whoever cancelled the run.
    canceller() = "cancelled-by";
    /// The configuration that the run began with.
    configuration() = "configuration";
    /// Whoever made it what it is.
    configurer() = "configuration/made-by";
    /// The specification's record of the routing.
    routing() = "routing";
    /// Document with the model's reason for the pattern.
    routing_rationale() = "routing/rationale";
    /// The original's record of the routing.
    pattern_decision() = "pattern-decision";
    /// Iteration `n`, counted from 1.
    iteration(n: u32) = "i{n}";
    /// The thought of iteration `n`: node and document.
    thought(n: u32) = "i{n}/thought";
    /// The observation of iteration `n`: node and document.
    observation(n: u32) = "i{n}/observation";
    /// The end of a session that answers by itself.
    conclusion() = "final";
    /// The thought that came with the answer: node and document.
    conclusion_thought() = "final/thought";
    /// Document with the final answer.
    answer() = "answer";
    /// The first plan.
    plan() = "plan";
    /// The plan after revision `k`.
    plan_revision(k: u32) = "plan/{k}";
    plan_thought() = "plan/thought";
    /// The result of plan step `i`, counted from 0.
    step(i: u32) = "step/{i}";
    /// Document with the result of plan step `i`.
    step_document(i: u32) = "step/{i}/doc";
    step_thought(i: u32) = "step/{i}/thought";
    /// What the tool of plan step `i` brought after the session's end.
    late_step_result(i: u32) = "step/{i}/result";
    decomposition_thought() = "decompose/thought";
    /// The specification's record of a fan-out.
    fan_out(correlation: &str) = "fanout/{correlation}";
    /// Document with goal `i` of a fan-out.
    fan_out_goal(correlation: &str, i: u32) = "fanout/{correlation}/goal/{i}";
    /// How the fan-in of a fan-out went on.
    join(correlation: &str) = "fanout/{correlation}/join";
    /// The finding for goal `i` of a supervisor, counted from 0.
    finding(i: u32) = "finding/{i}";
    /// Document with finding `i`.
    finding_document(i: u32) = "finding/{i}/doc";
    /// Document with a supervisor's judgement after round `r`.
    review(r: u32) = "review/{r}";
    review_thought(r: u32) = "review/{r}/thought";
    /// The specification's record of a subagent's end; the session is the subagent's.
    completion() = "completion";
    /// The end of a plan or of a supervisor.
    synthesis() = "synthesis";
    /// Document with the synthesised answer.
    synthesis_document() = "synthesis/doc";
    synthesis_thought() = "synthesis/thought";
}

/// The decomposition of round `r`, counted from 1. The first has the plain name.
pub fn decomposition(session: &SessionId, r: u32) -> String {
    if r <= 1 { format!("{AGENT}{session}/decompose") } else { format!("{AGENT}{session}/decompose/{r}") }
}

/// The first plan (0) or the revision `k` of it.
pub fn plan_number(session: &SessionId, k: u32) -> String {
    if k == 0 { plan(session) } else { plan_revision(session, k) }
}

/// What a plan wants done as step `i`, counted from 0 over all plans of the session.
pub fn planned_step(plan: &str, i: u32) -> String {
    format!("{plan}/planned/{i}")
}

/// The node that a session ends with.
pub fn terminal(session: &SessionId, reason: Termination) -> String {
    if reason.is_synthesis() { synthesis(session) } else { conclusion(session) }
}

/// What is known under a record's own name.
pub fn named(session: &SessionId, name: &Name) -> String {
    format!("{AGENT}{session}/{name}")
}

/// The choice of a kind that belongs to a node. A repeated choice of one kind, counted from 1, gets its number.
pub fn decision(node: &str, kind: DecisionKind, occurrence: u32) -> String {
    if occurrence <= 1 { format!("{node}/decision/{kind}") } else { format!("{node}/decision/{kind}/{occurrence}") }
}

/// Document with the model's reason for a choice.
pub fn decision_rationale(decision: &str) -> String {
    format!("{decision}/rationale")
}

/// Document with a reply that was outside the set.
pub fn decision_rejected(decision: &str) -> String {
    format!("{decision}/rejected")
}

/// A pattern, as the specification's routing names it.
pub fn pattern(name: &str) -> String {
    format!("urn:trustgraph:agent-pattern:{}", iri_part(name))
}

/// A task type, as the specification's routing names it.
pub fn task_type(name: &str) -> String {
    format!("urn:trustgraph:agent-task-type:{}", iri_part(name))
}

/// A model, as the agent that a session's activity was associated with.
///
/// ```
/// assert_eq!(trellis_provenance::iri::model("qwen2.5:7b"), "urn:trellis:model:qwen2.5%3A7b");
/// ```
pub fn model(name: &str) -> String {
    format!("urn:trellis:model:{}", iri_part(name))
}

/// The id under which a message is streamed: the IRI of its text, with the attempt when it was begun again.
///
/// ```
/// use trellis_domain::SessionId;
/// use trellis_provenance::iri::message_id;
///
/// let session = SessionId::new("8f2c1a")?;
/// assert_eq!(message_id(&session, "i3/thought", 1), "urn:trustgraph:agent:8f2c1a/i3/thought");
/// assert_eq!(message_id(&session, "i3/thought", 2), "urn:trustgraph:agent:8f2c1a/i3/thought#2");
/// # Ok::<(), trellis_domain::ids::InvalidId>(())
/// ```
pub fn message_id(session: &SessionId, name: &str, attempt: u32) -> String {
    if attempt <= 1 { format!("{AGENT}{session}/{name}") } else { format!("{AGENT}{session}/{name}#{attempt}") }
}

/// The session that an agent IRI belongs to.
pub fn session_of(iri: &str) -> Option<&str> {
    let rest = iri.strip_prefix(AGENT)?;
    rest.split(['/', '#']).next().filter(|session| !session.is_empty())
}

/// Begins the nodes that tell how a tool found what it brought.
const OF_RETRIEVAL: [&str; 8] = [
    "urn:trustgraph:question:",
    "urn:trustgraph:docrag:",
    "urn:trustgraph:prov:grounding:",
    "urn:trustgraph:prov:exploration:",
    "urn:trustgraph:prov:focus:",
    "urn:trustgraph:prov:synthesis:",
    "urn:trustgraph:prov:edge:",
    "urn:trustgraph:prov:chunk:",
];

/// Whether a node belongs to a run, or to what a tool told of its own steps in one: what is said of it follows from
/// records.
pub fn is_of_a_run(iri: &str) -> bool {
    session_of(iri).is_some() || OF_RETRIEVAL.iter().any(|beginning| iri.starts_with(beginning))
}

/// What an agent IRI says below its session, such as `step/3/thought`.
pub fn path_of(iri: &str) -> Option<&str> {
    let (_, path) = iri.strip_prefix(AGENT)?.split_once('/')?;
    path.split('#').next()
}

/// Whether it is the node of the steps that a caller brought along.
pub fn is_brought_history(iri: &str) -> bool {
    path_of(iri) == Some("history")
}

/// The iteration that an agent IRI belongs to.
pub fn iteration_of(iri: &str) -> Option<u32> {
    path_of(iri)?.split('/').next()?.strip_prefix('i')?.parse().ok()
}

/// The number behind a word at the beginning of an agent IRI's path, such as 3 in `step/3/thought`.
///
/// ```
/// use trellis_provenance::iri::number_of;
///
/// assert_eq!(number_of("urn:trustgraph:agent:8f2c1a/step/3/thought", "step"), Some(3));
/// assert_eq!(number_of("urn:trustgraph:agent:8f2c1a/plan", "plan"), None, "the first plan has no number");
/// ```
pub fn number_of(iri: &str, word: &str) -> Option<u32> {
    let rest = path_of(iri)?.strip_prefix(word)?.strip_prefix('/')?;
    rest.split('/').next()?.parse().ok()
}

#[cfg(test)]
#[path = "iri_tests.rs"]
mod tests;
