//! Questions to the graph of all runs.

use crate::app::App;
use crate::cli::{Global, Output};
use crate::failure::{Exit, Failure};
use crate::show::{clean, note, print_json, print_line, table};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::counted;
use trellis_domain::rdf::Term;
use trellis_store::GraphError;
use trellis_store::view::{Answer, QueryError, QueryLimits};

pub(crate) async fn run(
    app: &App,
    global: &Global,
    query: String,
    limit: usize,
    patience: Duration,
) -> Result<Exit, Failure> {
    let answer = ask(app, query, limit, patience).await?;
    match (global.output, &answer) {
        (Output::Json, Answer::Graph(_)) => {
            return Err(Failure::usage("this query gives triples, not rows; leave --output out to get N-Triples"));
        }
        (Output::Json, _) => print_json(&answer.to_json())?,
        (Output::Csv, _) | (Output::Text | Output::Ndjson, Answer::Graph(_)) => print_line(&safe(&answer.to_csv()))?,
        (Output::Text | Output::Ndjson, Answer::Truth(truth)) => print_line(&truth.to_string())?,
        (Output::Text | Output::Ndjson, Answer::Rows { variables, rows, .. }) => {
            let text = |term: &Option<Term>| term.as_ref().map_or(String::new(), |term| term.text().to_owned());
            let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(text).collect()).collect();
            table(variables, &rows)?;
        }
    }
    if let Answer::Rows { truncated: true, .. } = answer {
        note(&format!("only the first {}; raise --limit, or add LIMIT and OFFSET", counted(limit, "row")));
    }
    Ok(Exit::Ok)
}

async fn ask(app: &App, query: String, limit: usize, patience: Duration) -> Result<Answer, Failure> {
    let limits = QueryLimits { max_rows: limit, ..QueryLimits::default() };
    let cancellation = limits.cancellation.clone();
    let (graph, workspace) = (Arc::clone(&app.store.graph), app.workspace().clone());
    let work = tokio::task::spawn_blocking(move || {
        // Indexing what has finished is cheaper than projecting it for every query.
        graph.catch_up()?;
        graph.query(&workspace, &query, &limits)
    });
    let watch = tokio::spawn(async move {
        tokio::time::sleep(patience).await;
        cancellation.cancel();
    });
    let answer = work.await.map_err(Failure::unexpected)?;
    watch.abort();
    answer.map_err(|error| match error {
        GraphError::Query(QueryError::Cancelled) => {
            let seconds = patience.as_secs();
            Failure::new(Exit::Limit, format!("the query took longer than {seconds} s; narrow it, or raise --timeout"))
        }
        GraphError::Query(_) | GraphError::View(_) | GraphError::Journal(_) => error.into(),
    })
}

/// Data stays as it is; only a terminal is spared its controls.
fn safe(text: &str) -> String {
    let text = text.trim_end();
    if std::io::stdout().is_terminal() { clean(text) } else { text.to_owned() }
}
