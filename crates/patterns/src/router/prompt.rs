//! The prompts that ask for a task type, for a pattern, and for both.

use crate::choice::Descriptions;
use crate::contract::PromptOrder;
use crate::reader::Reader;
use crate::room;
use crate::session::Session;
use crate::text::ends;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use trellis_domain::TaskTypeName;
use trellis_domain::config::{Example, Settings};
use trellis_domain::decision::Decision;

/// The prompt for both. A workspace that has none is asked in two calls.
pub const ROUTE: &str = "route";
/// The member of its reply that holds both names.
pub(super) const CHOICE: &str = "route";
/// Longer descriptions are not repeated in replies.
const LONGEST_PHRASE: usize = 120;
/// How finely examples are mixed.
const MIXED: usize = 1 << 16;

/// The patterns of one task type.
pub(super) struct PatternSet {
    pub(super) task_type: TaskTypeName,
    pub(super) offered: Decision,
    /// Whether there is anything to choose.
    pub(super) is_open: bool,
}

/// Asks what kind of problem the question is.
pub(super) fn task_type(session: &Session, offered: Decision, problem: Option<&str>) -> PromptOrder {
    let settings = session.settings();
    let names = special_first(settings, offered.options.iter().map(|name| name.as_str().into()).collect());
    let shown: Vec<_> = names.iter().map(|name| Shown::task_type(settings, name)).collect();
    let to_do = Phrases::of(&shown);
    // As many of each, so none if one has none: a model takes what it sees most often for the usual.
    let counts = names.iter().filter_map(|name| Some(settings.task_types.get(name)?.examples.len()));
    let examples = mixed(settings, &names, counts.min().unwrap_or(0));
    let examples = examples.into_iter().map(|(shown, example)| {
        let reply = to_do.reply("to_do", &shown).chain([("task_type", json!(shown.name))]);
        json!({ "question": example.question, "reply": map(reply) })
    });
    let variables = [
        ("question", json!(shown_question(session))),
        ("context", session.context()),
        ("task_types", shown.iter().map(Shown::described).collect()),
        ("examples", examples.collect()),
        ("by_description", json!(to_do.are_given())),
        ("problem", json!(problem)),
    ];
    let properties = to_do.member("to_do").chain([
        ("task_type", json!({ "type": "string", "enum": offered.options })),
        ("rationale", json!({ "type": "string" })),
    ]);
    let reader = to_do.reader(session, "task-type-classify", "to_do");
    PromptOrder { reader, ..order("task-type-classify", map(variables), object(map(properties)), offered) }
}

/// Asks which pattern suits the question, out of those that its task type allows.
pub(super) fn pattern(
    session: &Session,
    task_type: &TaskTypeName,
    offered: Decision,
    problem: Option<&str>,
) -> PromptOrder {
    let settings = session.settings();
    let shown: Vec<_> = offered.options.iter().map(|name| Shown::pattern(settings, name)).collect();
    let how = Phrases::of(&shown);
    let item = settings.task_types.get(task_type);
    let examples = item.into_iter().flat_map(|item| &item.examples).filter_map(|example| {
        let suits = example.pattern.as_ref()?;
        let shown = shown.iter().find(|shown| *suits == shown.name)?;
        let reply = how.reply("how", shown).chain([("pattern", json!(shown.name))]);
        Some(json!({ "question": example.question, "reply": map(reply) }))
    });
    let description = item.map(|item| item.description.as_str()).unwrap_or_default();
    let variables = [
        ("question", json!(shown_question(session))),
        ("context", session.context()),
        ("task_type", json!(task_type)),
        ("task_type_description", json!(description)),
        ("patterns", shown.iter().map(Shown::described).collect()),
        ("examples", examples.collect()),
        ("by_description", json!(how.are_given())),
        ("problem", json!(problem)),
    ];
    let properties = how.member("how").chain([
        ("pattern", json!({ "type": "string", "enum": offered.options })),
        ("signals", signals()),
        ("rationale", json!({ "type": "string" })),
    ]);
    let reader = how.reader(session, "pattern-select", "how");
    PromptOrder { reader, ..order("pattern-select", map(variables), object(map(properties)), offered) }
}

