//! Keeps the bodies of requests that tests send, so that `python/request_bodies.py` can check them against the types
//! that vendors publish. Tests of other crates include this file by its path.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// Names the folder that bodies are kept in; without it nothing is kept. `cargo xtask test` sets it.
const FOLDER: &str = "REQUEST_BODIES";

/// Keeps a body that was sent to this path. Paths that belong to no known kind of request are passed over.
pub(crate) fn keep(path: &str, body: &[u8]) {
    let Some(root) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let Some(kind) = kind(path) else { return };
    // The thread of a test has its name.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("test").replace("::", ".");
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let file = root.join(kind).join(format!("{test}-{:016x}.json", hasher.finish()));
    let kept = std::fs::create_dir_all(root.join(kind)).and_then(|()| std::fs::write(&file, body));
    kept.unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}

/// The folder for requests to this path. A vendor's name in front of the path tells who is meant.
fn kind(path: &str) -> Option<&'static str> {
    let path = path.split('?').next().unwrap_or(path);
    let chat = path.ends_with("/chat/completions");
    match path {
        _ if chat && path.contains("openrouter") => Some("openrouter-chat"),
        _ if chat && path.contains("mistral") => Some("mistral-chat"),
        _ if chat => Some("openai-chat"),
        _ if path.ends_with("/v1/messages") => Some("anthropic-messages"),
        _ if path.ends_with("/api/chat") => Some("ollama-chat"),
        _ if path.ends_with("/responses") => Some("openai-responses"),
        _ if path.ends_with("enerateContent") => Some("gemini-generate"),
        _ if path.ends_with("/converse-stream") || path.ends_with("/converse") => Some("bedrock-converse"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn the_path_tells_the_kind() {
        let kinds = [
            ("/v1/chat/completions", Some("openai-chat")),
            ("/mistral/v1/chat/completions", Some("mistral-chat")),
            ("/openrouter.ai/api/v1/chat/completions", Some("openrouter-chat")),
            ("/v1/responses", Some("openai-responses")),
            ("/v1/messages", Some("anthropic-messages")),
            ("/api/chat", Some("ollama-chat")),
            ("/v1beta/models/gemini-3:streamGenerateContent?alt=sse", Some("gemini-generate")),
            ("/model/anthropic.claude/converse-stream", Some("bedrock-converse")),
            ("/v1/models", None),
        ];
        for (path, wanted) in kinds {
            assert_eq!(kind(path), wanted, "{path}");
        }
    }
}
