//! What the commands are given to read.

use serde_json::json;
use tempfile::TempDir;

const PEOPLE: &str = "@prefix ex: <http://ex.org/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
    ex:ada rdfs:label \"Ada Lovelace\"@en ; ex:wrote ex:notes ; ex:born 1815 .\nex:notes rdfs:label \"The Notes\" .\n";

const CITIES: &str = "id,name,people\n1,Oslo,709000\n2,Abba,2748000\n";

/// A knowledge core with no triples, in `MessagePack`: `["t", {"m": {"i": "c", "m": "c", "c": "c"}, "t": []}]`.
const CORE: &[u8] = b"\x92\xa1t\x82\xa1m\x83\xa1i\xa1c\xa1m\xa1c\xa1c\xa1c\xa1t\x90";
/// The same for vectors: `["de", {"m": {"i": "c", "m": "c", "c": "c"}, "c": []}]`.
const VECTORS: &[u8] = b"\x92\xa2de\x82\xa1m\x83\xa1i\xa1c\xa1m\xa1c\xa1c\xa1c\xa1c\x90";

/// A folder with all of it, into which commands may write as well.
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let mapping = |name: &str| json!({"source_field": name, "target_field": name, "transforms": []});
        let descriptor = json!({
            "format": {"type": "csv", "encoding": "utf-8", "options": {"header": true}},
            "mappings": [mapping("id"), mapping("name"), mapping("people")],
            "output": {"schema_name": "cities", "options": {"confidence": 1.0}},
        });
        let items =
            json!({"config": {"tool": {"imported": "{\"type\": \"text-completion\", \"name\": \"imported\"}"}}});
        let texts = [
            ("people.ttl", PEOPLE.to_owned()),
            ("cities.csv", CITIES.to_owned()),
            ("cities.json", descriptor.to_string()),
            ("items.json", items.to_string()),
            ("note.txt", "Ada wrote the first program.\n".to_owned()),
            ("picture.png", "no picture".to_owned()),
        ];
        for (name, text) in texts {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        std::fs::write(folder.path().join("core.msgpack"), CORE).unwrap();
        std::fs::write(folder.path().join("vectors.msgpack"), VECTORS).unwrap();
        Self(folder)
    }

    pub(super) fn folder(&self) -> String {
        self.0.path().to_str().unwrap().to_owned()
    }
}
