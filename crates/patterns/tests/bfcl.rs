//! Calls of the Berkeley Function Calling Leaderboard, written into text in the forms that models were taught. The readers
//! find the same calls if the functions were offered, whole and in pieces, and none if they were not.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use trellis_domain::config::{ArgumentItem, ToolItem};
use trellis_domain::parts::{Piece, REVISION};
use trellis_domain::record::ReplyFormat;
use trellis_domain::reply::ReactReply;
use trellis_patterns::react::decoder::ReplyDecoder;

const FORMATS: [ReplyFormat; 2] = [ReplyFormat::Text, ReplyFormat::NativeTools];
/// Every so many texts are cut at each place; all are read letter by letter.
const CUT_EVERYWHERE: usize = 16;

/// A question of the benchmark: what was offered, and what has to be called.
#[derive(Debug, Deserialize)]
struct Item {
    id: String,
    /// Names of functions with the names of their arguments.
    offered: BTreeMap<String, Vec<String>>,
    calls: Vec<Call>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Call {
    name: String,
    arguments: Map<String, Value>,
}

/// How calls are written; none if these cannot be written like this.
type Form = fn(&[Call]) -> Option<String>;

const FORMS: [(&str, Form); 13] = [
    ("JSON alone", |calls| one(calls).map(|call| object(call, "arguments").to_string())),
    ("JSON in a fence", |calls| Some(fenced(&listed(calls, "arguments")))),
    ("JSON in a fence after a sentence", |calls| {
        Some(format!("I need to look this up first.\n\n{}", fenced(&listed(calls, "arguments"))))
    }),
    ("Hermes and Qwen", |calls| Some(each(calls, "\n", |call| tagged(&object(call, "arguments").to_string())))),
    ("Hermes with arguments first", |calls| {
        Some(each(calls, "\n", |call| tagged(&json!({ "arguments": call.arguments, "name": call.name }).to_string())))
    }),
    ("Llama 3.1 with a tag", |calls| {
        let written = |call: &Call| object(call, "parameters").to_string();
        Some(format!("<|python_tag|>{}<|eom_id|>", each(calls, "; ", written)))
    }),
    ("Llama 3.2", |calls| {
        one(calls)
            .map(|call| json!({ "type": "function", "name": call.name, "parameters": call.arguments }).to_string())
    }),
    ("Llama with function tags", |calls| {
        let written = |call: &Call| format!("<function={}>{}</function>", call.name, text(&call.arguments));
        Some(each(calls, "\n", written))
    }),
    ("Llama 4, as in Python", |calls| {
        let calls: Option<Vec<_>> = calls.iter().map(python).collect();
        Some(format!("[{}]", calls?.join(", ")))
    }),
    ("Mistral, older", |calls| Some(format!("[TOOL_CALLS]{}", list(calls, "arguments")))),
    ("Mistral, newer", |calls| {
        Some(each(calls, "", |call| format!("[TOOL_CALLS]{}[ARGS]{}", call.name, text(&call.arguments))))
    }),
    ("Qwen Coder with parameter tags", |calls| {
        let calls: Option<Vec<_>> = calls.iter().map(parameter_tags).collect();
        Some(calls?.join("\n"))
    }),
    ("as OpenAI writes them", |calls| {
        let call = |call: &Call| {
            let function = json!({ "name": call.name, "arguments": text(&call.arguments) });
            json!({ "id": "call_1", "type": "function", "function": function })
        };
        Some(json!({ "tool_calls": calls.iter().map(call).collect::<Vec<_>>() }).to_string())
    }),
];

fn one(calls: &[Call]) -> Option<&Call> {
    calls.first().filter(|_| calls.len() == 1)
}

fn object(call: &Call, arguments: &str) -> Value {
    json!({ "name": call.name, arguments: call.arguments })
}

fn list(calls: &[Call], arguments: &str) -> Value {
    calls.iter().map(|call| object(call, arguments)).collect()
}

/// One call as an object, several as a list.
fn listed(calls: &[Call], arguments: &str) -> String {
    let value = one(calls).map_or_else(|| list(calls, arguments), |call| object(call, arguments));
    serde_json::to_string_pretty(&value).unwrap()
}

fn fenced(json: &str) -> String {
    format!("```json\n{json}\n```")
}

fn tagged(json: &str) -> String {
    format!("<tool_call>\n{json}\n</tool_call>")
}

fn text(arguments: &Map<String, Value>) -> String {
    serde_json::to_string(arguments).unwrap()
}

fn each(calls: &[Call], between: &str, written: impl Fn(&Call) -> String) -> String {
    calls.iter().map(written).collect::<Vec<_>>().join(between)
}

/// `name(argument="value", other=3)`; names of arguments have to be words.
fn python(call: &Call) -> Option<String> {
    let is_word = |name: &String| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !call.arguments.keys().all(is_word) {
        return None;
    }
    let arguments = call.arguments.iter().map(|(name, value)| format!("{name}={}", literal(value)));
    Some(format!("{}({})", call.name, arguments.collect::<Vec<_>>().join(", ")))
}

fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let mut written = String::from("'");
            for c in text.chars() {
                match c {
                    '\'' | '\\' => written.extend(['\\', c]),
                    '\n' => written.push_str("\\n"),
                    c => written.push(c),
                }
            }
            written + "'"
        }
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {}", literal(&json!(name)), literal(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Values stand as they are between tags: a text that looks like a number cannot be told from one.
fn parameter_tags(call: &Call) -> Option<String> {
    let mut written = format!("<tool_call>\n<function={}>\n", call.name);
    for (name, value) in &call.arguments {
        let shown = match value {
            Value::String(text) if serde_json::from_str::<Value>(text).is_ok() || text.trim() != text => return None,
            Value::String(text) => text.clone(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
        };
        write!(written, "<parameter={name}>\n{shown}\n</parameter>\n").unwrap();
    }
    Some(written + "</function>\n</tool_call>")
}

fn tool(name: &str, arguments: &[String]) -> Arc<ToolItem> {
    let argument = |name: &String| ArgumentItem::new(name, "string", &format!("the {name}"));
    Arc::new(ToolItem::function(name, &format!("does {name}"), arguments.iter().map(argument).collect()))
}

/// The calls that a reply in these pieces makes; its words if it makes none.
fn read<'p>(
    format: ReplyFormat,
    tools: &[Arc<ToolItem>],
    pieces: impl IntoIterator<Item = &'p str>,
) -> Result<Vec<Call>, String> {
    let mut decoder = ReplyDecoder::new(Some(format), tools, REVISION);
    for piece in pieces {
        decoder.push(Piece::Text(piece));
    }
    match decoder.finish().1 {
        ReactReply::Action { tool, arguments, also, .. } => {
            let first = Call { name: tool.as_str().to_owned(), arguments };
            let also =
                also.into_iter().map(|call| Call { name: call.tool.as_str().to_owned(), arguments: call.arguments });
            Ok(std::iter::once(first).chain(also).collect())
        }
        ReactReply::Answer { answer, .. } => Err(format!("answered: {answer}")),
        ReactReply::Unreadable { reason, .. } => Err(format!("not understood: {reason}")),
    }
}

