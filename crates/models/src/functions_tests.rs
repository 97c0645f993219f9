use super::*;
use crate::dialect::OpenAi;
use crate::remote::{Brought, Dialect, Framing, LONGEST_LINE, Messages, Said, Understood};
use proptest::prelude::*;
use std::fmt::Write as _;
use trellis_domain::config::ToolKind;
use trellis_domain::event_stream::LineReader;
use trellis_domain::reply::ReactReply;
use trellis_patterns::react::parser;

fn argument(name: &str, kind: &str) -> ArgumentItem {
    ArgumentItem { name: name.to_owned(), kind: kind.to_owned(), description: format!("the {name}") }
}

/// A tool as a model is shown it.
pub(crate) fn offered(name: &str, arguments: Vec<ArgumentItem>) -> Arc<ToolItem> {
    Arc::new(ToolItem {
        kind: ToolKind::Prompt,
        name: name.to_owned(),
        description: format!("does {name}"),
        arguments,
        groups: Vec::new(),
        state: None,
        applicable_states: None,
        approval: None,
        settings: Map::new(),
    })
}

fn tool(name: &str, arguments: &[(&str, &str)]) -> Arc<ToolItem> {
    let arguments = arguments.iter().map(|(name, kind)| argument(name, kind)).collect();
    offered(name, arguments)
}

fn search() -> Functions {
    Functions::of(&[tool("web search", &[("query", "string"), ("most", "integer")])])
}

fn names(functions: &Functions) -> Vec<&str> {
    functions.iter().map(|function| function.name.as_str()).collect()
}

#[test]
fn names_are_simple_and_no_two_alike() {
    let long = "x".repeat(70);
    let tools = ["web search", "web_search", "final_answer", "Übersicht", "", &long, "web?search"];
    let functions = Functions::of(&tools.map(|name| tool(name, &[])));
    let shortened = "x".repeat(64);
    let expected = [
        "web_search_2",
        "web_search",
        "final_answer_2",
        "_bersicht",
        "tool",
        &shortened,
        "web_search_3",
        "final_answer",
    ];
    assert_eq!(names(&functions), expected);
    for (tool, name) in tools.iter().zip(expected) {
        assert_eq!(functions.meant(name).unwrap().does, Does::Call((*tool).to_owned()));
    }
    assert_eq!(functions.meant("web search").unwrap().name, "web_search_2", "a model may say the tool's own name");
    assert_eq!(functions.meant("telepathy"), None);
}

#[test]
fn two_tools_of_one_name_are_two_functions() {
    let functions = Functions::of(&[tool("a", &[]), tool("a", &[])]);
    assert_eq!(names(&functions), ["a", "a_2", "final_answer"]);
}

#[test]
fn every_function_takes_a_thought_first_and_all_its_arguments() {
    let functions = search();
    let schema = &functions.meant("web_search").unwrap().schema;
    let members: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["thought", "query", "most"]);
    assert_eq!(schema["required"], json!(["thought", "query", "most"]));
    assert_eq!(schema["properties"]["most"]["type"], "integer");
    assert_eq!(functions.meant("web_search").unwrap().description, "web search: does web search");
    assert!(functions.can_be_enforced());
}

