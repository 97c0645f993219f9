//! `sparql-query`: a query over the loaded knowledge of one collection. It can change nothing, and sees no runs.

use crate::knowledge::{bound_collection, required};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::ToolItem;
use trellis_domain::rdf::{Term, Triple};
use trellis_orchestrator::ports::{Answer, Asking, Graph, GraphError, QueryLimits, ToolCall, ToolError, ToolOutput};

const NOTHING: &str = "no graph can be queried here";
/// Rows of an answer, if the tool names no other number, and at most.
const USUAL: u64 = 50;
const MOST: u64 = 1_000;
/// Bytes of an answer, and characters of one value in it.
const LONGEST: usize = 48 << 10;
const LONGEST_VALUE: usize = 500;
/// Who asks, for the graph: agents of a workspace share what one caller may have.
const CALLER: &str = "agents";

#[derive(Debug, Default)]
pub(crate) struct Sparql {
    graph: Option<Arc<dyn Graph>>,
}

impl Sparql {
    pub(crate) fn new(graph: Arc<dyn Graph>) -> Self {
        Self { graph: Some(graph) }
    }

    pub(crate) fn obstacle(&self, tool: &ToolItem) -> Option<String> {
        let wrong = || bound_collection(tool).err().map(|error| error.reason);
        self.graph.is_none().then(|| NOTHING.to_owned()).or_else(wrong)
    }

    pub(crate) async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let graph = self.graph.as_ref().ok_or_else(|| ToolError::new(NOTHING))?;
        let query = required(call, "query")?;
        let collection = bound_collection(&call.tool)?.unwrap_or_else(|| call.collection.clone());
        let asking = Asking { workspace: &call.scope.workspace, caller: Some(CALLER), knowledge: Some(&collection) };
        let limits = QueryLimits { max_rows: limit(&call.tool), time: time(call.timeout) };
        let answer = graph.query(asking, query, limits).await.map_err(|error| told(&error))?;
        Ok(ToolOutput { text: in_words(&answer.found), ..ToolOutput::default() })
    }
}

fn limit(tool: &ToolItem) -> usize {
    let wished = tool.settings.get("limit").and_then(Value::as_u64).unwrap_or(USUAL).clamp(1, MOST);
    usize::try_from(wished).unwrap_or(usize::MAX)
}

/// Less than the call itself may take, so that it is the query that says that it took too long.
fn time(timeout: Duration) -> Duration {
    QueryLimits::default().time.min(timeout.mul_f32(0.9))
}

fn told(error: &GraphError) -> ToolError {
    match error {
        GraphError::Query(_) => ToolError::new(format!("the query cannot be answered: {error}")),
        GraphError::TooLarge(_)
        | GraphError::TimedOut(_)
        | GraphError::Busy(_)
        | GraphError::Index(_)
        | GraphError::NoSparql
        | GraphError::Store(_) => ToolError::new(error.to_string()),
    }
}

fn in_words(answer: &Answer) -> String {
    match answer {
        Answer::Truth(truth) => if *truth { "Yes." } else { "No." }.to_owned(),
        Answer::Constructed(triples) | Answer::Described(triples) => of_triples(triples),
        Answer::Rows { rows, .. } if rows.is_empty() => "No rows.".to_owned(),
        Answer::Rows { variables, rows, truncated } => {
            let head = variables.iter().map(|name| format!("?{name}")).collect::<Vec<_>>().join(" | ");
            let cell = |value: &Option<Term>| value.as_ref().map(written).unwrap_or_default();
            let lines = rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" | "));
            let mut text = listed(head, lines, rows.len());
            if *truncated {
                let told = format!("\n\nThere are more than these {} rows. Narrow the query.", rows.len());
                text.push_str(&told);
            }
            text
        }
    }
}

fn of_triples(triples: &[Triple]) -> String {
    let line = |triple: &Triple| format!("{} {} {} .", written(&triple.s), written(&triple.p), written(&triple.o));
    match triples.len() {
        0 => "No triples.".to_owned(),
        count => listed(format!("{count} triples:"), triples.iter().map(line), count),
    }
}

/// As many lines as there is room for.
fn listed(mut text: String, lines: impl Iterator<Item = String>, count: usize) -> String {
    for (shown, line) in lines.enumerate() {
        if text.len() + line.len() > LONGEST {
            let told = format!("\n\n{} more were left out: they are too long. Ask for less.", count - shown);
            text.push_str(&told);
            break;
        }
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// A value on one line: an IRI as it is used in a query, a literal as it is read.
fn written(term: &Term) -> String {
    let text = match term {
        Term::Literal { value, .. } => value.split_whitespace().collect::<Vec<_>>().join(" "),
        Term::Iri { .. } | Term::Blank { .. } | Term::Quoted { .. } => term.to_string(),
    };
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
#[path = "sparql_tests.rs"]
mod tests;
