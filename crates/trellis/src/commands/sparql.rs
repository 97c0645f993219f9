//! Questions to the graph of all runs.

use crate::app::App;
use crate::cli::{Global, Output};
use crate::failure::{Exit, Failure};
use crate::show::{print_line, table};
use trellis_store::view::{Answer, QueryLimits};

pub(crate) fn run(app: &App, global: &Global, query: &str, limit: usize) -> Result<Exit, Failure> {
    // Indexing what has finished is cheaper than projecting it for every query.
    app.store.graph.catch_up()?;
    let limits = QueryLimits { max_rows: limit, ..QueryLimits::default() };
    let answer = app.store.graph.query(app.workspace(), query, &limits)?;
    match (global.output, &answer) {
        (Output::Json, _) => print_line(&answer.to_json())?,
        (Output::Csv, _) => print_line(answer.to_csv().trim_end())?,
        (Output::Text | Output::Ndjson, Answer::Truth(truth)) => print_line(&truth.to_string())?,
        (Output::Text | Output::Ndjson, Answer::Graph(_)) => print_line(answer.to_csv().trim_end())?,
        (Output::Text | Output::Ndjson, Answer::Rows { variables, rows, truncated }) => {
            let text =
                |term: &Option<trellis_domain::rdf::Term>| term.as_ref().map_or(String::new(), |t| t.text().to_owned());
            let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(text).collect()).collect();
            table(variables, &rows)?;
            if *truncated {
                eprintln!("only the first {limit} rows; raise --limit or add LIMIT and OFFSET");
            }
        }
    }
    Ok(Exit::Ok)
}
