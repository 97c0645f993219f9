//! Records that were changed and sealed again: the hashes are right, and still nothing follows from them any more.
//!
//! Each mutant changes one thing in a genuine run, gives every record the hashes that it should have, and is held against
//! everything that `verify` does with records. What survives is listed below with the reason why nothing inside the record
//! could tell.

use crate::{asked, memory, park};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use trellis_domain::Hash;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::{Body, Cause, Name, Record};
use trellis_orchestrator::audit::{implausible, unreached};
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, hurried, play, silent};
use trellis_orchestrator::replay::replay;
use trellis_patterns::{documents, project};
use trellis_provenance::check;

/// A change of a record, and what it is called.
type Change = (&'static str, fn(&mut Record));

/// Runs of all patterns, with retries, revisions, failures, late results, deadlines and limits.
async fn genuine() -> Vec<(&'static str, Played)> {
    let scenes: Vec<(&'static str, Value, &str, SomeLimits)> = vec![
        ("react", json!({"tools": 2, "answer": "yes"}), "react", SomeLimits::default()),
        ("several calls at once", json!({"tools": 5, "at_once": 3, "answer": "yes"}), "react", SomeLimits::default()),
        (
            "react at its limit",
            json!({"tools": 9, "answer": "yes"}),
            "react",
            SomeLimits { max_iterations: Some(2), ..SomeLimits::default() },
        ),
        (
            "a plan that is revised",
            json!({"plan": [{"say": "zero", "tool": true, "fail": true}, {"say": "one", "needs": [0]}, {"say": "two", "tool": true}],
                   "revisions": [[{"say": "three", "tool": true}, {"say": "four", "needs": [3]}]]}),
            "plan-then-execute",
            SomeLimits::default(),
        ),
        (
            "two rounds with a failure and a plan below",
            json!({"team": [[agent("a"), {"fail": true}, {"plan": [{"say": "x", "tool": true}]}], [agent("b")]]}),
            "supervisor",
            SomeLimits::default(),
        ),
        ("a deadline", json!({"team": [[agent("a"), silent()]]}), "supervisor", hurried(300)),
        ("reflexion", json!({"tools": 2, "answer": "yes", "unsound": true}), "reflexion", SomeLimits::default()),
        ("dispatch to a tool", json!({}), "dispatch", SomeLimits::default()),
        (
            "dispatch to an agent",
            json!({"to": "agent:react", "ask": {"tools": 1, "answer": "yes"}}),
            "dispatch",
            SomeLimits::default(),
        ),
        (
            "a debate",
            json!({"sides": ["for", "against"], "rounds": 2, "answer": "so"}),
            "debate",
            SomeLimits::default(),
        ),
    ];
    let mut played = Vec::new();
    for (name, scene, pattern, limits) in scenes {
        let bench = Bench::play(memory()).await;
        played.push((name, play(&bench, &scene, pattern, limits).await));
    }
    played.push(("an approval with other arguments", park::approved().await));
    played.push(("an approval that nobody gives", park::expired().await));
    played.push(("a tool that asks twice", asked::twice().await));
    played
}

/// Gives every record the hashes that its content and its causes have now.
fn reseal(records: Vec<Record>) -> Vec<Arc<Record>> {
    let mut contents: HashMap<_, Hash> = HashMap::new();
    let mut sealed = Vec::new();
    for mut record in records {
        let header = &mut record.header;
        header.content = Hash::of(serde_json::to_vec(&record.body).unwrap());
        let of = |cause: &Cause| {
            let session = cause.session_seen_from(&header.session).clone();
            contents.get(&(session, cause.name.clone())).copied().unwrap_or(Hash::ZERO)
        };
        header.parents = header.causes.iter().map(of).collect();
        contents.insert((header.session.clone(), header.name.clone()), header.content);
        sealed.push(Arc::new(record));
    }
    // Who leaves something out numbers the rest anew.
    let numbered = sealed.into_iter().enumerate().map(|(at, record)| {
        let mut record = (*record).clone();
        record.header.seq = at as u64 + 1;
        Arc::new(record)
    });
    numbered.collect()
}

/// What `verify` finds in records.
fn faults(played: &Played, records: &[Arc<Record>]) -> Vec<String> {
    let mut faults = unreached(records);
    faults.extend(implausible(records));
    faults.extend(replay(records, &|hash| played.settings.get(&hash).cloned()).faults);
    let texts: BTreeMap<_, _> =
        documents(records).into_iter().map(|found| (found.id, found.text.text().to_owned())).collect();
    faults.extend(check(&project(records), &|id| texts.get(id).cloned()).iter().map(ToString::to_string));
    faults
}

/// Every place in a value that holds a text, a number or a word, or a list that could be shorter.
fn places(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                path.push(key.clone());
                places(member, path, found);
                path.pop();
            }
        }
        Value::Array(items) => {
            if !items.is_empty() {
                found.push(path.clone());
            }
            for (at, item) in items.iter().enumerate() {
                path.push(at.to_string());
                places(item, path, found);
                path.pop();
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => found.push(path.clone()),
    }
}

