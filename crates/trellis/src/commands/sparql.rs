//! Questions to the graph of all runs.

use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{clean, note, print_json, print_line, table};
use std::io::IsTerminal;
use std::time::Duration;
use trellis_domain::counted;
use trellis_domain::marks::with_visible_marks;
use trellis_domain::rdf::Term;
use trellis_orchestrator::ports::{Answer, Found};
use trellis_store::view::answer;

pub(crate) async fn run(
    desk: &Desk,
    global: &Global,
    query: &str,
    limit: usize,
    time_limit: Option<Duration>,
) -> Result<Exit, Failure> {
    let Found { found: answer, missing_runs } = desk.sparql(query, limit, time_limit).await?;
    match (global.output, &answer) {
        (Output::Json, Answer::Constructed(_) | Answer::Described(_)) => {
            return Err(Failure::usage("this query gives triples, not rows; leave --output out to get N-Triples"));
        }
        (Output::Json, _) => print_json(&answer::to_json(&answer))?,
        (Output::Csv, _) | (Output::Text | Output::Ndjson, Answer::Constructed(_) | Answer::Described(_)) => {
            print_line(&safe(&answer::to_csv(&answer)))?;
        }
        (Output::Text | Output::Ndjson, Answer::Truth(truth)) => print_line(&truth.to_string())?,
        (Output::Text | Output::Ndjson, Answer::Rows { variables, rows, .. }) => {
            let text = |term: &Option<Term>| term.as_ref().map_or(String::new(), |term| term.text().to_owned());
            let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(text).collect()).collect();
            table(variables, &rows)?;
        }
    }
    if let Answer::Rows { truncated: true, rows, .. } = answer {
        let what_to_do = if rows.len() < limit { "add" } else { "raise --limit, or add" };
        note(&format!("only the first {}; {what_to_do} LIMIT and OFFSET", counted(rows.len(), "row")));
    }
    if missing_runs > 0 {
        let runs = counted(missing_runs, "run");
        note(&format!("the index is behind: what {runs} say is missing; ask again later, or name a run in the query"));
    }
    Ok(Exit::Ok)
}

/// Data stays as it is but for what makes a line read as something else, which is written as an escape; N-Triples mean
/// the same by it. A terminal is spared all controls.
fn safe(text: &str) -> String {
    let text = with_visible_marks(text.trim_end());
    if std::io::stdout().is_terminal() { clean(&text) } else { text.into_owned() }
}
