//! Questions to the graph of all runs, on the folder and at a server.

use super::Desk;
use super::server::{Refusal, Server, Trouble};
use crate::app::App;
use crate::failure::{Exit, Failure};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;
use trellis_domain::rdf::{Term, Triple};
use trellis_orchestrator::ports::{Answer, Found, Graph, GraphError, QueryLimits};

impl Desk {
    pub(crate) async fn sparql(&self, query: &str, limit: usize, patience: Duration) -> Result<Found<Answer>, Failure> {
        let answer = async {
            match self {
                Self::Local(app) => app.sparql(query, limit, patience).await,
                Self::Remote(server) => server.sparql(query, limit, patience).await,
            }
        };
        timeout(patience, answer).await.unwrap_or_else(|_| Err(too_slow(patience)))
    }
}

fn too_slow(patience: Duration) -> Failure {
    let seconds = patience.as_secs();
    Failure::new(Exit::Limit, format!("the query took longer than {seconds} s; narrow it, or raise --timeout"))
}

impl App {
    async fn sparql(&self, query: &str, limit: usize, patience: Duration) -> Result<Found<Answer>, Failure> {
        // Indexing what has finished is cheaper than projecting it for every query, but the query needs its time, too.
        self.store.graph.catch_up_within(patience / 2).await;
        let limits = QueryLimits { max_rows: limit, time: patience / 2 };
        self.store.graph.query(self.workspace(), query, limits).await.map_err(|error| match error {
            GraphError::TimedOut(_) => too_slow(patience),
            GraphError::Query(_)
            | GraphError::TooLarge(_)
            | GraphError::Index(_)
            | GraphError::NoSparql
            | GraphError::Store(_) => error.into(),
        })
    }
}

/// An answer as servers write it.
#[derive(Debug, Deserialize)]
#[serde(tag = "query-type", rename_all = "kebab-case")]
enum Told {
    Select {
        variables: Vec<String>,
        bindings: Vec<Row>,
        #[serde(default)]
        truncated: bool,
    },
    #[serde(rename_all = "kebab-case")]
    Ask {
        ask_result: bool,
    },
    Construct {
        triples: Vec<Triple>,
    },
    Describe {
        triples: Vec<Triple>,
    },
}

/// An answer, and how many runs it lacks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Reply {
    #[serde(default)]
    missing_runs: usize,
    #[serde(flatten)]
    told: Told,
}

#[derive(Debug, Deserialize)]
struct Row {
    values: Vec<Option<Term>>,
}

impl From<Told> for Answer {
    fn from(told: Told) -> Self {
        match told {
            Told::Select { variables, bindings, truncated } => {
                let rows = bindings.into_iter().map(|row| row.values).collect();
                Self::Rows { variables, rows, truncated }
            }
            Told::Ask { ask_result } => Self::Truth(ask_result),
            Told::Construct { triples } => Self::Constructed(triples),
            Told::Describe { triples } => Self::Described(triples),
        }
    }
}

impl Server {
    async fn sparql(&self, query: &str, limit: usize, patience: Duration) -> Result<Found<Answer>, Failure> {
        let body = json!({"query": query, "limit": limit, "timeout": patience.as_secs()});
        let request = self.request(Method::POST, &["sparql"], &[]).body(body.to_string());
        match self.json_within::<Reply>(request, patience).await {
            Ok(Reply { missing_runs, told }) => Ok(Found { found: told.into(), missing_runs }),
            Err(Trouble::Refused(Refusal { status: StatusCode::REQUEST_TIMEOUT, .. })) => Err(too_slow(patience)),
            Err(Trouble::Refused(Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, message, .. })) => {
                Err(Failure::new(Exit::Limit, message))
            }
            Err(trouble) => Err(self.failure(trouble)),
        }
    }
}