/// Asks for both.
pub(super) fn route(session: &Session, offered: Decision, sets: &[PatternSet], reader: Reader) -> PromptOrder {
    let settings = session.settings();
    let names = special_first(settings, sets.iter().map(|set| set.task_type.clone()).collect());
    let sets: Vec<_> = names.iter().filter_map(|name| sets.iter().find(|set| set.task_type == *name)).collect();
    let mut patterns: Vec<Shown<'_>> = Vec::new();
    for name in sets.iter().flat_map(|set| &set.offered.options) {
        if !patterns.iter().any(|shown| shown.name == name) {
            patterns.push(Shown::pattern(settings, name));
        }
    }
    let task_types: Vec<_> = names.iter().map(|name| Shown::task_type(settings, name)).collect();
    let (to_do, how) = match (Phrases::of(&task_types), Phrases::of(&patterns)) {
        (to_do, how) if to_do.are_given() && how.are_given() => (to_do, how),
        _ => (Phrases(None), Phrases(None)),
    };
    let examples = mixed(settings, &names, usize::MAX).into_iter().filter_map(|(task_type, example)| {
        let options = &sets.iter().find(|set| set.task_type == *task_type.name)?.offered.options;
        let only = options.first().filter(|_| options.len() == 1).map(String::as_str);
        let suits = example.pattern.as_deref().or(only).filter(|name| options.iter().any(|option| option == name))?;
        let pattern = patterns.iter().find(|shown| shown.name == suits)?;
        let task_type = to_do.reply("to_do", &task_type).chain([("task_type", json!(task_type.name))]);
        let pattern = how.reply("how", pattern).chain([("pattern", json!(pattern.name))]);
        Some(json!({ "question": example.question, "reply": { CHOICE: map(task_type.chain(pattern)) } }))
    });
    let allowed = |(shown, set): (&Shown<'_>, &&PatternSet)| {
        let mut described = shown.described();
        described["patterns"] = json!(set.offered.options);
        described
    };
    let variables = [
        ("question", json!(shown_question(session))),
        ("context", session.context()),
        ("task_types", task_types.iter().zip(&sets).map(allowed).collect()),
        ("patterns", patterns.iter().map(Shown::described).collect()),
        ("examples", examples.collect()),
        ("by_description", json!(to_do.are_given())),
    ];
    let way = |(shown, set): (&Shown<'_>, &&PatternSet)| {
        let options = &set.offered.options;
        let allowed: Vec<_> = patterns.iter().filter(|shown| options.iter().any(|name| name == shown.name)).collect();
        let names =
            to_do.one_of("to_do", &[shown]).chain([("task_type", json!({ "type": "string", "enum": [shown.name] }))]);
        let patterns = how.one_of("how", &allowed).chain([("pattern", json!({ "type": "string", "enum": options }))]);
        object(map(names.chain(patterns)))
    };
    let properties = [
        (CHOICE, json!({ "anyOf": task_types.iter().zip(&sets).map(way).collect::<Vec<_>>() })),
        ("signals", signals()),
        ("rationale", json!({ "type": "string" })),
    ];
    PromptOrder { reader, ..order(ROUTE, map(variables), object(map(properties)), offered) }
}

/// An option as configuration describes it.
struct Shown<'s> {
    name: &'s str,
    description: &'s str,
    when_to_use: &'s str,
}

impl<'s> Shown<'s> {
    fn task_type(settings: &'s Settings, name: &'s TaskTypeName) -> Self {
        let item = settings.task_types.get(name);
        let (description, when_to_use) =
            item.map_or(("", ""), |item| (item.description.as_str(), item.when_to_use.as_str()));
        Self { name, description, when_to_use }
    }

    fn pattern(settings: &'s Settings, name: &'s str) -> Self {
        let item = settings.patterns.get(name);
        let (description, when_to_use) =
            item.map_or(("", ""), |item| (item.description.as_str(), item.when_to_use.as_str()));
        Self { name, description, when_to_use }
    }

    fn described(&self) -> Value {
        let Self { name, description, when_to_use } = self;
        json!({ "name": name, "description": description, "when_to_use": when_to_use })
    }
}

/// Whether a reply repeats the description of what it chooses before the name. Small models choose better by what is meant than
/// by a name, and a question that names an option has less of a hold on them.
#[derive(Clone, Copy)]
struct Phrases<'a, 's>(Option<&'a [Shown<'s>]>);

