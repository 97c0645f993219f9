//! Open turns, and who has them. Claims expire by the database's clock, whatever the processes think it is.

use crate::database::{Database, Parameters};
use crate::error::damaged;
use std::collections::HashSet;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use trellis_domain::record::Name;
use trellis_domain::{Flow, RunId, Scope, SessionId, Timestamp, Workspace};
use trellis_orchestrator::ports::{Claim, Claiming, JournalError, OpenTurn, TurnKey};

const KEY: &str = "workspace = $1 AND flow = $2 AND run = $3 AND session = $4 AND name = $5";
const COLUMNS: &str = "workspace, flow, run, session, name, due, is_root, begun";
const IN_ORDER: &str = "workspace, flow, run, session, name";
const FREE: &str = "(claim_until IS NULL OR claim_until <= clock_timestamp())";
const MINE: &str = "claim_process = $6 AND claim_number = $7";

/// The id of a claim as columns have it.
fn id(claim: &Claim) -> (i64, i64) {
    (claim.id.process.cast_signed(), claim.id.number.cast_signed())
}

/// A claim is not waited for until it is on disk: one that is lost with the server says no more than one that has expired.
/// Somebody else may begin the turn, and the first commit counts.
pub(crate) async fn claim(database: &Database, claim: &Claim, life: Duration) -> Result<Claiming, JournalError> {
    let update = format!(
        "UPDATE turns SET begun = begun + CASE WHEN {MINE} THEN 0 ELSE 1 END, \
         claim_process = $6, claim_number = $7, claim_until = clock_timestamp() + make_interval(secs => $8) \
         WHERE {KEY} AND ({FREE} OR ({MINE})) RETURNING begun"
    );
    let (turn, (process, number), life) = (&claim.turn, id(claim), life.as_secs_f64());
    let [workspace, flow, run, session, name] = key(turn);
    let parameters: Parameters<'_> = &[&workspace, &flow, &run, &session, &name, &process, &number, &life];
    if let Some(row) = database.change_casually(&update, parameters).await?.first() {
        let begun: i32 = row.get(0);
        return Ok(Claiming::Claimed { begun: begun.cast_unsigned(), expires: true });
    }
    Ok(if is_open(database, turn).await? { Claiming::Held } else { Claiming::Closed })
}

/// One that has expired and that nobody else has claimed is as good as new.
pub(crate) async fn renew(database: &Database, claim: &Claim, life: Duration) -> Result<bool, JournalError> {
    let update = format!(
        "UPDATE turns SET claim_until = clock_timestamp() + make_interval(secs => $8) WHERE {KEY} AND {MINE} RETURNING 1"
    );
    let ([workspace, flow, run, session, name], (process, number)) = (key(&claim.turn), id(claim));
    let life = life.as_secs_f64();
    let parameters: Parameters<'_> = &[&workspace, &flow, &run, &session, &name, &process, &number, &life];
    Ok(!database.change_casually(&update, parameters).await?.is_empty())
}

pub(crate) async fn give_back(database: &Database, claim: &Claim) -> Result<(), JournalError> {
    let update = format!(
        "UPDATE turns SET begun = greatest(begun - 1, 0), claim_process = NULL, claim_number = NULL, claim_until = NULL \
         WHERE {KEY} AND {MINE}"
    );
    let ([workspace, flow, run, session, name], (process, number)) = (key(&claim.turn), id(claim));
    let parameters: Parameters<'_> = &[&workspace, &flow, &run, &session, &name, &process, &number];
    database.change_casually(&update, parameters).await.map(drop)
}

pub(crate) async fn is_open(database: &Database, turn: &TurnKey) -> Result<bool, JournalError> {
    let [workspace, flow, run, session, name] = key(turn);
    let query = format!("SELECT 1 FROM turns WHERE {KEY}");
    Ok(database.find(&query, &[&workspace, &flow, &run, &session, &name]).await?.is_some())
}

pub(crate) async fn in_hand(database: &Database, workspace: &Workspace) -> Result<HashSet<RunId>, JournalError> {
    let query = "SELECT DISTINCT run FROM turns WHERE workspace = $1 AND claim_until > clock_timestamp()";
    let rows = database.query(query, &[&workspace.as_str()]).await?;
    rows.iter().map(|row| RunId::new(row.get::<_, &str>(0)).map_err(damaged)).collect()
}

