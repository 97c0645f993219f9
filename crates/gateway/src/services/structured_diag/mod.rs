//! `structured-diag`: what a piece of a file is, which schema it fits, and how a loader has to read it.
//!
//! Names that are alike need no model. Where they are not, one is asked, inside of the columns and fields that there are.

mod descriptor;
mod sample;

use super::asking::{Told, ask, mark};
use super::model::begin;
use crate::call::Call;
use crate::error::{Code, ServiceError};
use crate::inside::Gateway;
use descriptor::{Pairs, by_name, is_whole, reply_schema, with_reply, written};
use sample::{Kind, Look};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::table::{TableSchema, graphql_name};
use trellis_orchestrator::tables::SELECTION;
use trellis_orchestrator::tables::graphql::described;

/// The prompt for a descriptor.
const DESCRIPTOR: &str = "diagnose-structured-data";
/// Bytes of a sample.
const LARGEST_SAMPLE: usize = 256 << 10;
/// Schemas that a model is shown at once.
const MOST_SHOWN: usize = 100;
/// Schemas that a sample is held against.
const MOST_COMPARED: usize = 1_000;

type Schemas = BTreeMap<String, Arc<TableSchema>>;

pub(super) async fn answer(gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
    let _in_flight = begin(gateway)?;
    let members = call.members();
    let (operation, sample) = (members.operation()?, members.required("sample")?);
    if sample.len() > LARGEST_SAMPLE {
        let (size, most) = (sample.len(), LARGEST_SAMPLE >> 10);
        return Err(ServiceError::request(format!("the sample has {size} bytes; at most {most} KiB are looked at")));
    }
    let mut reply = match operation {
        "detect-type" => detected(sample)?,
        "schema-selection" => json!({"schema-matches": select(&call, sample).await?}),
        "generate-descriptor" => {
            let unknown = || ServiceError::request("the member `type` must be csv, json or xml");
            let kind = Kind::named(members.required("type")?).ok_or_else(unknown)?;
            let name = members.required("schema-name")?;
            let descriptor = describe(&call, sample, kind, name).await?;
            json!({"descriptor": descriptor, "metadata": {"schema_name": name, "type": kind.word()}})
        }
        "diagnose" => diagnose(&call, sample).await?,
        _ => return Err(ServiceError::unknown_operation()),
    };
    reply["operation"] = json!(operation);
    Ok(reply)
}

fn kind_of(sample: &str) -> Result<(Kind, f64), ServiceError> {
    Kind::of(sample).ok_or_else(|| ServiceError::request("the sample says nothing"))
}

fn detected(sample: &str) -> Result<Value, ServiceError> {
    let (kind, confidence) = kind_of(sample)?;
    Ok(json!({"detected-type": kind.word(), "confidence": confidence, "metadata": metadata(&Look::at(sample, kind))}))
}

/// Texts, as the original has them.
fn metadata(look: &Look) -> Map<String, Value> {
    let mut metadata = Map::new();
    if look.kind == Kind::Csv {
        let mut options = look.options.clone();
        options.insert("encoding".to_owned(), json!("utf-8"));
        metadata.insert("csv_options".to_owned(), json!(Value::Object(options).to_string()));
    }
    metadata
}

/// All of it in one. Where no schema is named, it is chosen.
async fn diagnose(call: &Call, sample: &str) -> Result<Value, ServiceError> {
    let mut reply = detected(sample)?;
    let (kind, _) = kind_of(sample)?;
    let named = call.members().text("schema-name")?.filter(|name| !name.is_empty());
    let name = match named {
        Some(name) => name.to_owned(),
        None => select(call, sample).await?.into_iter().next().ok_or_else(no_schema)?,
    };
    reply["descriptor"] = describe(call, sample, kind, &name).await?;
    reply["metadata"]["schema_name"] = json!(name);
    reply["metadata"]["auto_selected_schema"] = json!(named.is_none());
    Ok(reply)
}

fn no_schema() -> ServiceError {
    ServiceError::request("no schema is configured; add an item of type `schema`")
}

async fn schemas(call: &Call) -> Result<Schemas, ServiceError> {
    Ok(call.inside.config().pin(call.workspace()).await?.schemas.clone())
}

/// The schemas that a sample fits, the best first. One whose fields are all there needs no model, and neither does an
/// only one.
async fn select(call: &Call, sample: &str) -> Result<Vec<String>, ServiceError> {
    let schemas = schemas(call).await?;
    if schemas.len() > MOST_COMPARED {
        let why = format!("there are {} schemas, of which {MOST_COMPARED} can be compared; name one", schemas.len());
        return Err(ServiceError::request(why));
    }
    let look = Look::at(sample, kind_of(sample)?.0);
    let whole = schemas.iter().filter(|(_, schema)| is_whole(&by_name(&look, schema), schema));
    let whole: Vec<String> = whole.map(|(name, _)| name.clone()).collect();
    match (schemas.len(), whole.len()) {
        (0, _) => return Err(no_schema()),
        (1, _) => return Ok(schemas.into_keys().collect()),
        (_, 1) => return Ok(whole),
        (count, _) if count > MOST_SHOWN => {
            let why =
                format!("there are {count} schemas, of which {MOST_SHOWN} can be shown to a model at once; name one");
            return Err(ServiceError::request(why));
        }
        (_, _) => {}
    }
    let allowed = json!({"type": "array", "items": {"type": "string", "enum": schemas.keys().collect::<Vec<_>>()}});
    let variables = [("question", json!(sample)), ("schemas", described(&schemas, false)), ("mark", mark(call))];
    let Told { value, .. } = ask(call, SELECTION, variables, allowed).await?;
    let named = value.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(Value::as_str);
    // They are shown as they are written in queries.
    let meant = |name: &str| schemas.keys().find(|known| *known == name || graphql_name(known) == name).cloned();
    Ok(named.filter_map(meant).collect())
}

/// A model that fails leaves what needs none, if that is anything.
async fn describe(call: &Call, sample: &str, kind: Kind, name: &str) -> Result<Value, ServiceError> {
    let mut schemas = schemas(call).await?;
    schemas.retain(|known, _| known == name);
    let unknown =
        || ServiceError::request(format!("there is no schema `{name}`; add the configuration item schema/{name}"));
    let schema = schemas.values().next().cloned().ok_or_else(unknown)?;
    let look = Look::at(sample, kind);
    let mut options = look.options.clone();
    let mut pairs: Pairs = by_name(&look, &schema);
    if !is_whole(&pairs, &schema) {
        let variables = [("sample", json!(sample)), ("schemas", described(&schemas, true)), ("mark", mark(call))];
        match ask(call, DESCRIPTOR, variables, reply_schema(&look, &schema)).await {
            Ok(Told { value, .. }) => {
                if options.is_empty()
                    && let Some(told) = value["format"]["options"].as_object()
                {
                    options.clone_from(told);
                }
                pairs = with_reply(pairs, &value, &look, &schema);
            }
            Err(error) if pairs.is_empty() => return Err(error),
            Err(error) => tracing::debug!(%error, "columns are matched by their names only"),
        }
    }
    if pairs.is_empty() {
        let why = format!("no column of the sample was found to be a field of the schema `{name}`");
        return Err(ServiceError::new(Code::Model, why));
    }
    Ok(written(&look, options, &pairs, &schema))
}