/// Every place between two letters.
fn places(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().map(|(place, _)| place).skip(1)
}

/// Checks all forms of all items; gives how many texts there were, and what went wrong.
fn check(items: &[Item]) -> (usize, Vec<String>) {
    let (mut texts, mut wrong) = (0, Vec::new());
    let foreign = [tool("unrelated", &["word".to_owned()])];
    for item in items {
        let tools: Vec<_> = item.offered.iter().map(|(name, arguments)| tool(name, arguments)).collect();
        for (name, form) in FORMS {
            let Some(text) = form(&item.calls) else { continue };
            texts += 1;
            for format in FORMATS {
                let told = |what: &str| format!("{} as {name}, {format:?}, {what}: {text}", item.id);
                let whole = read(format, &tools, [text.as_str()]);
                if whole.as_ref() != Ok(&item.calls) {
                    wrong.push(format!("{}\n  read as {whole:?}", told("whole")));
                    continue;
                }
                let letters = places(&text)
                    .chain([text.len()])
                    .scan(0, |start, end| Some(&text[std::mem::replace(start, end)..end]));
                if read(format, &tools, letters) != whole {
                    wrong.push(told("letter by letter"));
                }
                let mut cuts = places(&text).filter(|_| texts % CUT_EVERYWHERE == 0);
                if let Some(cut) = cuts.find(|cut| read(format, &tools, [&text[..*cut], &text[*cut..]]) != whole) {
                    wrong.push(told(&format!("cut at {cut}")));
                }
                if let Ok(calls) = read(format, &foreign, [text.as_str()]) {
                    wrong.push(format!("{}\n  read as {calls:?}", told("though nothing of it was offered")));
                }
            }
        }
    }
    (texts, wrong)
}

fn parse(lines: &str) -> Vec<Item> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn assert_all_read(items: &[Item]) {
    let (texts, wrong) = check(items);
    let shown: Vec<_> = wrong.iter().take(20).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {texts} texts, the first of them:\n{}", wrong.len(), shown.join("\n"));
    assert!(texts > items.len() * 10, "{texts} texts of {} questions: most calls have most forms", items.len());
}

#[test]
fn the_calls_of_the_sample_are_read_in_every_form() {
    let items = parse(include_str!("bfcl-sample.jsonl"));
    assert!(items.len() > 250, "the sample is whole");
    assert_all_read(&items);
}

/// What was offered with another name is found to be wrong, in every form: the check above can fail.
#[test]
fn a_call_that_is_not_read_is_noticed() {
    let mut items = parse(include_str!("bfcl-sample.jsonl"));
    items.truncate(1);
    items[0].offered = BTreeMap::from([("another".to_owned(), Vec::new())]);
    let (texts, wrong) = check(&items);
    assert_eq!(wrong.len(), texts * FORMATS.len(), "{wrong:#?}");
}

#[test]
#[ignore = "needs the whole benchmark: run `cargo xtask corpus`"]
fn the_calls_of_the_whole_benchmark_are_read_in_every_form() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bfcl/calls.jsonl");
    let lines = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_all_read(&parse(&lines));
}