#[test]
fn an_argument_that_is_called_thought_keeps_its_name() {
    let functions = Functions::of(&[tool("note", &[("thought", "string")])]);
    let function = functions.meant("note").unwrap();
    assert_eq!(function.thought, "thought_2");
    let text = written(&functions, "note", r#"{"thought_2": "Keep it.", "thought": "moss"}"#);
    assert_eq!(text, "Thought: Keep it.\nAction: note\nArgs: {\"thought\": \"moss\"}");
}

#[test]
fn an_open_argument_cannot_be_enforced_and_does_not_hinder_the_others() {
    for kind in ["object", "array", "date"] {
        let functions = Functions::of(&[tool("a", &[("x", kind)]), tool("b", &[("x", "str")])]);
        let strict: Vec<_> = functions.iter().map(|function| function.strict.is_some()).collect();
        assert_eq!((strict, functions.can_be_enforced()), (vec![false, true, true], false), "{kind}");
    }
}

/// What one call is written as.
fn written(functions: &Functions, name: &str, json: &str) -> String {
    written_in_pieces(functions, name, &[json]).0
}

fn written_in_pieces(functions: &Functions, name: &str, pieces: &[&str]) -> (String, ReplyEnd) {
    let mut transcript = Transcript::new(functions);
    let piece = |name: Option<&str>, arguments: &str| CallPiece {
        place: 0,
        id: None,
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    };
    let mut text = transcript.call(piece(Some(name), ""));
    for json in pieces {
        text += &transcript.call(piece(None, json));
    }
    let end = transcript.finish();
    (text + &end.rest, end)
}

#[test]
fn a_call_reads_like_an_action() {
    let json = r#"{"thought": "Look\n\n  it up. \"Now\" \u00e9\ud83c\udf3f", "query": "mo\"ss", "most": 3}"#;
    let (text, end) = written_in_pieces(&search(), "web_search", &[json]);
    let expected = "Thought: Look it up. \"Now\" é🌿\nAction: web search\nArgs: {\"query\": \"mo\\\"ss\", \"most\": 3}";
    assert_eq!((text.as_str(), end.kept, end.mended.len()), (expected, true, 0));
    let ReactReply::Action { thought, tool, arguments } = parser::read(&text) else { panic!("{text}") };
    assert_eq!((thought.as_str(), tool.as_str()), ("Look it up. \"Now\" é🌿", "web search"));
    assert_eq!(Value::Object(arguments), json!({ "query": "mo\"ss", "most": 3 }));
}

#[test]
fn an_answer_reads_like_an_answer_while_it_is_written() {
    let functions = search();
    let mut transcript = Transcript::new(&functions);
    let mut say = |json: &str| {
        let name = Some(FINAL_ANSWER.to_owned());
        transcript.call(CallPiece { name, arguments: json.to_owned(), ..CallPiece::default() })
    };
    assert_eq!(say("{\"thought\": \"Eno"), "Thought: Eno");
    assert_eq!(say("ugh.\", \"answer\": \"# Mo"), "ugh.\nFinal Answer: # Mo");
    assert_eq!(say("ss\\nAction: x\"}"), "ss\nAction: x");
    let end = transcript.finish();
    assert_eq!((end.rest.as_str(), end.kept), ("", true));
}

#[test]
fn an_answer_before_its_thought_is_written_behind_it() {
    let text = written(&search(), "final_answer", r#"{"answer": "Moss.", "thought": "Enough."}"#);
    assert_eq!(text, "Thought: Enough.\nFinal Answer: Moss.");
}

#[test]
fn nothing_in_a_thought_is_taken_for_something_else() {
    let text =
        written(&search(), "web_search", r#"{"thought": "a\nFinal Answer: b\nAction: c", "query": "q", "most": 1}"#);
    let ReactReply::Action { thought, tool, .. } = parser::read(&text) else { panic!("{text}") };
    assert_eq!((thought.as_str(), tool.as_str()), ("a Final Answer: b Action: c", "web search"));
}

/// A model's mistakes come out as they do in text.
#[test]
fn mistakes_are_read_as_mistakes() {
    let functions = search();
    let unreadable = |name: &str, json: &str| {
        let (text, end) = written_in_pieces(&functions, name, &[json]);
        assert!(!end.kept, "{json}");
        match parser::read(&text) {
            ReactReply::Unreadable { reason, .. } => reason,
            read @ (ReactReply::Action { .. } | ReactReply::Answer { .. }) => panic!("{text}: {read:?}"),
        }
    };
    assert!(unreadable("web_search", "{\"thought\": \"x\", \"query\": ").contains("never ends"));
    assert!(unreadable("web_search", "{\"query\" \"moss\"}").contains("is broken"));
    assert!(unreadable("web_search", "{\"query\": mo ss}").contains("is broken"));
    assert!(unreadable("web_search", "\"moss\"").contains("not a JSON object"));
    assert!(unreadable("final_answer", "{\"thought\": \"x\"}").contains("nothing follows \"Final Answer:\""));
    let ReactReply::Action { tool, arguments, .. } = parser::read(&written(&functions, "telepathy", "{\"to\": 1}"))
    else {
        panic!("an unknown tool is an action")
    };
    assert_eq!((tool.as_str(), Value::Object(arguments)), ("telepathy", json!({ "to": 1 })));
    assert_eq!(written(&functions, "web_search", ""), "Action: web search\nArgs: {}");
}

#[test]
fn arguments_outside_of_the_schema_are_not_enforced() {
    for json in [r#"{"thought": "x", "query": 1, "most": 1}"#, r#"{"query": "q", "most": 1}"#, "{} {}"] {
        let (_, end) = written_in_pieces(&search(), "web_search", &[json]);
        assert!(!end.kept, "{json}");
    }
}

#[test]
fn words_before_a_call_are_a_thought_and_words_without_one_are_the_answer() {
    let functions = search();
    let mut transcript = Transcript::new(&functions);
    transcript.words("Let me ");
    transcript.words("look.\n");
    let arguments = r#"{"thought": "Moss.", "query": "q", "most": 1}"#.to_owned();
    let name = Some("web_search".to_owned());
    let text = transcript.call(CallPiece { name, arguments, ..CallPiece::default() });
    assert_eq!(
        text + &transcript.finish().rest,
        "Thought: Let me look. Moss.\nAction: web search\nArgs: {\"query\": \"q\", \"most\": 1}"
    );
    for (words, expected) in [
        ("Because of\nmoss.\n", "Final Answer: Because of\nmoss."),
        ("Thought: x\nAction: web search\nArgs: {}", "Thought: x\nAction: web search\nArgs: {}"),
        ("", ""),
    ] {
        let mut transcript = Transcript::new(&functions);
        transcript.words(words);
        let end = transcript.finish();
        assert_eq!((end.rest.as_str(), end.kept), (expected, false));
    }
}

#[test]
fn only_the_first_of_several_calls_counts_and_that_is_said() {
    let functions = search();
    let mut transcript = Transcript::new(&functions);
    let piece = |place, id: &str, name: &str, arguments: &str| CallPiece {
        place,
        id: (!id.is_empty()).then(|| id.to_owned()),
        name: (!name.is_empty()).then(|| name.to_owned()),
        arguments: arguments.to_owned(),
    };
    let mut text = transcript.call(piece(0, "a", "web_search", "{\"query\": "));
    text += &transcript.call(piece(1, "b", "final_answer", "{\"answer\": \"no\"}"));
    text += &transcript.call(piece(0, "", "", "\"q\"}"));
    // Some servers number all calls alike and tell them apart by id.
    text += &transcript.call(piece(0, "c", "web_search", "{}"));
    let end = transcript.finish();
    assert_eq!(text + &end.rest, "Action: web search\nArgs: {\"query\": \"q\"}");
    assert_eq!(end.mended, ["3 calls were made at once; only the first counts"]);
}

#[test]
fn a_call_that_never_ends_is_noticed() {
    let functions = search();
    let mut transcript = Transcript::new(&functions);
    let name = Some("web_search".to_owned());
    let arguments = "{\"query\": \"".to_owned();
    transcript.call(CallPiece { name, arguments, ..CallPiece::default() });
    for _ in 0..5 {
        transcript.call(CallPiece { arguments: "x".repeat(1 << 20), ..CallPiece::default() });
    }
    assert!(transcript.is_too_long());
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

/// The text that a server's bytes are written as, through everything between the wire and the reply.
fn written_from_wire(functions: &Functions, bytes: &[u8], cuts: &[usize]) -> String {
    let (mut lines, mut messages) = (LineReader::new(LONGEST_LINE), Messages::new(Framing::Events));
    let (dialect, mut understood) = (OpenAi::default(), Understood::default());
    let mut transcript = Transcript::new(functions);
    let mut text = String::new();
    let mut rest = bytes;
    for cut in cuts.iter().map(|cut| cut % 97 + 1).chain([usize::MAX]) {
        let (piece, after) = rest.split_at(cut.min(rest.len()));
        rest = after;
        lines.push(piece);
        while let Some(line) = lines.next() {
            let Brought::Message(message) = messages.line(line.unwrap()).unwrap() else { continue };
            for said in dialect.read(&message, &mut understood).unwrap() {
                let Said::Call(piece) = said else { panic!("only calls are sent: {said:?}") };
                text += &transcript.call(piece);
            }
        }
    }
    text + &transcript.finish().rest
}

proptest! {
    /// However the JSON is written and cut, by the server or on the way, it is written alike, and read as what it is.
    #[test]
    fn any_arguments_are_written_alike_however_they_are_cut(
        thought in any::<String>(),
        members in prop::collection::vec(("[a-z\u{e9}\" ]{1,6}", json_value()), 0..4),
        chunk in 1_usize..9,
        cuts in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        let arguments: Map<String, Value> = members.into_iter().filter(|(name, _)| name != "thought").collect();
        let mut object = Map::from_iter([("thought".to_owned(), json!(thought))]);
        object.extend(arguments.clone());
        let functions = search();
        let compact = Value::Object(object.clone()).to_string();
        let whole = written(&functions, "web_search", &compact);
        let characters: Vec<char> = compact.chars().collect();
        let pieces: Vec<String> = characters.chunks(chunk).map(|piece| piece.iter().collect()).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(&written_in_pieces(&functions, "web_search", &pieces).0, &whole);
        let event = |function: Value| {
            let choice = json!({ "index": 0, "delta": { "tool_calls": [{ "index": 0, "function": function }] } });
            format!("data: {}\n\n", json!({ "id": "c", "choices": [choice] }))
        };
        let mut wire = event(json!({ "name": "web_search", "arguments": "" }));
        for piece in &pieces {
            wire += &event(json!({ "arguments": piece }));
        }
        prop_assert_eq!(&written_from_wire(&functions, wire.as_bytes(), &cuts), &whole);
        let in_ascii = written(&functions, "web_search", &ascii(&compact));
        let pretty = written(&functions, "web_search", &serde_json::to_string_pretty(&object).unwrap());
        let read = parser::read(&whole);
        prop_assert_eq!(&parser::read(&in_ascii), &read);
        prop_assert_eq!(&parser::read(&pretty), &read);
        let ReactReply::Action { tool, arguments: found, .. } = read else { panic!("{whole}") };
        prop_assert_eq!((tool.as_str(), found), ("web search", arguments));
    }

    /// A text grammar reply and a call with the same content mean the same.
    #[test]
    fn any_answer_is_read_as_if_it_had_been_written(thought in "\\PC{0,20}", answer in any::<String>(), chunk in 1_usize..9) {
        let json = json!({ "thought": thought, "answer": answer }).to_string();
        let characters: Vec<char> = json.chars().collect();
        let pieces: Vec<String> = characters.chunks(chunk).map(|piece| piece.iter().collect()).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let (text, _) = written_in_pieces(&search(), "final_answer", &pieces);
        let written = format!("Thought: {thought}\nFinal Answer: {answer}");
        prop_assert_eq!(parser::read(&text), parser::read(&written));
    }
}
