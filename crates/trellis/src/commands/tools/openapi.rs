//! An operation of an `OpenAPI` document as the item of a tool. What is stored says everything, and the document is not read
//! again.

use crate::cli::AddTool;
use crate::failure::{Exit, Failure};
use crate::show::{clean, note};
use reqwest::Url;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use trellis_orchestrator::toolbox::openapi::{OpenApiError, Wanted, expand};

/// The largest document that is read.
const MOST_BYTES: usize = 32 << 20;
/// How long a server may say nothing.
const SILENT: Duration = Duration::from_secs(30);

/// The item of the operation that is asked for, as JSON.
pub(super) async fn item(add: &AddTool, place: &str) -> Result<String, Failure> {
    let is_address = place.starts_with("http://") || place.starts_with("https://");
    let bytes = if is_address { fetched(place).await? } else { read(place)? };
    let document: Value = serde_json::from_slice(&bytes).map_err(|error| unreadable(place, &bytes, &error))?;
    let wanted = Wanted {
        operation: add.operation.as_deref().unwrap_or_default(),
        found_at: is_address.then_some(place),
        server: add.server.as_deref(),
        secrets: &add.secret,
    };
    let expanded = expand(&document, wanted).map_err(|error| refused(place, &error))?;
    for left_out in &expanded.notes {
        note(&clean(left_out));
    }
    Ok(expanded.item.to_string())
}

/// What was wrong, and which flag helps.
fn refused(place: &str, error: &OpenApiError) -> Failure {
    let flag = match error {
        OpenApiError::Unnamed { .. } => "; --operation names it",
        OpenApiError::Server(_) => "; --server names it",
        OpenApiError::NeedsSecret { .. } => {
            "; --secret names it, and [tools.secrets] in the settings file says where it is"
        }
        OpenApiError::NotOpenApi(_)
        | OpenApiError::NoOperation { .. }
        | OpenApiError::Reference { .. }
        | OpenApiError::TooLarge { .. }
        | OpenApiError::Security(_)
        | OpenApiError::NotSupported { .. } => "",
    };
    Failure::usage(clean(&format!("{place}: {error}{flag}")))
}

fn unreadable(place: &str, bytes: &[u8], error: &serde_json::Error) -> Failure {
    let looks_like_yaml = bytes.starts_with(b"openapi:") || bytes.starts_with(b"%YAML") || bytes.starts_with(b"---");
    let why = if looks_like_yaml {
        "it is YAML, and only JSON is read; most servers publish it as openapi.json, too".to_owned()
    } else {
        format!("it is not JSON: {error}")
    };
    Failure::usage(format!("{}: {why}", clean(place)))
}

fn read(file: &str) -> Result<Vec<u8>, Failure> {
    let wrong = |error: std::io::Error| Failure::usage(format!("{}: {error}", clean(file)));
    if std::fs::metadata(file).map_err(wrong)?.len() > MOST_BYTES as u64 {
        return Err(too_large(file));
    }
    std::fs::read(file).map_err(wrong)
}

fn too_large(place: &str) -> Failure {
    Failure::usage(format!("{}: documents of more than {} MB are not read", clean(place), MOST_BYTES >> 20))
}

async fn fetched(address: &str) -> Result<Vec<u8>, Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::new(Exit::Unreachable, format!("{address}: {why}"));
    let silent = |_| failed(&format!("nothing came for {} s", SILENT.as_secs()));
    let url = Url::parse(address).map_err(|error| Failure::usage(format!("{address}: {error}")))?;
    let client = trellis_models::client(&url, reqwest::header::HeaderMap::new(), SILENT);
    let sent = timeout(SILENT, client.map_err(|error| failed(&error))?.get(url).send()).await.map_err(silent)?;
    let mut response = sent.and_then(reqwest::Response::error_for_status).map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    while let Some(piece) = timeout(SILENT, response.chunk()).await.map_err(silent)?.map_err(|error| failed(&error))? {
        if bytes.len() + piece.len() > MOST_BYTES {
            return Err(too_large(address));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}