/// Changes the value at a place: another text, another number, the opposite, one entry less.
fn changed(value: &Value, path: &[String]) -> Value {
    let mut value = value.clone();
    let mut at = &mut value;
    for key in path {
        at = match at {
            Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
            other => other.get_mut(key).unwrap(),
        };
    }
    *at = match &*at {
        Value::String(text) => json!(format!("{text} not")),
        Value::Number(number) => json!(number.as_u64().unwrap_or(0) + 1_000),
        Value::Bool(is) => json!(!*is),
        Value::Array(items) => Value::Array(items[1..].to_vec()),
        other => other.clone(),
    };
    value
}

/// What nothing inside a record can prove, by the kind of record and the place: what the outside world said and when,
/// and what it took. The log and checkpoints kept elsewhere bind all of it.
const GIVEN: &[(&str, &str, &str)] = &[
    ("accepted", "", "what the caller asked, and who it was, comes from outside"),
    ("replied", "model", "which model answered is the provider's word"),
    ("replied", "in_token", "how many tokens it took is the provider's word"),
    ("replied", "out_token", "how many tokens it took is the provider's word"),
    ("replied", "ms", "how long it took is measured once"),
    ("replied", "stop", "why the model stopped is the provider's word"),
    ("replied", "parts.N.id", "the id of a call is the provider's word"),
    ("replied", "prompt.", "what was sent is known by its hash alone"),
    ("replied", "failures", "attempts that brought nothing leave nothing to compare"),
    ("replied", "reading.reason of a failed call", "why a call failed is the provider's word"),
    ("observed", "result", "what a tool brought comes from outside"),
    ("observed", "error", "why a tool failed is its own word"),
    ("observed", "ms", "how long it took is measured once"),
    ("observed", "calls", "what a tool asked its models comes from outside"),
    ("observed", "usage", "follows from the tool's calls, which come from outside"),
    ("fanned-out", "deadline", "within milliseconds, the moment of a decision is not known"),
    ("parked", "expires", "within milliseconds, the moment of a decision is not known"),
    ("input-required", "state", "what a tool wants to be told again is its own word"),
    ("input-required", "ms", "how long it took is measured once"),
    ("settled", "content", "what a person answered comes from outside"),
    ("settled", "arguments", "what a person answered comes from outside"),
    ("settled", "decision.rationale", "what a person answered comes from outside"),
    ("settled", "by.surface", "the way that an answer came in is not asked for again"),
    ("joined", "outage_ms", "for how long nobody served is the store's word"),
    ("ended", "outage_ms", "for how long nobody served is the store's word"),
];

fn is_given(body: &Value, path: &[String]) -> bool {
    let (event, path) = (body["event"].as_str().unwrap(), path.join("."));
    if event == "replied" && path == "reading.reason" && body["reading"]["kind"] == "failed" {
        return true;
    }
    if event == "replied" && path.starts_with("parts.") && path.rsplit('.').next() == Some("id") {
        return true;
    }
    GIVEN.iter().any(|(kind, place, _)| *kind == event && !place.contains(' ') && path.starts_with(place))
}

/// Whether it is what a model wrote as the arguments of a call.
fn is_written_arguments(survivor: &str) -> bool {
    survivor.contains(" parts.") && survivor.ends_with(".arguments")
}

