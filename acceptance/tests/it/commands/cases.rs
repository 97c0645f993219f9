//! Every command with arguments that make sense, in chains of which each link needs those before it.

/// What is expected of a command.
#[derive(Debug)]
pub(super) enum Here {
    /// It does its work, and prints this.
    Works(&'static str),
    /// It ends with a sentence.
    Missing,
    /// It asks no server of this kind.
    NotApplicable,
}

#[derive(Debug)]
pub(super) struct Case {
    pub(super) command: &'static str,
    pub(super) arguments: &'static [&'static str],
    pub(super) here: Here,
    /// What a user should know of it.
    pub(super) note: &'static str,
    /// Whether it ends by itself.
    pub(super) ends: bool,
}

const fn works(command: &'static str, arguments: &'static [&'static str], proof: &'static str) -> Case {
    Case { command, arguments, here: Here::Works(proof), note: "", ends: true }
}

const fn missing(command: &'static str, arguments: &'static [&'static str], note: &'static str) -> Case {
    Case { command, arguments, here: Here::Missing, note, ends: true }
}

/// One that says nothing of this server.
const fn other(command: &'static str, arguments: &'static [&'static str], note: &'static str) -> Case {
    Case { command, arguments, here: Here::NotApplicable, note, ends: false }
}

impl Case {
    const fn noted(self, note: &'static str) -> Self {
        Self { note, ..self }
    }
}

const SCHEMA: &str = r#"{"name": "cities", "description": "Cities", "fields": [
    {"name": "id", "type": "integer", "primary_key": true}, {"name": "name", "type": "string", "indexed": true},
    {"name": "people", "type": "integer"}]}"#;

const QUESTIONS: &str = r#"{"team": {"type": "choice", "options": ["sales", "billing"]}}"#;

/// Cores are upstream's way to keep what an extraction brought.
const CORES: &str = "there are no knowledge cores: load files of RDF, or move a workspace with `tg-export-workspace`";
/// Its code runs when it is imported, and then once more without its argument.
const VECTORS_IN: &str = "ends with a traceback of its own in 2.11.1, whatever a server says; documents are loaded here, and not their vectors";
const VECTORS_OUT: &str = "listens until it is stopped; no vectors are given away here";
const BROKER: &str = "it listens at a message broker, and there is none here";

pub(super) const CHAINS: &[&[Case]] =
    &[CONFIGURATION, MODELS, FLOWS, KNOWLEDGE, LIBRARY, AGENTS, IAM, CORES_AND_QUEUES];

const CONFIGURATION: &[Case] = &[
    works("tg-put-config-item", &["--type", "schema", "--key", "cities", "--value", SCHEMA], "set: schema/cities"),
    works("tg-get-config-item", &["--type", "schema", "--key", "cities"], "primary_key"),
    works("tg-list-config-items", &["--type", "schema"], "cities"),
    works("tg-load-structured-data", &["--auto", "-i", "{files}/cities.csv"], "Records imported: 2"),
    works("tg-invoke-rows-query", &["-q", "{ cities { name } }", "--format", "csv"], "Abba"),
    works("tg-invoke-structured-query", &["-q", "Which cities are large?", "--format", "csv"], "Abba"),
    works("tg-invoke-nlp-query", &["-q", "Which cities are large?", "--format", "graphql"], "cities"),
    works("tg-invoke-row-embeddings", &["-s", "cities", "abab"], "Abba"),
    works("tg-delete-config-item", &["--type", "schema", "--key", "cities"], "deleted: schema/cities"),
    works("tg-show-config", &[], "Version: "),
    works("tg-show-parameter-types", &[], "No parameter types defined."),
    works("tg-set-token-costs", &["--model", "m", "-i", "1", "-o", "2"], "").noted(
        "prices are kept, and used by nothing here; the command and `tg-show-token-costs` name them differently",
    ),
    works("tg-show-token-costs", &[], "input, $/Mt").noted("shows items of type `token-cost`"),
    works("tg-export-workspace-config", &["-o", "{files}/exported.json"], "Exported "),
    works("tg-import-workspace-config", &["-i", "{files}/items.json"], "Imported 1 items"),
];

const MODELS: &[Case] = &[
    works(
        "tg-set-prompt",
        &["--id", "greet", "--prompt", "Say hello to {{ name }}.", "--response", "text"],
        "Prompt set.",
    ),
    works("tg-show-prompts", &[], "Say hello to"),
    works("tg-invoke-prompt", &["greet", "name=Ada"], "Say hello to Ada."),
    works("tg-invoke-llm", &["Be brief.", "What is 2 + 2?"], "What is 2 + 2?"),
    works("tg-list-models", &[], "scripted-1"),
    works("tg-set-tool", &["--id", "own", "--name", "own", "--type", "text-completion"], "Tool set."),
    works("tg-show-tools", &[], "search-notes"),
    works("tg-delete-tool", &["--id", "own"], "deleted successfully"),
    works("tg-set-mcp-tool", &["-i", "snow", "-r", "forecast", "--tool-url", "{mcp}"], ""),
    works("tg-show-mcp-tools", &[], "snow"),
    works("tg-invoke-mcp-tool", &["-n", "snow", "-P", r#"{"place": "Paris"}"#], "Snow tomorrow"),
    works("tg-delete-mcp-tool", &["--id", "snow"], "deleted successfully"),
    works("tg-invoke-embeddings", &["abba"], "[2.0, 2.0, 0.0").noted("needs an embedding model"),
    works(
        "tg-invoke-decision-scoring",
        &["-s", r#"{"message": "overcharged"}"#, "-q", QUESTIONS],
        "\"choice\": \"sales\"",
    )
    .noted("a choice inside the options, made by the configured model"),
    missing("tg-invoke-cloze", &["-m", "m", "A text"], ""),
    missing("tg-list-cloze-models", &[], ""),
    missing("tg-invoke-field-extract", &["-s", "{}", "-F", "{}"], ""),
    missing("tg-invoke-reranker", &["-q", "a question", "a document"], ""),
    missing("tg-describe-image", &["-i", "{files}/picture.png"], ""),
];

const FLOWS: &[Case] = &[
    works("tg-put-flow-blueprint", &["-n", "own", "-c", r#"{"description": "My own", "parameters": {}}"#], ""),
    works("tg-show-flow-blueprints", &[], "My own"),
    works("tg-get-flow-blueprint", &["-n", "own"], "My own"),
    works("tg-start-flow", &["-n", "own", "-i", "second", "-d", "Another way in"], ""),
    works("tg-show-flows", &[], "Another way in"),
    works("tg-stop-flow", &["-i", "second"], ""),
    works("tg-delete-flow-blueprint", &["-n", "own"], ""),
    works("tg-show-flow-state", &["-m", "{url}api/metrics"], "Blueprint trellis"),
    works("tg-show-processor-state", &["-m", "{url}api/metrics"], "agent"),
    works("tg-show-token-rate", &["-m", "{url}api/metrics", "-n", "1"], "Output"),
    works("tg-verify-system-status", &["--global-timeout", "30"], "System is healthy"),
];

const KNOWLEDGE: &[Case] = &[
    works("tg-load-turtle", &["-i", "people", "-C", "history", "{files}/people.ttl"], "File loaded."),
    works("tg-load-knowledge", &["-i", "people", "{files}/people.ttl"], "Triples and entity contexts loaded."),
    works("tg-query-graph", &["-s", "http://ex.org/ada"], "http://ex.org/notes"),
    works("tg-show-graph", &[], "http://ex.org/wrote"),
    works("tg-graph-to-turtle", &[], "Ada Lovelace"),
    works("tg-invoke-sparql-query", &["-q", "ASK { <http://ex.org/ada> ?p ?o }"], "true"),
    works("tg-invoke-graph-rag", &["-q", "What did Ada write?"], "Ada Lovelace | wrote | The Notes"),
    missing(
        "tg-invoke-graph-embeddings",
        &["Ada"],
        "entities are found by their names; `tg-invoke-graph-rag` finds them",
    ),
    missing("tg-show-extraction-provenance", &["urn:nothing"], "nothing is extracted from documents here"),
    works("tg-set-collection", &["history", "-n", "History"], "set successfully"),
    works("tg-list-collections", &[], "history"),
    works("tg-create-workspace", &["--workspace-id", "copy"], "copy"),
    works("tg-export-workspace", &["-o", "{files}/default.tgx"], "Exported "),
    works("tg-import-workspace", &["-i", "{files}/default.tgx", "-w", "copy", "--overwrite"], "Imported "),
    works("tg-delete-collection", &["history", "-y"], "deleted successfully"),
];

const LIBRARY: &[Case] = &[
    works(
        "tg-add-library-document",
        &["--identifier", "urn:doc:ada", "--name", "On Ada", "-k", "text/plain", "{files}/note.txt"],
        "Loaded",
    ),
    works("tg-show-library-documents", &[], "On Ada"),
    works("tg-get-document-content", &["urn:doc:ada"], "first program"),
    works("tg-start-library-processing", &["-d", "urn:doc:ada", "--id", "p", "--collection", "works"], "")
        .noted("the document can be searched when the command ends"),
    works("tg-show-library-processing", &[], "urn:doc:ada"),
    works(
        "tg-invoke-document-rag",
        &["-q", "Who wrote the first program?", "-C", "works"],
        "Ada wrote the first program",
    ),
    missing("tg-invoke-document-embeddings", &["Ada"], "passages are found by `tg-invoke-document-rag`"),
    works("tg-stop-library-processing", &["--id", "p"], ""),
    works("tg-remove-library-document", &["--identifier", "urn:doc:ada"], ""),
    works("tg-load-sample-documents", &[], "done."),
];

const AGENTS: &[Case] = &[
    works("tg-invoke-agent", &["-q", "Who was Ada?"], "The script answers: Who was Ada?"),
    works("tg-list-explain-traces", &["--format", "json"], "Who was Ada?"),
    works("tg-show-explain-trace", &["{session}"], "Who was Ada?"),
];

const IAM: &[Case] = &[
    works("tg-whoami", &[], "admin"),
    works("tg-list-my-workspaces", &[], "default"),
    works("tg-list-workspaces", &[], "default"),
    missing("tg-bootstrap-iam", &[], ""),
    missing("tg-login", &["--username", "ada", "--password", "x"], "tokens are given in `TRUSTGRAPH_TOKEN`"),
    missing("tg-change-password", &["--current", "x", "--new", "y"], ""),
    missing("tg-create-user", &["--username", "ada", "--password", "x"], ""),
    missing("tg-list-users", &[], ""),
    missing("tg-update-user", &["--user-id", "u", "--name", "Ada"], ""),
    missing("tg-disable-user", &["--user-id", "u"], ""),
    missing("tg-enable-user", &["--user-id", "u"], ""),
    missing("tg-delete-user", &["--user-id", "u", "--yes"], ""),
    missing("tg-reset-password", &["--user-id", "u"], ""),
    missing("tg-create-api-key", &["--user-id", "u", "--name", "k"], ""),
    missing("tg-list-api-keys", &["--user-id", "u"], ""),
    missing("tg-revoke-api-key", &["--key-id", "k"], ""),
    missing("tg-mint-token", &["-w", "default", "--user-context", "{}", "--self"], ""),
];

const CORES_AND_QUEUES: &[Case] = &[
    missing("tg-show-kg-cores", &[], CORES),
    missing("tg-put-kg-core", &["--id", "c", "-i", "{files}/core.msgpack"], CORES),
    missing("tg-get-kg-core", &["--id", "c", "-o", "{files}/core.out"], CORES),
    missing("tg-load-kg-core", &["--id", "c"], CORES),
    missing("tg-unload-kg-core", &["--id", "c"], CORES),
    missing("tg-delete-kg-core", &["--id", "c"], CORES),
    missing("tg-put-de-core", &["--id", "c", "-i", "{files}/vectors.msgpack"], CORES),
    missing("tg-get-de-core", &["--id", "c", "-o", "{files}/vectors.out"], CORES),
    works("tg-dump-msgpack", &["-i", "{files}/core.msgpack"], "\"t\"").noted("reads a file and asks nobody"),
    other("tg-load-doc-embeds", &["-u", "{url}", "-i", "{files}/vectors.msgpack"], VECTORS_IN),
    other("tg-save-doc-embeds", &["-u", "{url}", "-o", "{files}/vectors.out"], VECTORS_OUT),
    other("tg-dump-queues", &["-p", "pulsar://127.0.0.1:1", "--pulsar-admin-url", "http://127.0.0.1:1", "q"], BROKER),
    other("tg-monitor-prompts", &["-p", "pulsar://127.0.0.1:1", "--pulsar-admin-url", "http://127.0.0.1:1"], BROKER),
];
