use super::*;
use crate::react::functions::tests::{search, tool};
use proptest::prelude::*;
use serde_json::json;
use std::fmt::Write as _;

/// What was shown of a channel.
fn shown(fragments: &[Fragment], channel: Channel) -> String {
    fragments.iter().filter(|fragment| fragment.channel == channel).map(|fragment| fragment.text.as_str()).collect()
}

fn piece(place: u64, function: Option<&str>, arguments: &str) -> CallPiece {
    CallPiece { place, id: None, function: function.map(str::to_owned), arguments: arguments.to_owned() }
}

/// What one call in pieces says, checked against what was shown of it meanwhile.
fn read_in_pieces(tools: &[Arc<ToolItem>], function: &str, pieces: &[&str]) -> (ReactReply, Vec<String>) {
    let mut reader = CallReader::new(tools, true);
    let mut fragments = reader.call(&piece(0, Some(function), ""));
    for json in pieces {
        fragments.extend(reader.call(&piece(0, None, json)));
    }
    let (rest, reply, notes) = reader.finish();
    fragments.extend(rest);
    assert_eq!(shown(&fragments, Channel::Thought), reply.thought());
    if let ReactReply::Answer { answer, .. } = &reply {
        assert_eq!(shown(&fragments, Channel::Answer), *answer);
    }
    (reply, notes)
}

fn read(function: &str, json: &str) -> ReactReply {
    read_in_pieces(&search(), function, &[json]).0
}

fn action(reply: ReactReply) -> (String, String, Value) {
    match reply {
        ReactReply::Action { thought, tool, arguments, .. } => (thought, tool.into(), Value::Object(arguments)),
        reply @ (ReactReply::Answer { .. } | ReactReply::Unreadable { .. }) => panic!("{reply:?}"),
    }
}

#[test]
fn a_call_is_an_action() {
    let json = r#"{"thought": "Look\n\n  it up. \"Now\" \u00e9\ud83c\udf3f", "query": "mo\"ss", "most": 3}"#;
    let expected = ("Look it up. \"Now\" é🌿", "web search", json!({ "query": "mo\"ss", "most": 3 }));
    let (thought, tool, arguments) = action(read("web_search", json));
    assert_eq!((thought.as_str(), tool.as_str(), arguments), expected);
    assert_eq!(action(read("web_search", "")), (String::new(), "web search".to_owned(), json!({})));
}

#[test]
fn an_argument_that_is_called_thought_keeps_its_name() {
    let tools = [tool("note", &[("thought", "string")])];
    let json = r#"{"thought_2": "Keep it.", "thought": "moss"}"#;
    let (thought, _, arguments) = action(read_in_pieces(&tools, "note", &[json]).0);
    assert_eq!((thought.as_str(), arguments), ("Keep it.", json!({ "thought": "moss" })));
}

#[test]
fn an_answer_is_shown_while_it_is_written() {
    let mut reader = CallReader::new(&search(), true);
    let mut say = |json: &str| {
        let fragments = reader.call(&piece(0, Some("final_answer"), json));
        (shown(&fragments, Channel::Thought), shown(&fragments, Channel::Answer))
    };
    assert_eq!(say("{\"thought\": \"Eno"), ("Eno".to_owned(), String::new()));
    assert_eq!(say("ugh.\", \"answer\": \"# Mo"), ("ugh.".to_owned(), "# Mo".to_owned()));
    assert_eq!(say("ss\\nAction: x\"}"), (String::new(), "ss\nAction: x".to_owned()));
    let (rest, reply, notes) = reader.finish();
    assert_eq!((rest.len(), notes.len()), (0, 0));
    assert_eq!(reply, ReactReply::Answer { thought: "Enough.".to_owned(), answer: "# Moss\nAction: x".to_owned() });
}

