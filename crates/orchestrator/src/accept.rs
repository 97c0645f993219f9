//! Accepting a question: a commit that opens its first turn. Only then is the caller told.

use crate::orchestrator::{NewerRun, Orchestrator};
use crate::ports::{Commit, ConfigError, JournalError, ModelWish, NewRecord, NewTurn, Outcome, PromptNeed, RunFilter};
use std::sync::Arc;
use trellis_domain::config::{Settings, ToolItem};
use trellis_domain::decision::Excluded;
use trellis_domain::document::Document;
use trellis_domain::ids::InvalidId;
use trellis_domain::limits::PinnedLimits;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Accepted, Body, Cause, Exchange, Name, REVISION, Record};
use trellis_domain::request::{TooLarge, check_sizes, earlier_fingerprint, fingerprint};
use trellis_domain::run::RunSummary;
use trellis_domain::{
    Caller, Collection, ConversationId, Hash, PatternName, RequestId, RunId, Scope, Selection, SessionId, TaskTypeName,
    counted,
};
use trellis_patterns::router::{self, Refusal, Wishes};
use trellis_patterns::{first_turn, react};

/// A question as a surface hands it in.
#[derive(Debug, Clone)]
pub struct Question {
    pub scope: Scope,
    /// The same for every repetition of the same request.
    pub request_id: RequestId,
    pub request: AgentRequest,
    pub limits: SomeLimits,
    pub names: UnknownNames,
    /// What the caller chooses out of the configured tools and models.
    pub selection: Selection,
    /// Who asks. Not part of what tells a repetition from another request.
    pub by: Option<Caller>,
}

/// What was said before a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Earlier {
    /// The newest exchanges of the conversation that the request names, if it names one.
    #[default]
    OfConversation,
    /// This run and what was said before it: a conversation may go on from any of its questions.
    UpTo(RunId),
    /// As the caller tells it, oldest first.
    Told(Vec<Exchange>),
}

/// Most bytes of what a caller tells of earlier.
pub const TOLD_BYTES: usize = 256 << 10;
/// So many earlier exchanges are shown.
const EXCHANGES: usize = 10;

impl Earlier {
    /// Whether a question that was accepted came after the same. A conversation goes on while a request is repeated.
    fn fits(&self, accepted: &[Exchange]) -> bool {
        match self {
            Self::OfConversation => true,
            Self::UpTo(run) => accepted.last().is_some_and(|last| last.run.as_ref() == Some(run)),
            Self::Told(exchanges) => exchanges == accepted,
        }
    }

    fn check_size(&self) -> Result<(), TooLarge> {
        let Self::Told(exchanges) = self else { return Ok(()) };
        let size = exchanges.iter().map(|exchange| exchange.question.len() + exchange.answer.len()).sum::<usize>();
        if size <= TOLD_BYTES {
            return Ok(());
        }
        let field = "what was said before";
        Err(TooLarge { field, size: size as u64, unit: "bytes", limit: TOLD_BYTES as u64 })
    }
}

/// What to do with a pattern, task type or group that nothing defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownNames {
    Refuse,
    /// As the original does.
    FallBack,
}

