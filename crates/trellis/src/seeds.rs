//! The configuration that a workspace starts with, and how a newer program brings newer seeds.
//!
//! What was written is remembered in the configuration itself, as hashes: an item that a person edited or deleted is
//! never touched again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use trellis_domain::config::StoredItem;
use trellis_domain::{Caller, Hash, Workspace};
use trellis_orchestrator::ports::{Config, ConfigError};

/// Counts up with every change of a seed; without that, a change does not reach existing workspaces.
pub(crate) const VERSION: u64 = 12;

/// The kind of items that say how agents may work.
const PATTERN: &str = "agent-pattern";

/// Where the memory of what was seeded is kept.
const MEMORY: (&str, &str) = ("trellis", "seeds");

macro_rules! prompts {
    ($($reply:ident $id:literal),* $(,)?) => {
        [$(($id, stringify!($reply), include_str!(concat!("../seeds/prompts/", $id, ".txt")))),*]
    };
}

/// Id, kind of reply, text. A call that wants JSON brings its schema, so that it can name the options of that moment.
const PROMPTS: &[(&str, &str, &str)] = &prompts![
    json "route",
    json "task-type-classify",
    json "pattern-select",
    text "agent-react",
    json "plan-create",
    json "plan-step-execute",
    json "plan-revise",
    text "plan-synthesise",
    json "supervisor-decompose",
    json "supervisor-review",
    text "supervisor-synthesise",
    text "reflexion-act",
    json "reflexion-critique",
    json "dispatch-choose",
    json "debate-stances",
    json "debate-moderate",
    text "debate-judge",
    text "question",
    text "document-prompt",
    text "extract-concepts",
    json "extract-facts",
    json "kg-edge-scoring",
    text "kg-synthesis",
    json "schema-selection",
    json "graphql-generation",
    json "diagnose-structured-data",
    json "decision-scoring",
    text "sample-financial-data",
    text "sample-regulatory-filings",
    text "sample-news-search",
    text "sample-supply-chain",
    text "sample-archive-search",
    text "sample-market-register",
    text "sample-notes",
];
/// Prompts that begin a conversation: the steps after them are turns of their own. Small models lose sight of the
/// question, so that it stands below each result.
const CONVERSATIONS: [&str; 2] = ["agent-react", "reflexion-act"];
const NEXT: &str = include_str!("../seeds/prompts/next-step.txt");
const SYSTEM: &str = include_str!("../seeds/system.txt");
/// Configuration type, and its items by key.
const OBJECTS: [(&str, &str); 3] = [
    ("tool", include_str!("../seeds/tools.json")),
    ("agent-pattern", include_str!("../seeds/patterns.json")),
    ("agent-task-type", include_str!("../seeds/task-types.json")),
];

/// All seeds of this version.
pub(crate) fn items() -> Vec<StoredItem> {
    let item =
        |kind: &str, key: String, value: Value| StoredItem { kind: kind.to_owned(), key, value: value.to_string() };
    let template = |(id, reply, text): (&str, &str, &str)| {
        let mut value = json!({ "id": id, "prompt": text.trim_end(), "response-type": reply });
        if CONVERSATIONS.contains(&id) {
            value["conversation"] = json!(true);
            value["next"] = json!(NEXT.trim_end());
        }
        item("prompt", format!("template.{id}"), value)
    };
    let objects = OBJECTS.into_iter().flat_map(|(kind, text)| {
        let objects: Map<String, Value> = serde_json::from_str(text).expect("a seed file is an object, as tested");
        objects.into_iter().map(move |(key, value)| item(kind, key, value))
    });
    let system = item("prompt", "system".to_owned(), json!(SYSTEM.trim_end()));
    // Older prompt services find templates by this list only.
    let index = item("prompt", "template-index".to_owned(), PROMPTS.iter().map(|(id, _, _)| *id).collect());
    [system, index].into_iter().chain(PROMPTS.iter().copied().map(template)).chain(objects).collect()
}

