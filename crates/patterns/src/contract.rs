//! The contract between patterns and the shell: what a pattern may order.

use crate::describe::{Describer, Notice};
use crate::reader::{ReadReply, Reader, ReplyForm};
use crate::session::Session;
use crate::synthesis::SynthesisName;
use crate::text::cut;
use serde_json::{Map, Value};
use trellis_domain::decision::Decision;
use trellis_domain::document::Document;
use trellis_domain::fan_out::FannedOut;
use trellis_domain::message::AgentStep;
use trellis_domain::park::Parked;
use trellis_domain::parts::{ChatTurn, Reply};
use trellis_domain::record::{Ended, Name, Reading, Replied, Routed};
use trellis_domain::run::Termination;
use trellis_domain::{Caller, SessionId, Timestamp, ToolName};
use trellis_provenance::iri;

/// A pattern is a reconciler over folded records: the same records always give the same orders, and
/// the order in which outcomes arrived cannot matter.
pub trait Pattern: Send + Sync + std::fmt::Debug {
    fn name(&self) -> &'static str;

    /// The prompts that it asks, by id. No two patterns ask the same.
    fn prompts(&self) -> &'static [&'static str];

    /// The turn that a session of this pattern begins with.
    fn first_turn(&self) -> Name;

    /// What is due in this turn. Orders whose outcome is recorded already are not repeated.
    fn decide(&self, session: &Session, turn: &Turn) -> Vec<Order>;

    /// The records that a reply or an outcome of this name follows from. As a rule that is everything before it; a
    /// pattern in which several things go on at once says which of them.
    fn causes(&self, session: &Session, _name: &Name) -> Vec<Name> {
        session.tips().to_vec()
    }

    /// The turn that follows the join of a round.
    fn after_join(&self, _session: &Session, _round: u32) -> Name {
        Name::synthesis()
    }

    /// What the session has done so far, as neighbours in TrustGraph are told with the request of a turn.
    fn history(&self, _session: &Session, _turn: &Name) -> Vec<AgentStep> {
        Vec::new()
    }

    /// How the reply to one of its prompts is written.
    fn form(&self, _prompt: &str) -> ReplyForm {
        ReplyForm::Whole
    }

    /// What a reply to one of its prompts says.
    fn read(&self, reader: &Reader, reply: &Reply, offered: Vec<Decision>) -> ReadReply;

    /// Says what the records of one session mean to a reader.
    fn describer(&self) -> Box<dyn Describer>;

    /// Runs with everything that the pattern can do, for the tests of all that reads them.
    #[cfg(test)]
    fn samples(&self) -> Vec<Vec<trellis_domain::record::Record>> {
        Vec::new()
    }

    /// The part of the session that a record belongs to, such as a plan step.
    fn part(&self, _name: &Name) -> Option<u32> {
        None
    }

    /// Where what a tool tells of its own steps hangs, and where its text will be.
    fn place_of_call(&self, session: &SessionId, outcome: &Name) -> CallPlace {
        CallPlace::of_node(iri::named(session, outcome))
    }

    /// What a reply to one of its prompts means, if that is more than a call, a text or a failure.
    fn notice<'r>(&self, _name: &Name, _replied: &'r Replied) -> Option<Notice<'r>> {
        None
    }
}

/// The place of a tool call in the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlace {
    /// The node that the tool's own steps derive from.
    pub node: String,
    /// The document that its text becomes.
    pub document: String,
}

impl CallPlace {
    /// A call whose result is an observation of its own.
    pub fn of_node(node: String) -> Self {
        let document = format!("{node}/observation");
        Self { node, document }
    }
}

/// The handling of one request: an iteration, a plan step, one act of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub name: Name,
    /// When this handling looked at the clock.
    pub now: Timestamp,
}

