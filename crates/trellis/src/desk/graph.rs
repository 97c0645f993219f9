//! Questions to the graph of all runs, on the folder and at a server.

use super::Desk;
use super::server::{Server, ServerRefusal, ServerTrouble};
use crate::app::App;
use crate::failure::{Exit, Failure};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;
use trellis_domain::rdf::{Term, Triple};
use trellis_orchestrator::ports::{Answer, Asking, Found, GraphError, QueryLimits};

/// How long indexing may keep a query waiting that has all the time it needs, twice.
const CATCHING_UP: Duration = Duration::from_mins(1);

impl Desk {
    pub(crate) async fn sparql(
        &self,
        query: &str,
        limit: usize,
        time_limit: Option<Duration>,
    ) -> Result<Found<Answer>, Failure> {
        let answer = async {
            match self {
                Self::Local(app) => app.sparql(query, limit, time_limit).await,
                Self::Remote(server) => server.sparql(query, limit, time_limit).await,
            }
        };
        let longest = time_limit.unwrap_or(LONGEST);
        timeout(longest, answer).await.unwrap_or_else(|_| Err(too_slow(longest, "--timeout")))
    }
}

/// What a server may take if nothing else is said. It has its own limit, and tells when that is reached.
const LONGEST: Duration = Duration::from_mins(10);

fn too_slow(time: Duration, raise: &str) -> Failure {
    let seconds = time.as_secs();
    Failure::new(Exit::Limit, format!("the query took longer than {seconds} s; narrow it, or raise {raise}"))
}

impl App {
    async fn sparql(&self, query: &str, limit: usize, time_limit: Option<Duration>) -> Result<Found<Answer>, Failure> {
        // Indexing what has finished is cheaper than projecting it for every query, but the query needs its time, too.
        self.store.catch_up_within(time_limit.unwrap_or(CATCHING_UP) / 2).await;
        let limits = QueryLimits { max_rows: limit, time: time_limit.unwrap_or(Duration::MAX) };
        let asking = Asking { workspace: self.workspace(), caller: None, knowledge: None };
        self.store.material.graph.query(asking, query, limits).await.map_err(|error| match error {
            GraphError::TimedOut(time) if Some(time) == time_limit => too_slow(time, "--timeout"),
            GraphError::TimedOut(time) => too_slow(time, "--query-limit time-s=SECONDS"),
            GraphError::Query(_)
            | GraphError::TooLarge(_)
            | GraphError::Busy(_)
            | GraphError::Index(_)
            | GraphError::NoSparql
            | GraphError::Store(_) => error.into(),
        })
    }
}

/// An answer as servers write it.
#[derive(Debug, Deserialize)]
#[serde(tag = "query-type", rename_all = "kebab-case")]
enum AnswerBody {
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
struct GraphReply {
    #[serde(default)]
    missing_runs: usize,
    #[serde(flatten)]
    told: AnswerBody,
}

#[derive(Debug, Deserialize)]
struct Row {
    values: Vec<Option<Term>>,
}

impl From<AnswerBody> for Answer {
    fn from(told: AnswerBody) -> Self {
        match told {
            AnswerBody::Select { variables, bindings, truncated } => {
                let rows = bindings.into_iter().map(|row| row.values).collect();
                Self::Rows { variables, rows, truncated }
            }
            AnswerBody::Ask { ask_result } => Self::Truth(ask_result),
            AnswerBody::Construct { triples } => Self::Constructed(triples),
            AnswerBody::Describe { triples } => Self::Described(triples),
        }
    }
}

impl Server {
    async fn sparql(&self, query: &str, limit: usize, time_limit: Option<Duration>) -> Result<Found<Answer>, Failure> {
        let mut body = json!({"query": query, "limit": limit});
        if let Some(time_limit) = time_limit {
            body["timeout"] = json!(time_limit.as_secs());
        }
        let request = self.request(Method::POST, &["sparql"], &[]).body(body.to_string());
        match self.json_within::<GraphReply>(request, time_limit.unwrap_or(LONGEST)).await {
            Ok(GraphReply { missing_runs, told }) => Ok(Found { found: told.into(), missing_runs }),
            Err(ServerTrouble::Refused(ServerRefusal { status: StatusCode::PAYLOAD_TOO_LARGE, message, .. })) => {
                Err(Failure::new(Exit::Limit, message))
            }
            Err(trouble) => Err(self.failure(trouble)),
        }
    }
}
