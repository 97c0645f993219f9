//! Exit codes, and failures that say what to do.

use std::process::ExitCode;
use trellis_domain::run::RunState;
use trellis_orchestrator::AcceptError;
use trellis_orchestrator::orchestrator::{NewerRun, TurnError};
use trellis_orchestrator::ports::{ConfigError, GraphError, JournalError, LogError};
use trellis_orchestrator::service::PageError;
use trellis_store::OpenError;

/// The exit codes of all commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok = 0,
    Unexpected = 1,
    Usage = 2,
    Unreachable = 3,
    NotAllowed = 4,
    NotFound = 5,
    InvalidConfig = 6,
    DataFolder = 7,
    RunFailed = 10,
    Partial = 11,
    Limit = 12,
    Faulty = 13,
    Cancelled = 14,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// The exit code of a run's end.
    pub(crate) const fn of(state: RunState, strict: bool) -> Self {
        match state {
            RunState::Answered => Self::Ok,
            RunState::AnsweredPartial if strict => Self::Partial,
            RunState::AnsweredPartial => Self::Ok,
            RunState::Limit => Self::Limit,
            RunState::Failed => Self::RunFailed,
            RunState::Cancelled => Self::Cancelled,
            RunState::Queued | RunState::Running | RunState::Waiting => Self::Interrupted,
        }
    }
}

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub(crate) fn unexpected(error: impl std::fmt::Display) -> Self {
        Self::new(Exit::Unexpected, error.to_string())
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Prints the message to stderr and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if self.exit != Exit::Ok {
            crate::show::note(&format!("error: {}", crate::show::clean(&self.message)));
        }
        self.exit.into()
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::new(Exit::DataFolder, error.to_string())
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        Self::new(Exit::DataFolder, error.to_string())
    }
}

impl From<PageError> for Failure {
    fn from(error: PageError) -> Self {
        match error {
            error @ PageError::NoCursor(_) => Self::usage(error.to_string()),
            PageError::Journal(error) => error.into(),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Invalid(_) => Self::new(Exit::InvalidConfig, error.to_string()),
            ConfigError::NoSnapshot(_) => Self::new(Exit::DataFolder, error.to_string()),
            ConfigError::Store(error) => error.into(),
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Checkpoint(_) | LogError::TooLarge(_) => Self::usage(error.to_string()),
            LogError::Store(error) => error.into(),
        }
    }
}

impl From<TurnError> for Failure {
    fn from(error: TurnError) -> Self {
        match error {
            TurnError::Journal(error) => error.into(),
            TurnError::Config(error) => error.into(),
            TurnError::Newer(error) => error.into(),
        }
    }
}

impl From<NewerRun> for Failure {
    fn from(error: NewerRun) -> Self {
        Self::new(Exit::DataFolder, error.to_string())
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::EmptyQuestion
            | AcceptError::QuestionTooLong { .. }
            | AcceptError::TooLarge(_)
            | AcceptError::InvalidId(_)
            | AcceptError::OtherRequest { .. }
            | AcceptError::NothingEarlier(_)
            | AcceptError::Refused(_) => Self::usage(error.to_string()),
            AcceptError::Newer(error) => error.into(),
            AcceptError::TooManyRuns { .. } => Self::new(Exit::Limit, error.to_string()),
            AcceptError::Config(error) => error.into(),
            AcceptError::Journal(error) => error.into(),
        }
    }
}

impl From<GraphError> for Failure {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::TooLarge(_) | GraphError::TimedOut(_) | GraphError::Busy(_) => {
                Self::new(Exit::Limit, error.to_string())
            }
            GraphError::Index(_) => Self::new(
                Exit::DataFolder,
                format!("{error}; if it is damaged, `trellis graph rebuild` derives it anew"),
            ),
            GraphError::Query(_) | GraphError::NoSparql => Self::usage(error.to_string()),
            GraphError::Store(error) => error.into(),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        // Whoever reads our output has seen enough: that is no failure.
        let exit = if error.kind() == std::io::ErrorKind::BrokenPipe { Exit::Ok } else { Exit::Unexpected };
        Self::new(exit, error.to_string())
    }
}