/// Whether it is the name of somebody who answered a question that anybody may answer.
fn is_anybody(survivor: &str) -> bool {
    survivor.starts_with("a tool that asks twice: park/") && survivor.ends_with("/decision by.name")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_changed_and_sealed_again_is_found_out() {
    let (mut mutants, mut given) = (0_u32, 0_u32);
    let mut survivors: Vec<String> = Vec::new();
    for (name, played) in genuine().await {
        assert_eq!(faults(&played, &played.records), [] as [String; 0], "{name}");
        for (at, record) in played.records.iter().enumerate() {
            let body = serde_json::to_value(&record.body).unwrap();
            let mut found = Vec::new();
            places(&body, &mut Vec::new(), &mut found);
            for path in found.into_iter().filter(|path| path != &["event"]) {
                let Ok(other) = serde_json::from_value::<Body>(changed(&body, &path)) else { continue };
                if other == record.body {
                    continue;
                }
                if is_given(&body, &path) {
                    given += 1;
                    continue;
                }
                let mut records: Vec<Record> = played.records.iter().map(|record| (**record).clone()).collect();
                records[at].body = other;
                mutants += 1;
                if faults(&played, &reseal(records)).is_empty() {
                    survivors.push(format!("{name}: {} {}", record.header.name, path.join(".")));
                }
            }
        }
    }
    // Words behind the part of a reply that is read change nothing that follows from it. What a model really said is
    // bound by the log alone.
    let is_outside =
        |survivor: &String| survivor.ends_with(" raw") || is_written_arguments(survivor) || is_anybody(survivor);
    let (raw, others): (Vec<_>, Vec<_>) = survivors.into_iter().partition(is_outside);
    println!("{mutants} mutants, {} survive, {given} of what is given", raw.len());
    assert_eq!(others, [] as [String; 0]);
    assert!(mutants >= 1_500 && raw.len() < 50, "{mutants} mutants, {} unread words", raw.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_left_out_or_invented_is_found_out() {
    let mut survivors = Vec::new();
    for (name, played) in genuine().await {
        for at in 1..played.records.len() {
            let mut records: Vec<Record> = played.records.iter().map(|record| (**record).clone()).collect();
            let left_out = records.remove(at);
            // What named it as its cause names nothing now.
            for record in &mut records {
                let own = record.header.session == left_out.header.session;
                let session = left_out.header.session.clone();
                record.header.causes.retain(|cause| {
                    let same = cause.session.as_ref().map_or(own, |other| *other == session);
                    !(same && cause.name == left_out.header.name)
                });
            }
            if faults(&played, &reseal(records)).is_empty() {
                survivors.push(format!("{name}: without {}", left_out.header.name));
            }
            let mut records: Vec<Record> = played.records.iter().map(|record| (**record).clone()).collect();
            let mut invented = records[at].clone();
            invented.header.name = Name::new(format!("{}1", invented.header.name));
            records.insert(at + 1, invented);
            if faults(&played, &reseal(records)).is_empty() {
                survivors.push(format!("{name}: with another {}", played.records[at].header.name));
            }
        }
    }
    assert_eq!(survivors, [] as [String; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_was_changed_is_found_out() {
    let mut survivors = Vec::new();
    for (name, played) in genuine().await {
        for at in 0..played.records.len() {
            let changes: [Change; 6] = [
                ("causes", |record| drop(record.header.causes.pop())),
                ("another cause", |record| {
                    record.header.causes.push(Name::session().into());
                }),
                ("config", |record| record.header.config = Hash::of("another")),
                ("format", |record| record.header.format = 3),
                ("late", |record| record.header.late = !record.header.late),
                ("name", |record| {
                    record.header.name = Name::new(format!("{}0", record.header.name));
                }),
            ];
            for (what, change) in changes {
                let mut records: Vec<Record> = played.records.iter().map(|record| (**record).clone()).collect();
                let before = records[at].header.clone();
                change(&mut records[at]);
                if records[at].header != before && faults(&played, &reseal(records)).is_empty() {
                    survivors.push(format!("{name}: {} {what}", played.records[at].header.name));
                }
            }
        }
    }
    assert_eq!(survivors, [] as [String; 0]);
}