#[test]
fn an_answer_before_its_thought_is_shown_behind_it() {
    let reply = read("final_answer", r#"{"answer": "Moss.", "thought": "Enough."}"#);
    assert_eq!(reply, ReactReply::Answer { thought: "Enough.".to_owned(), answer: "Moss.".to_owned() });
}

#[test]
fn nothing_in_a_thought_is_taken_for_something_else() {
    let json = r#"{"thought": "a\nFinal Answer: b\nAction: c", "query": "q", "most": 1}"#;
    let (thought, tool, _) = action(read("web_search", json));
    assert_eq!((thought.as_str(), tool.as_str()), ("a Final Answer: b Action: c", "web search"));
}

#[test]
fn mistakes_are_told_in_words() {
    let unreadable = |name: &str, json: &str| match read(name, json) {
        ReactReply::Unreadable { reason, .. } => reason,
        reply @ (ReactReply::Action { .. } | ReactReply::Answer { .. }) => panic!("{json}: {reply:?}"),
    };
    assert!(unreadable("web_search", "{\"thought\": \"x\", \"query\": ").contains("never ends"));
    assert!(unreadable("web_search", "{\"query\" \"moss\"}").contains("is broken"));
    assert!(unreadable("web_search", "{\"query\": mo ss}").contains("is broken"));
    assert!(unreadable("web_search", "\"moss\"").contains("not a JSON object"));
    let deep = format!("{{\"query\": {}{}}}", "[".repeat(70), "]".repeat(70));
    assert!(unreadable("web_search", &deep).contains("write it flatter"));
    assert!(unreadable("final_answer", "{\"thought\": \"x\"}").contains("without an answer"));
    assert!(unreadable("", "{}").contains("without a name"));
    let (_, tool, arguments) = action(read("telepathy", "{\"to\": 1}"));
    assert_eq!((tool.as_str(), arguments), ("telepathy", json!({ "to": 1 })), "an unknown tool is an action");
}

#[test]
fn words_before_a_call_are_a_thought_and_words_without_one_are_the_answer() {
    let mut reader = CallReader::new(&search(), true);
    reader.words("Let me ");
    reader.words("look.\n");
    reader.call(&piece(0, Some("web_search"), r#"{"thought": "Moss.", "query": "q", "most": 1}"#));
    reader.words("Behind it they are nothing.");
    let (_, reply, _) = reader.finish();
    assert_eq!(
        action(reply),
        ("Let me look. Moss.".to_owned(), "web search".to_owned(), json!({ "query": "q", "most": 1 }))
    );
    let read = |words: &str| {
        let mut reader = CallReader::new(&search(), true);
        reader.words(words);
        reader.finish().1
    };
    let answer = |answer: &str| ReactReply::Answer { thought: String::new(), answer: answer.to_owned() };
    assert_eq!(read("Because of\nmoss.\n"), answer("Because of\nmoss."));
    assert_eq!(action(read("Thought: x\nAction: web search\nArgs: {}")).1, "web search", "some write the grammar");
    assert!(matches!(read(" \n"), ReactReply::Unreadable { .. }));
}

fn several(calls: &[(&str, &str)]) -> (ReactReply, Vec<String>) {
    let mut reader = CallReader::new(&search(), true);
    for ((function, arguments), place) in calls.iter().zip(0..) {
        reader.call(&piece(place, Some(function), arguments));
    }
    let (_, reply, notes) = reader.finish();
    (reply, notes)
}

#[test]
fn several_calls_of_one_reply_all_count() {
    let mut reader = CallReader::new(&search(), true);
    let id = |piece: CallPiece, id: &str| CallPiece { id: Some(id.to_owned()), ..piece };
    reader.call(&id(piece(0, Some("web_search"), "{\"thought\": \"First.\", \"query\": "), "a"));
    reader.call(&id(piece(1, Some("web_search"), "{\"thought\": \"Second.\", \"query\": \"b\"}"), "b"));
    reader.call(&piece(0, None, "\"a\"}"));
    // Some servers number all calls alike and tell them apart by id.
    reader.call(&id(piece(0, Some("telepathy"), "{}"), "c"));
    let (_, reply, notes) = reader.finish();
    let ReactReply::Action { thought, tool, arguments, also } = reply else { panic!("{reply:?}") };
    assert_eq!((thought.as_str(), tool.as_str()), ("First. Second.", "web search"));
    assert_eq!(Value::Object(arguments), json!({ "query": "a" }));
    let also: Vec<_> = also.iter().map(|call| (call.tool.as_str(), json!(call.arguments))).collect();
    assert_eq!(also, [("web search", json!({ "query": "b" })), ("telepathy", json!({}))]);
    assert!(notes.is_empty());
}

#[test]
fn an_answer_among_calls_counts_only_if_it_comes_first() {
    let (answer, call) = (("final_answer", r#"{"answer": "Moss."}"#), ("web_search", r#"{"query": "q"}"#));
    let (reply, notes) = several(&[answer, call]);
    assert!(matches!(&reply, ReactReply::Answer { answer, .. } if answer == "Moss."), "{reply:?}");
    assert_eq!(notes, ["2 calls were made at once; the answer counts"]);
    let (reply, notes) = several(&[call, answer]);
    assert!(matches!(&reply, ReactReply::Action { also, .. } if also.is_empty()), "{reply:?}");
    assert_eq!(notes, ["an answer that came with calls was left out: it was written before their results"]);
}

#[test]
fn a_reply_makes_a_bounded_number_of_calls() {
    let (reply, notes) = several(&[("web_search", "{}"); 12]);
    assert!(matches!(&reply, ReactReply::Action { also, .. } if also.len() == MOST_CALLS - 1), "{reply:?}");
    assert_eq!(notes, ["12 calls were named; the limit is 8, the rest was left out"]);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\"\\\\{}\\[\\],:\n\u{1f33f}é]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// As JSON with every character above ASCII escaped, which some servers do.
fn ascii(json: &str) -> String {
    let mut written = String::new();
    for c in json.chars() {
        if c.is_ascii() {
            written.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(written, "\\u{unit:04x}").unwrap();
        }
    }
    written
}

fn chunks(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

proptest! {
    /// However the JSON is written and cut, it is read as what it is.
    #[test]
    fn any_arguments_are_read_alike_however_they_are_cut(
        thought in any::<String>(),
        members in prop::collection::vec(("[a-z\u{e9}\" ]{1,6}", json_value()), 0..4),
        chunk in 1_usize..9,
    ) {
        let arguments: Map<String, Value> = members.into_iter().filter(|(name, _)| name != "thought").collect();
        let mut object = Map::from_iter([("thought".to_owned(), json!(thought))]);
        object.extend(arguments.clone());
        let compact = Value::Object(object.clone()).to_string();
        let whole = read("web_search", &compact);
        let pieces = chunks(&compact, chunk);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(&read_in_pieces(&search(), "web_search", &pieces).0, &whole);
        prop_assert_eq!(&read("web_search", &ascii(&compact)), &whole);
        prop_assert_eq!(&read("web_search", &serde_json::to_string_pretty(&object).unwrap()), &whole);
        let (_, tool, found) = action(whole);
        prop_assert_eq!((tool.as_str(), found), ("web search", Value::Object(arguments)));
    }

    /// A reply in the text grammar and a call with the same content mean the same.
    #[test]
    fn any_answer_is_read_as_if_it_had_been_written(thought in "\\PC{0,20}", answer in any::<String>(), chunk in 1_usize..9) {
        let pieces = chunks(&json!({ "thought": thought, "answer": answer }).to_string(), chunk);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let (called, _) = read_in_pieces(&search(), "final_answer", &pieces);
        match (called, parser::read(&format!("Thought: {thought}\nFinal Answer: {answer}"))) {
            // Each is told in its own words what is missing.
            (ReactReply::Unreadable { .. }, ReactReply::Unreadable { .. }) => {}
            (called, written) => prop_assert_eq!(called, written),
        }
    }
}
