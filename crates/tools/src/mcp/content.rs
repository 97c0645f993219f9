//! What came of a call, as a model is shown it.

use super::input::question;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ResourceContents};
use trellis_orchestrator::ports::ToolQuestion;

/// The most of an answer that is kept.
const MOST_BYTES: usize = 1 << 20;

/// What a server said to a call.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    Text(String),
    /// It has done nothing yet.
    Asks(ToolQuestion),
}

/// The answer, or why there is none.
pub(super) fn told(answer: CallToolResponse) -> Result<Told, String> {
    match answer {
        CallToolResponse::Complete(result) => {
            let text = bounded(text(&result));
            if result.is_error == Some(true) { Err(or_nothing(text)) } else { Ok(Told::Text(text)) }
        }
        CallToolResponse::InputRequired(asked) => question(asked).map(Told::Asks),
        CallToolResponse::Task(_) => Err("the server wants to answer later, which is not possible yet".to_owned()),
        _ => Err("the server answered in a way that is not known here".to_owned()),
    }
}

/// What is structured is preferred to what is said about it. What is no text is only named.
fn text(result: &CallToolResult) -> String {
    let structured = result.structured_content.as_ref().filter(|value| !value.is_null());
    let blocks = result.content.iter().filter(|block| structured.is_none() || block.as_text().is_none());
    let parts: Vec<_> = structured.map(ToString::to_string).into_iter().chain(blocks.map(block)).collect();
    parts.join("\n")
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => not_text("an image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => not_text("a recording", &audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, blob, mime_type, .. } => {
                format!("{uri} {}", not_text("a file", mime_type.as_deref().unwrap_or("unknown"), blob))
            }
            _ => "(something that is no text)".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("{}: {}", link.name, link.uri),
        _ => "(something that is no text)".to_owned(),
    }
}

/// Three bytes are four characters.
fn not_text(what: &str, kind: &str, encoded: &str) -> String {
    format!("({what} of type {kind}, {} bytes)", encoded.trim_end_matches('=').len() * 3 / 4)
}

fn bounded(mut text: String) -> String {
    if text.len() > MOST_BYTES {
        text.truncate(text.floor_char_boundary(MOST_BYTES));
        text.push_str("\n[cut off: the answer was longer than 1 MB]");
    }
    text
}

fn or_nothing(text: String) -> String {
    if text.trim().is_empty() { "the tool failed and did not say why".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told_of(result: Value) -> Result<String, String> {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        match told(CallToolResponse::Complete(result))? {
            Told::Text(text) => Ok(text),
            Told::Asks(asks) => panic!("{asks:?}"),
        }
    }

    #[test]
    fn texts_are_shown_and_everything_else_is_named() {
        let text = json!({ "type": "text", "text": "seven" });
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
        let file = json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } });
        let link = json!({ "type": "resource_link", "uri": "file:///b", "name": "b" });
        let shown = told_of(json!({ "content": [text, image, file, link] })).unwrap();
        assert_eq!(shown, "seven\n(an image of type image/png, 3 bytes)\ninside\nb: file:///b");
        let shown = told_of(json!({ "content": [text, image], "structuredContent": { "n": 7 } })).unwrap();
        assert_eq!(shown, "{\"n\":7}\n(an image of type image/png, 3 bytes)");
    }

    #[test]
    fn an_error_is_one_and_nothing_is_endless() {
        let failed = json!({ "content": [{ "type": "text", "text": "no such city" }], "isError": true });
        assert_eq!(told_of(failed), Err("no such city".to_owned()));
        assert!(told_of(json!({ "content": [], "isError": true })).unwrap_err().contains("did not say why"));
        let long = json!({ "content": [{ "type": "text", "text": "é".repeat(MOST_BYTES) }] });
        let shown = told_of(long).unwrap();
        assert!(shown.len() < MOST_BYTES + 100 && shown.ends_with("longer than 1 MB]"));
    }
}
