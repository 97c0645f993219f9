//! SPARQL over the graph of a workspace.

use super::batches::{Place, Portions};
use crate::Gateway;
use crate::call::Call;
use crate::error::{Refusal, Unserved};
use crate::outbox::Outbox;
use serde_json::{Value, json};
use trellis_domain::rdf::{Term, Triple};
use trellis_orchestrator::ports::{Answer, QueryLimits};

/// Everything at once.
pub(crate) async fn answer(gateway: &Gateway, call: Call) -> Result<Value, Refusal> {
    let portions = Portions::read(call.members())?;
    Ok(whole(ask(gateway, &call, portions.limit).await?))
}

/// Rows in batches, if that is wished. Other answers are one reply: the stock client reads no more of them.
pub(crate) async fn stream(gateway: &Gateway, call: Call, outbox: &Outbox) -> Result<(), Unserved> {
    let portions = Portions::read(call.members())?;
    match ask(gateway, &call, portions.limit).await? {
        Answer::Rows { variables, rows, truncated } if portions.streaming => {
            let rows: Vec<_> = rows.iter().map(row).collect();
            let reply = |batch, place| selected(&variables, batch, truncated && place == Place::Last);
            portions.send(&rows, reply, outbox).await
        }
        answer @ (Answer::Rows { .. } | Answer::Truth(_) | Answer::Constructed(_) | Answer::Described(_)) => {
            Ok(outbox.last(&whole(answer)).await?)
        }
    }
}

/// Provenance is visible under every collection, so that which one is named does not matter.
async fn ask(gateway: &Gateway, call: &Call, limit: usize) -> Result<Answer, Refusal> {
    let members = call.members();
    members.text("collection")?;
    let query = members.required("query")?;
    let limits = QueryLimits { max_rows: limit, ..QueryLimits::default() };
    tokio::select! {
        answer = call.inside.graph().query(call.workspace(), query, limits) => Ok(answer?),
        () = gateway.closed() => Err(Refusal::stopping()),
    }
}

pub(crate) fn whole(answer: Answer) -> Value {
    match answer {
        Answer::Rows { variables, rows, truncated } => selected(&variables, rows.iter().map(row).collect(), truncated),
        Answer::Truth(truth) => json!({"query-type": "ask", "ask-result": truth}),
        Answer::Constructed(triples) => graph("construct", &triples),
        Answer::Described(triples) => graph("describe", &triples),
    }
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
fn row(cells: &Vec<Option<Term>>) -> Value {
    json!({"values": cells})
}

fn graph(kind: &str, triples: &[Triple]) -> Value {
    json!({"query-type": kind, "triples": triples})
}
