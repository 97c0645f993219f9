//! The collections of a workspace. They are configuration items of the type `collection`.

use crate::call::Call;
use crate::error::ServiceError;
use crate::inside::Inside;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trellis_domain::Collection;
use trellis_domain::config::StoredItem;
use trellis_orchestrator::ports::KnowledgePlace;

const KIND: &str = "collection";

/// What is said about a collection, as it is stored and shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Described {
    #[serde(default)]
    collection: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    tags: Vec<String>,
}

impl Described {
    /// A collection of which nothing is said yet.
    fn new(collection: &Collection) -> Self {
        let name = collection.to_string();
        Self { collection: name.clone(), name, description: String::new(), tags: Vec::new() }
    }

    /// An item that somebody wrote by hand counts by its name, whatever else it says.
    fn read(item: &StoredItem) -> Option<Self> {
        let fallback = Self::new(&Collection::new(&item.key).ok()?);
        let read = serde_json::from_str::<Self>(&item.value).unwrap_or_else(|_| fallback.clone());
        let name = if read.name.is_empty() { fallback.name } else { read.name };
        Some(Self { collection: fallback.collection, name, ..read })
    }
}

pub(crate) async fn answer(call: Call) -> Result<Value, ServiceError> {
    match call.members().operation()? {
        "list-collections" => list(&call).await,
        "update-collection" => update(&call).await,
        "delete-collection" => delete(&call).await,
        _ => Err(ServiceError::unknown_operation()),
    }
}

async fn list(call: &Call) -> Result<Value, ServiceError> {
    let wanted = call.members().texts("tag-filter")?.unwrap_or_default();
    let limit = call.members().count("limit")?.filter(|limit| *limit > 0).unwrap_or(u64::MAX);
    let mut collections = all(&call.inside).await?;
    collections.retain(|found| wanted.is_empty() || found.tags.iter().any(|tag| wanted.contains(tag)));
    collections.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(reply(&collections))
}

/// Makes a collection, or changes what is said about it; what is not mentioned stays.
async fn update(call: &Call) -> Result<Value, ServiceError> {
    let (members, collection) = (call.members(), named(call)?);
    let known = all(&call.inside).await?.into_iter().find(|known| known.collection == collection.as_str());
    let mut described = known.unwrap_or_else(|| Described::new(&collection));
    if let Some(name) = members.text("name")?.filter(|name| !name.is_empty()) {
        name.clone_into(&mut described.name);
    }
    if let Some(description) = members.text("description")? {
        description.clone_into(&mut described.description);
    }
    if let Some(tags) = members.texts("tags")? {
        described.tags = tags;
    }
    let value = serde_json::to_string(&described).expect("a description is always JSON");
    let item = StoredItem { kind: KIND.to_owned(), key: collection.to_string(), value };
    call.inside.config().put(call.workspace(), vec![item], call.caller()).await?;
    Ok(reply(&[described]))
}

async fn delete(call: &Call) -> Result<Value, ServiceError> {
    let collection = named(call)?;
    if collection == Collection::default() {
        return Err(ServiceError::request("the collection `default` is always there and cannot be deleted"));
    }
    let deleted = call.inside.config().delete(call.workspace(), KIND, collection.as_str(), call.caller()).await?;
    // Its knowledge, its documents and its tables go with it. What is loaded may belong to a collection that nobody described.
    if let Some(documents) = call.inside.documents() {
        documents.search().remove_collection(call.workspace(), &collection).await?;
    }
    let place = KnowledgePlace { workspace: call.workspace().clone(), collection: collection.clone() };
    let tables = call.inside.tables().tables().remove_collection(call.workspace(), &collection).await?;
    let knowledge = call.inside.knowledge().remove(&place).await?;
    match (deleted, knowledge.or((tables > 0).then_some(tables))) {
        (None, None) => Err(ServiceError::request(format!("Collection not found: {collection}"))),
        (Some(_), _) | (_, Some(_)) => Ok(reply(&[])),
    }
}

/// All collections by name: those that are described, those that have knowledge or tables, and `default`.
async fn all(inside: &Inside) -> Result<Vec<Described>, ServiceError> {
    let (_, items) = inside.config().all(inside.workspace()).await?;
    let stored = items.iter().filter(|item| item.kind == KIND);
    let mut collections: Vec<_> = stored.filter_map(Described::read).collect();
    let loaded = inside.knowledge().collections(inside.workspace()).await?;
    let tables = inside.tables().tables().tables(inside.workspace()).await?;
    let loaded = loaded.into_iter().map(|loaded| loaded.collection);
    let undescribed = loaded.chain(tables.into_iter().map(|table| table.collection)).chain([Collection::default()]);
    for collection in undescribed {
        if collections.iter().all(|found| found.collection != collection.as_str()) {
            collections.push(Described::new(&collection));
        }
    }
    collections.sort_by(|a, b| a.collection.cmp(&b.collection));
    Ok(collections)
}

fn named(call: &Call) -> Result<Collection, ServiceError> {
    Collection::new(call.members().required("collection")?).map_err(|error| ServiceError::request(error.to_string()))
}

fn reply(collections: &[Described]) -> Value {
    json!({"timestamp": "", "collections": collections})
}