/// What seeding did, by `type/key`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SeedReport {
    pub(crate) added: Vec<String>,
    pub(crate) updated: Vec<String>,
    /// Edited, deleted or made by a person, and therefore left alone.
    pub(crate) left_alone: Vec<String>,
    /// New patterns for a workspace in which somebody deleted seeded ones: what agents may do there was chosen.
    pub(crate) withheld: Vec<String>,
    /// The version of the configuration that seeding made, if it wrote anything.
    pub(crate) config_version: Option<u64>,
}

/// Brings a workspace's seeds up to this program's version.
pub(crate) async fn apply(config: &dyn Config, workspace: &Workspace) -> Result<SeedReport, ConfigError> {
    apply_version(config, workspace, VERSION, items()).await
}

/// What was seeded: the version, and the hash of each value by `type/key`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Memory {
    version: u64,
    items: BTreeMap<String, Hash>,
}

/// Writes everything that is due as one new version of the configuration, or nothing at all.
async fn apply_version(
    config: &dyn Config,
    workspace: &Workspace,
    version: u64,
    seeds: Vec<StoredItem>,
) -> Result<SeedReport, ConfigError> {
    let (_, present) = config.all(workspace).await?;
    let present: BTreeMap<_, _> = present.into_iter().map(|item| (place(&item), item.value)).collect();
    let Some(mut memory) = remembered(&present) else {
        // Somebody changed it: better to seed nothing than to undo what a person did.
        tracing::warn!("the memory of seeding cannot be read; nothing is seeded");
        return Ok(SeedReport::default());
    };
    if memory.version >= version {
        return Ok(SeedReport::default());
    }
    memory.version = version;
    let (mut report, mut due) = (SeedReport::default(), Vec::new());
    let narrowed = is_narrowed(&memory, &present);
    for seed in seeds {
        let place = place(&seed);
        let wanted = Hash::of(&seed.value);
        let found = present.get(&place).map(Hash::of);
        match fate(memory.items.get(&place).copied(), found, wanted) {
            Fate::Add if narrowed && seed.kind == PATTERN => {
                report.withheld.push(place);
                continue;
            }
            Fate::Add => {
                report.added.push(place.clone());
                due.push(seed);
            }
            Fate::Update => {
                report.updated.push(place.clone());
                due.push(seed);
            }
            Fate::UpToDate => {}
            Fate::LeaveAlone => {
                report.left_alone.push(place);
                continue;
            }
        }
        memory.items.insert(place, wanted);
    }
    if !report.withheld.is_empty() {
        let (patterns, why) = (report.withheld.join(", "), "seeded patterns were deleted here");
        tracing::info!(%workspace, patterns, why, "new patterns are not added; `config import` can");
    }
    let (kind, key) = MEMORY;
    let value = serde_json::to_string(&memory).expect("numbers and texts are always JSON");
    due.push(StoredItem { kind: kind.to_owned(), key: key.to_owned(), value });
    report.config_version = Some(config.put(workspace, due, Caller::program()).await?);
    Ok(report)
}

/// Whether somebody deleted a pattern that was seeded.
fn is_narrowed(memory: &Memory, present: &BTreeMap<String, String>) -> bool {
    let mut patterns = memory.items.keys().filter(|place| place.split('/').next() == Some(PATTERN));
    patterns.any(|place| !present.contains_key(place))
}

enum Fate {
    Add,
    Update,
    UpToDate,
    LeaveAlone,
}

/// Compares what was written once, what is there now, and what the seed says.
fn fate(written: Option<Hash>, found: Option<Hash>, wanted: Hash) -> Fate {
    match (written, found) {
        (None, None) => Fate::Add,
        (_, Some(found)) if found == wanted => Fate::UpToDate,
        (Some(written), Some(found)) if written == found => Fate::Update,
        (Some(_), None) | (_, Some(_)) => Fate::LeaveAlone,
    }
}

fn place(item: &StoredItem) -> String {
    format!("{}/{}", item.kind, item.key)
}

/// What was seeded before; None if it cannot be read.
fn remembered(present: &BTreeMap<String, String>) -> Option<Memory> {
    let (kind, key) = MEMORY;
    match present.get(&format!("{kind}/{key}")) {
        None => Some(Memory::default()),
        Some(value) => serde_json::from_str(value).ok(),
    }
}

#[cfg(test)]
#[path = "seeds_tests.rs"]
mod tests;