/// The run that answers, and whether it was there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    pub run: RunId,
    pub attached: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    #[error("the question is empty; write what you want to know")]
    EmptyQuestion,
    #[error(
        "the question has {bytes} bytes; at most {limit} are allowed, so shorten it or store the text as a document"
    )]
    QuestionTooLong { bytes: usize, limit: u64 },
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error(transparent)]
    InvalidId(#[from] InvalidId),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(
        "this request id belongs to another request, which is answered by run {run}; give this one an id of its own"
    )]
    OtherRequest { run: RunId },
    #[error("there is no run {0} that has ended, so nothing can go on from it")]
    NothingEarlier(RunId),
    #[error(transparent)]
    Newer(#[from] NewerRun),
    #[error("{} open, which is the limit; wait until some have ended", counted(open, "run"))]
    TooManyRuns { open: usize },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// So much is recorded of why a tool cannot be called.
const SHOWN_OF_OBSTACLE: usize = 300;

impl Orchestrator {
    /// See [`RunService::accept`](crate::RunService::accept).
    pub(crate) async fn accept(&self, question: Question, earlier: &Earlier) -> Result<Acceptance, AcceptError> {
        let mut accepted = self.read_request(&question)?;
        earlier.check_size()?;
        let given = (!question.request.session_id.is_empty()).then(|| SessionId::new(&question.request.session_id));
        let (mut session, chosen) = match given {
            Some(given) => (given?, true),
            None => (SessionId::for_request(&question.scope, &question.request_id), false),
        };
        loop {
            match self.find(&question, &session, &accepted, earlier).await? {
                ExistingSession::Same { limits } if limits || chosen => {
                    return Ok(Acceptance { run: session, attached: true });
                }
                ExistingSession::Same { .. } | ExistingSession::Other if !chosen => {
                    return Err(AcceptError::OtherRequest { run: session });
                }
                ExistingSession::Same { .. } | ExistingSession::Other => {
                    // Where an earlier version would have put the same request.
                    let before = session.beside(earlier_fingerprint(&question.request));
                    let found = self.find(&question, &before, &accepted, earlier).await?;
                    let was_there = matches!(found, ExistingSession::Same { .. });
                    session = if was_there { before } else { session.beside(accepted.request) };
                }
                ExistingSession::Nothing => {
                    accepted.earlier = self.earlier(&question.scope, &accepted, earlier).await?;
                    if let Some(begun) = self.begin(&question, &session, &accepted).await? {
                        return Ok(begun);
                    }
                }
            }
        }
    }

    /// The first commit of a run. None means that somebody took the id meanwhile: look again.
    async fn begin(
        &self,
        question: &Question,
        session: &SessionId,
        accepted: &Accepted,
    ) -> Result<Option<Acceptance>, AcceptError> {
        let settings = self.ports.config.pin(&question.scope.workspace).await?;
        let wishes = Wishes::of(accepted);
        if question.names == UnknownNames::Refuse {
            router::check(&settings, wishes, accepted.group.as_deref())?;
        }
        let choosable = || self.ports.prompter.choosable(&settings);
        router::check_selection(&settings, accepted.group.as_deref(), &accepted.selection, choosable)?;
        let open = self.ports.journal.open_runs().await?;
        if open >= self.options.max_open_runs {
            return Err(AcceptError::TooManyRuns { open });
        }
        let configured = self.ports.config.configured(&question.scope.workspace, settings.version).await?;
        let wish = ModelWish { task_type: None, model: accepted.selection.model.as_deref() };
        let need = PromptNeed { settings: &settings, id: router::ROUTE, wish };
        let routed_apart = !self.ports.prompter.routes_in_one_call(need);
        let room = self.ports.prompter.room(PromptNeed { id: react::PROMPT, ..need }).await;
        let obstacle = |tool: &Arc<ToolItem>| {
            // It is told with every session and every choice of the run.
            let reason = self
                .ports
                .tools
                .obstacle(&question.scope.workspace, tool, &settings)?
                .chars()
                .take(SHOWN_OF_OBSTACLE)
                .collect();
            Some(Excluded { name: tool.name.to_string(), reason })
        };
        let not_here = settings.tools.values().filter_map(obstacle).collect();
        let accepted = Accepted { configured, routed_apart, room, not_here, ..accepted.clone() };
        let commit = self.first_commit(&question.scope, session, accepted, &settings, wishes);
        let Outcome::Committed(committed) = self.ports.journal.commit(commit).await? else { return Ok(None) };
        self.after_commit(&question.scope.workspace, session, &committed).await;
        Ok(Some(Acceptance { run: session.clone(), attached: false }))
    }

    fn read_request(&self, question: &Question) -> Result<Accepted, AcceptError> {
        let request = &question.request;
        if request.question.trim().is_empty() {
            return Err(AcceptError::EmptyQuestion);
        }
        let limit = self.options.limits.refined(&question.limits).max_question_bytes;
        if request.question.len() as u64 > limit {
            return Err(AcceptError::QuestionTooLong { bytes: request.question.len(), limit });
        }
        check_sizes(request, limit)?;
        question.selection.check_size()?;
        let conversation = match request.conversation_id.as_str() {
            "" => None,
            id => Some(ConversationId::new(id)?),
        };
        Ok(Accepted {
            question: request.question.as_str().into(),
            request: fingerprint(request),
            group: request.group.as_ref().map(|names| names.iter().map(|name| name.as_str().into()).collect()),
            state: request.state.clone(),
            collection: Collection::new(&request.collection)?,
            streaming: request.streaming,
            conversation,
            pattern: PatternName::given(&request.pattern),
            task_type: TaskTypeName::given(&request.task_type),
            framing: request.framing.as_str().into(),
            limits: question.limits.clone(),
            history: request.history.clone(),
            request_id: Some(question.request_id.clone()),
            earlier: Vec::new(),
            parent: None,
            by: question.by.clone(),
            configured: None,
            operator: Some(PinnedLimits::of(&self.limits)),
            revision: REVISION,
            mark: Some(self.mark()),
            routed_apart: false,
            room: None,
            not_here: Vec::new(),
            selection: question.selection.clone(),
        })
    }

    /// A few characters that nobody can foresee.
    fn mark(&self) -> Arc<str> {
        const LENGTH: usize = 6;
        self.ports.world.fresh_id().chars().filter(char::is_ascii_alphanumeric).take(LENGTH).collect::<String>().into()
    }

    /// Whether a session answers a request. Records of an earlier version know the request by its earlier fingerprint.
    async fn find(
        &self,
        question: &Question,
        session: &SessionId,
        wanted: &Accepted,
        earlier: &Earlier,
    ) -> Result<ExistingSession, AcceptError> {
        let scope = &question.scope;
        let Some(log) = self.ports.journal.load(&scope.workspace, session).await? else {
            return Ok(ExistingSession::Nothing);
        };
        let mut known = log.records.iter().filter_map(|record| record.body.as_accepted());
        let before = || earlier_fingerprint(&question.request);
        let same = known.find(|accepted| {
            (accepted.request == wanted.request || accepted.request == before()) && earlier.fits(&accepted.earlier)
        });
        let Some(accepted) = same else { return Ok(ExistingSession::Other) };
        let has_ended = log.records.iter().any(|record| record.header.name == Name::end());
        if let (Some(first), false) = (log.records.first(), has_ended) {
            NewerRun::check(first)?;
        }
        let limits = accepted.limits == wanted.limits && accepted.selection == wanted.selection;
        Ok(ExistingSession::Same { limits })
    }

    /// What was asked and answered before, oldest first and bounded: a conversation may go on for ever, and a prompt may
    /// not.
    async fn earlier(
        &self,
        scope: &Scope,
        accepted: &Accepted,
        earlier: &Earlier,
    ) -> Result<Vec<Exchange>, AcceptError> {
        match (earlier, &accepted.conversation) {
            (Earlier::Told(exchanges), _) => Ok(exchanges.clone()),
            (Earlier::UpTo(run), _) => self.up_to(scope, run).await,
            (Earlier::OfConversation, Some(conversation)) => Ok(self.of_conversation(scope, conversation).await?),
            (Earlier::OfConversation, None) => Ok(Vec::new()),
        }
    }

    /// A run that has ended, and what was said before it.
    async fn up_to(&self, scope: &Scope, run: &RunId) -> Result<Vec<Exchange>, AcceptError> {
        let (workspace, journal) = (&scope.workspace, &self.ports.journal);
        let nothing = || AcceptError::NothingEarlier(run.clone());
        let summary = journal.run(workspace, run).await?.ok_or_else(nothing)?;
        let end = journal.end(workspace, run).await?.ok_or_else(nothing)?;
        let first = journal.events(workspace, run, 0, 1).await?;
        let accepted = first.first().and_then(|record| record.body.as_accepted());
        let mut exchanges = accepted.map(|accepted| accepted.earlier.clone()).unwrap_or_default();
        exchanges.push(exchange(summary, answer_of(&end)));
        exchanges.drain(..exchanges.len().saturating_sub(EXCHANGES));
        Ok(exchanges)
    }

    async fn of_conversation(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<Exchange>, JournalError> {
        let filter = RunFilter { conversation: Some(conversation.clone()), ..RunFilter::default() };
        let newest = self.ports.journal.runs(&scope.workspace, &filter, None, EXCHANGES).await?.runs;
        let mut exchanges = Vec::new();
        for run in newest.into_iter().rev() {
            if let Some(end) = self.ports.journal.end(&scope.workspace, &run.run).await? {
                exchanges.push(exchange(run, answer_of(&end)));
            }
        }
        Ok(exchanges)
    }

    /// The question, the routing if no model is needed for it, and the first turn.
    fn first_commit(
        &self,
        scope: &Scope,
        session: &SessionId,
        accepted: Accepted,
        settings: &Settings,
        wishes: Wishes<'_>,
    ) -> Commit {
        let time = self.ports.world.now();
        let routed = router::without_model(settings, &scope.workspace, wishes, &self.options.limits);
        let first = routed.as_ref().map_or_else(Name::route, |routed| first_turn(&routed.pattern));
        let record = |name: Name, causes: Vec<Cause>, body: Body| NewRecord {
            session: session.clone(),
            name,
            causes,
            config: settings.snapshot.unwrap_or(Hash::ZERO),
            attempt: 1,
            time,
            body,
        };
        Commit {
            scope: scope.clone(),
            run: session.clone(),
            session: session.clone(),
            seen: 0,
            seen_of_others: Vec::new(),
            records: std::iter::once(record(Name::session(), Vec::new(), Body::from(accepted)))
                .chain(
                    routed.map(|routed| {
                        record(Name::pattern_decision(), vec![Name::session().into()], Body::Routed(routed))
                    }),
                )
                .collect(),
            close: Vec::new(),
            open: vec![NewTurn { session: session.clone(), name: first, due: None }],
        }
    }
}

fn answer_of(end: &Record) -> &str {
    end.body.as_ended().and_then(|ended| ended.answer.as_ref()).map_or("", Document::text)
}

fn exchange(run: RunSummary, answer: &str) -> Exchange {
    const CHARS: usize = 2_000;
    Exchange { run: Some(run.run), question: run.question, answer: answer.chars().take(CHARS).collect() }
}

enum ExistingSession {
    Nothing,
    /// The same request, and whether its limits are the same, too.
    Same {
        limits: bool,
    },
    Other,
}