impl<'a, 's> Phrases<'a, 's> {
    /// They are asked for if they are short, and if each says something else.
    fn of(shown: &'a [Shown<'s>]) -> Self {
        let all: BTreeSet<_> = shown.iter().map(|shown| shown.description).collect();
        let usable =
            all.len() == shown.len() && all.iter().all(|text| !text.is_empty() && text.len() <= LONGEST_PHRASE);
        Self(usable.then_some(shown))
    }

    fn are_given(self) -> bool {
        self.0.is_some()
    }

    /// What is described counts, and not the name after it.
    fn reader(self, session: &Session, id: &'static str, member: &str) -> Reader {
        let Some(shown) = self.0.filter(|_| session.revision() >= room::SINCE) else { return Reader::plain(id) };
        let names = shown.iter().map(|shown| (shown.description.to_owned(), shown.name.to_owned())).collect();
        Reader::under(id, Descriptions { member: member.to_owned(), names })
    }

    fn member(self, name: &'static str) -> impl Iterator<Item = (&'static str, Value)> {
        self.one_of(name, &self.0.into_iter().flatten().collect::<Vec<_>>())
    }

    fn one_of(self, name: &'static str, shown: &[&Shown<'_>]) -> impl Iterator<Item = (&'static str, Value)> + use<> {
        let phrases: Vec<_> = shown.iter().map(|shown| shown.description).collect();
        self.0.map(|_| (name, json!({ "type": "string", "enum": phrases }))).into_iter()
    }

    fn reply(self, name: &'static str, shown: &Shown<'_>) -> impl Iterator<Item = (&'static str, Value)> + use<> {
        self.0.map(|_| (name, json!(shown.description))).into_iter()
    }
}

/// Task types that allow few patterns are special ones; those for everything come last.
fn special_first(settings: &Settings, mut names: Vec<TaskTypeName>) -> Vec<TaskTypeName> {
    let allowed = |name: &TaskTypeName| {
        let patterns = settings.task_types.get(name).and_then(|item| item.valid_patterns.as_ref());
        patterns.map_or(usize::MAX, Vec::len)
    };
    names.sort_by_key(allowed);
    names
}

/// So many examples of each of these task types, evenly mixed: what stands in a row, or last, has more weight than it should.
fn mixed<'s>(settings: &'s Settings, names: &'s [TaskTypeName], most: usize) -> Vec<(Shown<'s>, &'s Example)> {
    let of = |name: &'s TaskTypeName| {
        let examples = settings.task_types.get(name).map(|item| item.examples.as_slice()).unwrap_or_default();
        let count = examples.len().min(most);
        let place = move |at: usize| (2 * at + 1) * MIXED / count;
        examples
            .iter()
            .take(count)
            .enumerate()
            .map(move |(at, example)| (place(at), Shown::task_type(settings, name), example))
    };
    let mut all: Vec<_> = names.iter().flat_map(of).collect();
    all.sort_by_key(|(place, ..)| *place);
    all.into_iter().map(|(_, shown, example)| (shown, example)).collect()
}

/// What the choice of a pattern rests on, in words that can be counted.
fn signals() -> Value {
    let signals = [
        ("complexity", json!({ "type": "string", "enum": ["low", "medium", "high"] })),
        ("independent_dimensions", json!({ "type": "integer" })),
        ("urgency", json!({ "type": "string", "enum": ["low", "normal", "high"] })),
    ];
    object(map(signals))
}

fn order(id: &'static str, variables: Map<String, Value>, schema: Value, offered: Decision) -> PromptOrder {
    PromptOrder {
        id,
        variables,
        schema: Some(schema),
        reader: Reader::plain(id),
        offered: vec![offered],
        turns: Vec::new(),
    }
}

fn map<'n>(members: impl IntoIterator<Item = (&'n str, Value)>) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A schema of exactly these members: providers that enforce schemas want each of them required and no others.
fn object(properties: Map<String, Value>) -> Value {
    let required: Vec<_> = properties.keys().cloned().collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// What a question is about is seen from its beginning and its end: a text to work on stands between them, or before what
/// to do with it.
fn shown_question(session: &Session) -> String {
    const MOST: usize = 16_000;
    if session.revision() < room::SINCE {
        return session.question().to_owned();
    }
    ends(session.question(), MOST.min(session.room().bytes / 2))
}