/// Exhaustive on purpose: a new order must be handled by every shell.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Do this and record its outcome under the name.
    Perform(Name, Effect),
    /// Close this turn and open another. May be given several times.
    Open(Name),
    /// Close this turn; others that are open will go on.
    Close,
    /// Close this turn, record the routing and open the first turn of the chosen pattern.
    Become(Box<Routed>),
    /// Close this turn, record the fan-out, begin a session for each of its goals and open its deadline.
    FanOut(Box<FannedOut>),
    /// Close this turn and record a question to a person. The turn that it names goes on with the answer.
    Park(Box<Parked>),
    /// Close this turn and end the session.
    End(Ending),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    AskModel(Box<PromptOrder>),
    CallTool {
        tool: ToolName,
        arguments: Map<String, Value>,
    },
    /// Tells the model why nothing was called. Needs nothing from the world.
    Report {
        error: String,
    },
    /// Records that no model was asked, because the budget is used up. Needs nothing from the world.
    Decline {
        prompt: &'static str,
        /// What could have been chosen.
        offered: Vec<Decision>,
        reason: String,
    },
    /// Takes what somebody says for the result of a call. Needs nothing from the world.
    Take {
        tool: ToolName,
        result: String,
    },
    /// Takes what an agent brought for the result of the call that began its session. Needs nothing from the world.
    Bring {
        tool: ToolName,
        session: SessionId,
        result: Result<String, String>,
    },
}

/// A prompt to send, how its reply is read, and the sets that it chooses from.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptOrder {
    pub id: &'static str,
    pub variables: Map<String, Value>,
    /// A JSON schema for the reply. Providers that can enforce it do; the reader is more lenient.
    pub schema: Option<Value>,
    pub reader: Reader,
    /// The decisions as they stand before the reply: options, no choice yet.
    pub offered: Vec<Decision>,
    /// What was said after the rendered prompt, if this goes on with a conversation.
    pub turns: Vec<ChatTurn>,
}

/// How a session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub reason: Termination,
    pub answer: String,
    pub error: Option<String>,
    /// Steps or findings that the answer has to do without.
    pub missing: Vec<u32>,
    /// Who wished it to end.
    pub by: Option<Caller>,
}

impl Ending {
    pub fn answered(reason: Termination, answer: impl Into<String>) -> Self {
        Self { reason, answer: answer.into(), error: None, missing: Vec::new(), by: None }
    }

    /// The end of a session that cannot go on without a reply that it did not get.
    pub fn without_reply(replied: &Replied, error: impl Into<String>) -> Self {
        Self::failed(if replied.was_declined() { Termination::Limit } else { Termination::Error }, error)
    }

    pub fn failed(reason: Termination, error: impl Into<String>) -> Self {
        Self { reason, answer: String::new(), error: Some(error.into()), missing: Vec::new(), by: None }
    }

    /// The record of this end.
    pub fn into_ended(self, session: &Session, now: Timestamp) -> Ended {
        Ended {
            reason: self.reason,
            answer: Document::stored(self.answer),
            error: self.error,
            usage: session.usage().clone(),
            total: session.has_subagents().then(|| session.total_usage()),
            criteria: session.routed().map(|routed| routed.termination.clone()).unwrap_or_default(),
            missing: self.missing,
            outage_ms: session.outage_ms(now),
            left_out: session.left_out(),
            by: self.by,
        }
    }
}

/// So much of a refused reply is shown when it is asked for again.
const SHOWN_OF_REFUSED: usize = 2_000;

/// The reply that counts, or the order that gets one: asked once more, with the reason, if the first reply could not
/// be used. What a second unusable reply means is the caller's business.
pub fn settled<'s>(
    session: &'s Session,
    name: &Name,
    prompt: impl FnOnce(Option<&str>) -> PromptOrder,
) -> Result<&'s Replied, Order> {
    let ask = |name: Name, order: PromptOrder| Order::Perform(name, Effect::AskModel(Box::new(order)));
    let Some(first) = session.replied(name) else { return Err(ask(name.clone(), prompt(None))) };
    let Reading::Unusable { reason } = &first.reading else { return Ok(first) };
    let retry = name.retry();
    if let Some(second) = session.replied(&retry) {
        return Ok(second);
    }
    if first.was_too_long() {
        // The model has not seen it. What it is asked now shows less.
        return Err(ask(retry, prompt(None)));
    }
    let mut order = prompt(Some(reason));
    let refused = cut(first.reply().text().trim(), SHOWN_OF_REFUSED);
    order.variables.insert("refused".to_owned(), refused.into());
    Err(ask(retry, order))
}
