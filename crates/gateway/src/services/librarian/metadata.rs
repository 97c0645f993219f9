//! What is said about documents, as clients write and read it.

use crate::error::ServiceError;
use crate::members::Members;
use serde_json::{Map, Value, json};
use trellis_domain::Timestamp;
use trellis_domain::rdf::{Term, Triple};
use trellis_orchestrator::ports::{DocumentMetadata, MetadataChanges, Processing, StoredDocument};

/// The type of a document of which nothing else is said.
pub(super) const SOURCE: &str = "source";

/// A document to be added.
pub(super) fn read_document(request: Members<'_>, now: Timestamp) -> Result<DocumentMetadata, ServiceError> {
    let about = object(request, "document-metadata")?;
    let text = |name: &str| Ok::<_, ServiceError>(about.text(name)?.unwrap_or_default().to_owned());
    let some = |text: String| (!text.is_empty()).then_some(text);
    Ok(DocumentMetadata {
        id: id(request, about)?.to_owned(),
        kind: text("kind")?,
        document_type: some(text("document-type")?).unwrap_or_else(|| SOURCE.to_owned()),
        parent: some(text("parent-id")?),
        time: time(about)?.unwrap_or(now),
        title: text("title")?,
        comments: text("comments")?,
        metadata: triples(about)?.unwrap_or_default(),
        tags: about.texts("tags")?.unwrap_or_default(),
    })
}

/// Which document changes, and how.
pub(super) fn changes(request: Members<'_>) -> Result<(&str, MetadataChanges), ServiceError> {
    let about = object(request, "document-metadata")?;
    let text = |name: &str| Ok::<_, ServiceError>(about.text(name)?.map(str::to_owned));
    let changes = MetadataChanges {
        time: time(about)?,
        title: text("title")?,
        comments: text("comments")?,
        metadata: triples(about)?,
        tags: about.texts("tags")?,
    };
    Ok((id(request, about)?, changes))
}

pub(super) fn read_processing(request: Members<'_>, now: Timestamp) -> Result<Processing, ServiceError> {
    let about = object(request, "processing-metadata")?;
    let text = |name: &str| about.required(name).map(str::to_owned);
    Ok(Processing {
        id: text("id")?,
        document: text("document-id")?,
        time: time(about)?.unwrap_or(now),
        flow: text("flow")?,
        collection: text("collection")?,
        tags: about.texts("tags")?.unwrap_or_default(),
    })
}

/// A document as it is shown. Title and time are there even if they say nothing: the SDK insists on them.
pub(super) fn written(document: &StoredDocument) -> Value {
    let about = &document.metadata;
    let mut members = json!({
        "id": about.id,
        "time": seconds(about.time),
        "kind": about.kind,
        "title": about.title,
        "metadata": about.metadata,
        "tags": about.tags,
        "size": document.size,
        "sha256": document.sha256.to_string(),
    });
    let optional = [
        ("comments", about.comments.as_str()),
        ("parent-id", about.parent.as_deref().unwrap_or_default()),
        ("document-type", &about.document_type),
    ];
    for (name, text) in optional.into_iter().filter(|(_, text)| !text.is_empty()) {
        members[name] = json!(text);
    }
    members
}

pub(super) fn processing(processing: &Processing) -> Value {
    json!({
        "id": processing.id,
        "document-id": processing.document,
        "time": seconds(processing.time),
        "flow": processing.flow,
        "collection": processing.collection,
        "tags": processing.tags,
    })
}

fn seconds(time: Timestamp) -> i64 {
    time.as_micros().div_euclid(1_000_000)
}

fn object<'a>(request: Members<'a>, name: &str) -> Result<Members<'a>, ServiceError> {
    let members: Option<&'a Map<String, Value>> = request.object(name)?;
    members
        .map(Members::new)
        .ok_or_else(|| ServiceError::request(format!("the member `{name}` is missing; it must be an object")))
}

/// The id stands in the metadata or beside them.
fn id<'a>(request: Members<'a>, about: Members<'a>) -> Result<&'a str, ServiceError> {
    for given in [about.text("id")?, about.text("document-id")?, request.text("document-id")?] {
        if let Some(id) = given.filter(|id| !id.is_empty()) {
            return Ok(id);
        }
    }
    Err(ServiceError::request("the document has no `id`; write one, such as an IRI"))
}

/// Seconds since 1970, perhaps with a fraction.
fn time(about: Members<'_>) -> Result<Option<Timestamp>, ServiceError> {
    let Some(value) = about.value("time") else { return Ok(None) };
    let whole = value.as_i64().and_then(|seconds| seconds.checked_mul(1_000_000));
    #[expect(clippy::cast_possible_truncation, reason = "a time beyond all years is cut off at their end")]
    let micros = whole.or_else(|| value.as_f64().map(|seconds| (seconds * 1e6) as i64));
    let wrong = || ServiceError::request("the member `time` must be a number of seconds since 1970");
    micros.map(Timestamp::from_micros).map(Some).ok_or_else(wrong)
}

fn triples(about: Members<'_>) -> Result<Option<Vec<Triple>>, ServiceError> {
    let Some(value) = about.value("metadata") else { return Ok(None) };
    let wrong = |error| ServiceError::request(format!("the member `metadata` must be a list of triples: {error}"));
    let mut triples: Vec<Triple> = serde_json::from_value(value.clone()).map_err(wrong)?;
    // No literal can stand there; stock clients that add what they have read before write texts.
    for term in triples.iter_mut().flat_map(|triple| [&mut triple.s, &mut triple.p]) {
        if let Term::Literal { value, .. } = term {
            *term = Term::iri(std::mem::take(value));
        }
    }
    Ok(Some(triples))
}
