//! `/api/openapi.json` and `/api/docs`: what this server offers, made from the code that offers it.

mod examples;
mod page;

use crate::api;
use crate::error::ErrorBody;
use crate::inside::Gateway;
use crate::openai;
use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use std::sync::Arc;
use trellis_orchestrator::events::RunEvent;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;

/// The document without our own paths, which their router adds.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Trellis",
        description = "Agents whose every decision is recorded. Ask a question with `POST /api/v1/runs`, follow it at \
            `/api/v1/runs/{id}/events`, and read afterwards why it was answered so.\n\nWhere tokens are set, each \
            request carries one: `Authorization: Bearer TOKEN`. Errors are objects with a `type` for programs and a \
            `message` for people.\n\nOther agents use `/mcp`, which speaks the Model Context Protocol.",
    ),
    tags(
        (name = "runs", description = "Questions, what they cause and what is known about it."),
        (name = "log", description = "What proves that no record was changed."),
        (name = "knowledge", description = "What was loaded, by collection."),
        (name = "tables", description = "Rows that were loaded, by collection and schema."),
        (name = "tools", description = "What agents can do, and what one call of it brings."),
        (name = "configuration", description = "Patterns, task types, tools and prompts, with their versions."),
        (name = "compatible", description = "What stock TrustGraph clients use. They work unchanged."),
        (name = "health", description = "For whoever keeps the server running."),
    ),
    paths(
        crate::rest::workspace_service, crate::rest::flow_service, crate::socket::upgrade, crate::documents::stream,
        crate::import::upgrade, crate::rest::auth, crate::health::live, crate::health::ready, crate::health::metrics, crate::figures::query,
        ontology,
    ),
    components(schemas(api::ApiError, RunEvent)),
    security((), ("bearer" = [])),
    modifiers(&Bearer),
)]
struct Document;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

fn own_paths() -> OpenApiRouter<Arc<Gateway>> {
    let mut document = Document::openapi();
    document.merge(openai::Document::openapi());
    let document = OpenApiRouter::with_openapi(document);
    document.merge(api::router())
}

/// Our own paths, and the document about all.
pub(crate) fn routes() -> Router<Arc<Gateway>> {
    let (own, document) = own_paths().split_for_parts();
    let mut document = serde_json::to_value(document).expect("the document is always JSON");
    examples::add(&mut document);
    let page: Arc<str> = page::write(&document).into();
    let text: Arc<str> = document.to_string().into();
    let json = move || async move { ([(header::CONTENT_TYPE, "application/json")], text.to_string()).into_response() };
    let html = move || async move { Html(page.to_string()) };
    own.route("/api/openapi.json", get(json)).route("/api/docs", get(html))
}

/// Read the ontology
///
/// The words of the provenance graph, for whoever reads one without this program.
#[utoipa::path(
    get, path = "/ontology", tag = "runs", operation_id = "ontology",
    responses(
        (status = 200, description = "The ontology", body = String, content_type = "text/turtle"),
        (status = 403, description = "From a page of another site", body = ErrorBody),
        (status = 429, description = "Too many wrong tokens came from this address", body = ErrorBody),
    ),
)]
pub(crate) async fn ontology() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/turtle")], trellis_provenance::ONTOLOGY)
}
