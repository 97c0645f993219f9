//! SPARQL over the graph of a workspace.

use super::batches::{Place, Portions};
use super::held::{Written, hold_answer, written};
use crate::call::Call;
use crate::error::{ServiceError, StreamError};
use crate::inside::Gateway;
use crate::outbox::Outbox;
use serde::Serialize;
use serde_json::{Value, json};
use trellis_domain::rdf::{Term, Triple};
use trellis_orchestrator::ports::{Answer, Found, QueryLimits};

/// Everything at once.
pub(crate) async fn answer(gateway: &Gateway, call: Call) -> Result<Written, ServiceError> {
    let portions = Portions::read(call.members())?;
    whole(&ask(gateway, &call, portions.limit).await?)
}

/// Rows in batches, if that is wished. Other answers are one reply: the stock client reads no more of them.
pub(crate) async fn stream(gateway: &Gateway, call: Call, outbox: &Outbox) -> Result<(), StreamError> {
    let portions = Portions::read(call.members())?;
    let answer = ask(gateway, &call, portions.limit).await?;
    match &answer.found {
        Answer::Rows { variables, rows, truncated } if portions.streaming => {
            let _held = hold_answer(&answer.found)?;
            let rows: Vec<_> = rows.iter().map(|values| Row { values }).collect();
            let reply = |batch, place| {
                lacking(selected(variables, batch, *truncated && place == Place::Last), answer.missing_runs)
            };
            portions.send(&rows, reply, outbox).await
        }
        Answer::Rows { .. } | Answer::Truth(_) | Answer::Constructed(_) | Answer::Described(_) => {
            Ok(outbox.last(&whole(&answer)?).await?)
        }
    }
}

/// A query sees all collections of the workspace, so that which one is named does not matter.
async fn ask(gateway: &Gateway, call: &Call, limit: usize) -> Result<Found<Answer>, ServiceError> {
    let members = call.members();
    members.text("collection")?;
    let query = members.required("query")?;
    let limits = QueryLimits { max_rows: limit, ..QueryLimits::default() };
    let asking = call.inside.asking();
    tokio::select! {
        answer = call.inside.graph().query(asking, query, limits) => Ok(answer?),
        () = gateway.closed() => Err(ServiceError::stopping()),
    }
}

/// The shapes that clients read.
#[derive(Serialize)]
#[serde(tag = "query-type", rename_all = "kebab-case")]
enum Told<'a> {
    Select {
        variables: &'a [String],
        bindings: Vec<Row<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        truncated: Option<bool>,
    },
    #[serde(rename_all = "kebab-case")]
    Ask {
        ask_result: bool,
    },
    Construct {
        triples: &'a [Triple],
    },
    Describe {
        triples: &'a [Triple],
    },
}

/// The same, with how many runs it lacks: those that are not indexed yet.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Reply<'a> {
    #[serde(flatten)]
    told: Told<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_runs: Option<usize>,
}

/// An answer in one piece.
pub(crate) fn whole(answer: &Found<Answer>) -> Result<Written, ServiceError> {
    let _held = hold_answer(&answer.found)?;
    let told = match &answer.found {
        Answer::Rows { variables, rows, truncated } => {
            let bindings = rows.iter().map(|values| Row { values }).collect();
            Told::Select { variables, bindings, truncated: truncated.then_some(true) }
        }
        Answer::Truth(truth) => Told::Ask { ask_result: *truth },
        Answer::Constructed(triples) => Told::Construct { triples },
        Answer::Described(triples) => Told::Describe { triples },
    };
    Ok(written(&Reply { told, missing_runs: Some(answer.missing_runs).filter(|runs| *runs > 0) }))
}

/// A reply that says how many runs it lacks, if it lacks some: those that are not indexed yet.
pub(crate) fn lacking(mut reply: Value, missing_runs: usize) -> Value {
    if missing_runs > 0 {
        reply["missing-runs"] = json!(missing_runs);
    }
    reply
}

/// Rows under their variables. A limit that has cut some off is said: the original says nothing.
fn selected(variables: &[String], bindings: Vec<Value>, truncated: bool) -> Value {
    let mut reply = json!({"query-type": "select", "variables": variables, "bindings": bindings});
    if truncated {
        reply["truncated"] = json!(true);
    }
    reply
}

/// One value for each variable; null where there is none.
#[derive(Serialize)]
struct Row<'a> {
    values: &'a [Option<Term>],
}
