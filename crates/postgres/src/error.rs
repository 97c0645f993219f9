//! What can go wrong with a database, in the words of the ports.

use tokio_postgres::error::SqlState;
use trellis_orchestrator::ports::JournalError;

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("`{0}` is no address of a database; write postgres://USER:PASSWORD@HOST:5432/NAME")]
    Address(String),
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    #[error("the database was set up by a newer program (version {found}, this one knows {known}); use that program")]
    Newer { found: i32, known: i32 },
    #[error("the tables cannot be made: {0}; the user needs the right to create a schema in this database")]
    Migration(String),
    #[error("PostgreSQL {0} is too old; version 14 or newer is needed")]
    TooOld(String),
    #[error("the database's encoding is {0}; make one with ENCODING 'UTF8'")]
    Encoding(String),
    #[error("connections cannot be encrypted: {0}")]
    Encryption(String),
    #[error("the key that signs checkpoints cannot be used: {0}")]
    Key(String),
    #[error(transparent)]
    Store(#[from] JournalError),
}

/// What a statement said. What the data is to blame for would be so again, and must not be repeated for ever; everything
/// else may succeed later. Whether it took effect is unknown if the connection went.
pub(crate) fn failed(error: tokio_postgres::Error) -> JournalError {
    let Some(said) = error.as_db_error() else { return JournalError::Unavailable(told(&error)) };
    let told = format!("{} ({})", said.message(), said.code().code());
    // What somebody else has written meanwhile is found at the next look.
    let of_the_data = *said.code() != SqlState::UNIQUE_VIOLATION
        && ([SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(said.code())
            || ["22", "23", "54"].contains(&said.code().code().get(..2).unwrap_or_default()));
    if of_the_data { JournalError::Damaged(told) } else { JournalError::Unavailable(told) }
}

/// Whether somebody else had something for longer than it is waited for.
pub(crate) fn is_locked(error: &JournalError) -> bool {
    error.to_string().ends_with(&format!("({})", SqlState::LOCK_NOT_AVAILABLE.code()))
}

/// The words of an error with those of its causes.
fn told(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"))
}

pub(crate) fn no_connection(error: deadpool_postgres::PoolError) -> JournalError {
    use deadpool_postgres::{PoolError, TimeoutType};
    match error {
        PoolError::Backend(error) => failed(error),
        PoolError::Timeout(TimeoutType::Wait) => {
            JournalError::Unavailable("all connections are in use; allow more of them".to_owned())
        }
        PoolError::Timeout(_) => JournalError::Unavailable("the server does not answer".to_owned()),
        other @ (PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_)) => {
            JournalError::Unavailable(told(&other))
        }
    }
}

pub(crate) fn damaged(what: impl std::fmt::Display) -> JournalError {
    JournalError::Damaged(what.to_string())
}

/// Of several statements that went out together, the error that made the others fail.
pub(crate) fn first_cause<const N: usize>(errors: [Option<JournalError>; N]) -> Result<(), JournalError> {
    let mut errors: Vec<_> = errors.into_iter().flatten().collect();
    let echo = format!("({})", SqlState::IN_FAILED_SQL_TRANSACTION.code());
    // Those after it say only that something has failed.
    errors.sort_by_key(|error| error.to_string().ends_with(&echo));
    errors.into_iter().next().map_or(Ok(()), Err)
}