/// What is not due is not looked at: each half has an index of its own.
pub(crate) async fn due(
    database: &Database,
    until: Timestamp,
    after: Option<&TurnKey>,
    limit: usize,
) -> Result<Vec<OpenTurn>, JournalError> {
    let behind = if after.is_some() { "(workspace, flow, run, session, name) > ($3, $4, $5, $6, $7)" } else { "true" };
    let at_once = format!("SELECT {COLUMNS} FROM turns WHERE due IS NULL AND {FREE} AND {behind}");
    // What is due is found first, and then put in order: the other way round, all that is not due would be read.
    let ripe = format!("SELECT {COLUMNS} FROM turns WHERE due <= $1 AND {FREE} OFFSET 0");
    let delayed = format!("SELECT * FROM ({ripe}) AS ripe WHERE {behind}");
    let query = format!(
        "SELECT * FROM (({at_once} ORDER BY {IN_ORDER} LIMIT $2) UNION ALL ({delayed} ORDER BY {IN_ORDER} LIMIT $2)) AS due \
         ORDER BY {IN_ORDER} LIMIT $2"
    );
    let (until, limit) = (until.as_micros(), i64::try_from(limit).unwrap_or(i64::MAX));
    let after = after.map(key);
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&until, &limit];
    if let Some(columns) = &after {
        parameters.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
    }
    database.query(&query, &parameters).await?.iter().map(open).collect()
}

pub(crate) async fn of_run(
    database: &Database,
    workspace: &Workspace,
    run: &RunId,
) -> Result<Vec<OpenTurn>, JournalError> {
    let query = format!("SELECT {COLUMNS} FROM turns WHERE workspace = $1 AND run = $2 ORDER BY {IN_ORDER}");
    database.query(&query, &[&workspace.as_str(), &run.as_str()]).await?.iter().map(open).collect()
}

fn key(turn: &TurnKey) -> [&str; 5] {
    let TurnKey { scope, run, session, name } = turn;
    [scope.workspace.as_str(), scope.flow.as_str(), run.as_str(), session.as_str(), name.as_str()]
}

/// The key of a turn in the first five columns.
pub(crate) fn key_of(row: &Row) -> Result<TurnKey, JournalError> {
    let text = |column| row.get::<_, &str>(column);
    let scope =
        Scope { workspace: Workspace::new(text(0)).map_err(damaged)?, flow: Flow::new(text(1)).map_err(damaged)? };
    let (run, session) = (RunId::new(text(2)).map_err(damaged)?, SessionId::new(text(3)).map_err(damaged)?);
    Ok(TurnKey { scope, run, session, name: Name::new(text(4).to_owned()) })
}

fn open(row: &Row) -> Result<OpenTurn, JournalError> {
    let due = row.get::<_, Option<i64>>(5).map(Timestamp::from_micros);
    let begun: i32 = row.get(7);
    Ok(OpenTurn { begun: begun.cast_unsigned(), ..OpenTurn::new(key_of(row)?, due, row.get(6)) })
}

/// The keys of turns, column by column.
#[derive(Default)]
pub(crate) struct TurnColumns<'a> {
    workspaces: Vec<&'a str>,
    flows: Vec<&'a str>,
    runs: Vec<&'a str>,
    sessions: Vec<&'a str>,
    names: Vec<&'a str>,
}

impl<'a> TurnColumns<'a> {
    pub(crate) fn of(turns: impl IntoIterator<Item = &'a TurnKey>) -> Self {
        let mut columns = Self::default();
        for turn in turns {
            let [workspace, flow, run, session, name] = key(turn);
            columns.workspaces.push(workspace);
            columns.flows.push(flow);
            columns.runs.push(run);
            columns.sessions.push(session);
            columns.names.push(name);
        }
        columns
    }

    pub(crate) fn columns(&self) -> [&(dyn ToSql + Sync); 5] {
        [&self.workspaces, &self.flows, &self.runs, &self.sessions, &self.names]
    }
}
