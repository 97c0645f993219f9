//! Where servers tell how much a model can read, and what they call it. Pure: data, and the reading of what they say.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Where a server tells about its models.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Described {
    /// Below the address. `{model}` stands for the name of the model.
    path: &'static str,
    /// It is not below the `/v1` that the address ends with, but beside it.
    is_beside_version: bool,
    /// The name of the model goes out in a body.
    pub(crate) sends_name: bool,
    /// All models are told of in a list, each with its name.
    is_list: bool,
    /// What in the answer holds the sizes.
    within: &'static str,
    /// The ends of their names; the first that is there counts.
    sizes: &'static [&'static str],
}

/// One object about one model.
const ONE: Described =
    Described { path: "", is_beside_version: true, sends_name: false, is_list: false, within: "", sizes: &[] };

/// The architecture stands in front of the name: `llama.context_length`.
pub(crate) const OLLAMA: Described = Described {
    path: "/api/show",
    is_beside_version: false,
    sends_name: true,
    within: "/model_info",
    sizes: &[".context_length"],
    ..ONE
};

/// What each of its slots was started with.
pub(crate) const LLAMA_CPP: Described =
    Described { path: "/props", within: "/default_generation_settings", sizes: &["n_ctx"], ..ONE };

pub(crate) const VLLM: Described =
    Described { path: "/models", is_beside_version: false, is_list: true, sizes: &["max_model_len"], ..ONE };

/// What a model was loaded with is less than what it could be loaded with.
pub(crate) const LM_STUDIO: Described =
    Described { path: "/api/v0/models", is_list: true, sizes: &["loaded_context_length", "max_context_length"], ..ONE };

pub(crate) const OPENROUTER: Described =
    Described { path: "/models", is_beside_version: false, is_list: true, sizes: &["context_length"], ..ONE };

pub(crate) const TGI: Described = Described { path: "/info", sizes: &["max_total_tokens"], ..ONE };

/// What it writes is counted apart.
pub(crate) const GEMINI: Described =
    Described { path: "/models/{model}", is_beside_version: false, sizes: &["inputTokenLimit"], ..ONE };

impl Described {
    /// The address of the server and the path below it, for one model.
    pub(crate) fn place<'b>(&self, base: &'b str, model: &str) -> (&'b str, String) {
        let base = base.trim_end_matches('/');
        let root = if self.is_beside_version { base.strip_suffix("/v1").unwrap_or(base) } else { base };
        (root, path_of(self.path, model))
    }

    /// How much the model can read and write together, as far as this description of it says so.
    pub(crate) fn size_in(&self, description: &Value, model: &str) -> Option<u64> {
        let about = if self.is_list {
            description["data"].as_array()?.iter().find(|listed| listed["id"] == model)?
        } else {
            description.pointer(self.within)?
        };
        let about = about.as_object()?;
        let size = |name: &&str| {
            let (_, size) = about.iter().find(|(member, size)| member.ends_with(*name) && size.is_u64())?;
            size.as_u64().filter(|size| *size > 0)
        };
        self.sizes.iter().find_map(size)
    }
}

/// A path with the model's name in its place.
pub(crate) fn path_of(path: &str, model: &str) -> String {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    path.replace("{model}", &utf8_percent_encode(model, ENCODED).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_server_is_read_in_its_own_words() {
        let llama = json!({ "model_info": { "general.architecture": "llama", "llama.context_length": 8192,
            "llama.rope.scaling.original_context_length": 2048 } });
        let props = json!({ "default_generation_settings": { "id": 0, "n_ctx": 4096, "params": { "n_predict": -1 } },
            "total_slots": 4, "n_ctx": 1 });
        let vllm = json!({ "object": "list", "data": [{ "id": "other", "max_model_len": 1 },
            { "id": "m", "object": "model", "max_model_len": 32768 }] });
        let loaded = json!({ "data": [{ "id": "m", "state": "loaded", "max_context_length": 131_072,
            "loaded_context_length": 4096 }] });
        let unloaded = json!({ "data": [{ "id": "m", "state": "not-loaded", "max_context_length": 131_072 }] });
        let routed = json!({ "data": [{ "id": "m", "context_length": 163_840, "top_provider":
            { "context_length": 65_536 } }] });
        let info = json!({ "model_id": "m", "max_input_tokens": 4095, "max_total_tokens": 4096,
            "max_batch_total_tokens": 20_000 });
        let gemini = json!({ "name": "models/m", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536 });
        for (described, description, size) in [
            (OLLAMA, llama, 8192),
            (LLAMA_CPP, props, 4096),
            (VLLM, vllm, 32_768),
            (LM_STUDIO, loaded, 4096),
            (LM_STUDIO, unloaded, 131_072),
            (OPENROUTER, routed, 163_840),
            (TGI, info, 4096),
            (GEMINI, gemini, 1_048_576),
        ] {
            assert_eq!(described.size_in(&description, "m"), Some(size), "{description}");
        }
    }

    #[test]
    fn what_says_nothing_is_no_size() {
        let error = json!({ "error": { "message": "Not Found" } });
        for described in [OLLAMA, LLAMA_CPP, VLLM, LM_STUDIO, OPENROUTER, TGI, GEMINI] {
            assert_eq!(described.size_in(&error, "m"), None, "{described:?}");
            assert_eq!(described.size_in(&json!(["?"]), "m"), None, "{described:?}");
        }
        let of = |size: Value| VLLM.size_in(&json!({ "data": [{ "id": "m", "max_model_len": size }] }), "m");
        assert_eq!((of(Value::Null), of(json!(0)), of(json!("many"))), (None, None, None));
        assert_eq!(VLLM.size_in(&json!({ "data": [{ "id": "other", "max_model_len": 4096 }] }), "m"), None);
    }

    #[test]
    fn what_is_beside_the_version_is_asked_there() {
        let place = |described: Described, base| described.place(base, "a/b");
        assert_eq!(place(LLAMA_CPP, "http://box:8080/v1/"), ("http://box:8080", "/props".to_owned()));
        assert_eq!(place(LLAMA_CPP, "http://box:8080"), ("http://box:8080", "/props".to_owned()));
        assert_eq!(place(VLLM, "http://box:8000/v1"), ("http://box:8000/v1", "/models".to_owned()));
        assert_eq!(place(GEMINI, "https://g/v1beta"), ("https://g/v1beta", "/models/a%2Fb".to_owned()));
    }
}
