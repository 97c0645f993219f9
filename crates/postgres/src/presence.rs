//! Which processes are there. The server knows: each of its connections says whose it is, and goes with its process.

use crate::database::Database;
use crate::journal::PostgresJournal;
use crate::turns::key_of;
use trellis_domain::Timestamp;
use trellis_orchestrator::ports::{BoxFuture, JournalError, Presence, Process, TurnInHand};

/// As which the connections of a process are listed. The server keeps the first 63 bytes.
pub fn application(deployment: &str, command: &str, process: u32, host: &str) -> String {
    format!("{}{command} {process}@{host}", prefix(deployment))
}

fn prefix(deployment: &str) -> String {
    format!("trellis {deployment} ")
}

/// The command and the id in the name of an application.
fn read<'a>(application: &'a str, prefix: &str) -> Option<(&'a str, &'a str)> {
    application.strip_prefix(prefix)?.rsplit_once(' ')
}

async fn processes(database: &Database) -> Result<Vec<Process>, JournalError> {
    let query = "SELECT application_name, (extract(epoch FROM min(backend_start)) * 1000000)::int8 \
        FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1) \
        GROUP BY application_name ORDER BY 2, 1";
    let prefix = prefix(database.schema());
    let rows = database.query(query, &[&prefix.as_str()]).await?;
    let process = |row: &tokio_postgres::Row| {
        let (command, id) = read(row.get(0), &prefix)?;
        let since = Timestamp::from_micros(row.get(1));
        Some(Process { command: command.to_owned(), id: id.to_owned(), since })
    };
    Ok(rows.iter().filter_map(process).collect())
}

async fn in_hand(database: &Database, limit: usize) -> Result<Vec<TurnInHand>, JournalError> {
    let query = "SELECT workspace, flow, run, session, name, (extract(epoch FROM claim_until) * 1000000)::int8 \
        FROM turns WHERE claim_until > clock_timestamp() ORDER BY workspace, flow, run, session, name LIMIT $1";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = database.query(query, &[&limit]).await?;
    let held = |row| Ok(TurnInHand { turn: key_of(row)?, until: Some(Timestamp::from_micros(row.get(5))) });
    rows.iter().map(held).collect()
}

impl Presence for PostgresJournal {
    fn processes(&self) -> BoxFuture<'_, Result<Vec<Process>, JournalError>> {
        Box::pin(processes(self.database()))
    }

    fn in_hand(&self, limit: usize) -> BoxFuture<'_, Result<Vec<TurnInHand>, JournalError>> {
        Box::pin(in_hand(self.database(), limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written() {
        let name = application("mine", "run watch", 7, "host.example");
        assert_eq!(read(&name, &prefix("mine")), Some(("run watch", "7@host.example")));
        assert_eq!(read(&name, &prefix("other")), None);
    }
}
