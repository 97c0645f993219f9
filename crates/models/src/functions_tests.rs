use super::*;
use crate::dialect::OpenAi;
use crate::remote::{Brought, Dialect, Framing, LONGEST_LINE, Messages, Said, Understood};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
use trellis_domain::config::{ArgumentItem, ToolItem};
use trellis_domain::event_stream::LineReader;

pub(crate) fn offered(name: &str, arguments: &[(&str, &str)]) -> Arc<ToolItem> {
    let argument = |(name, kind): &(&str, &str)| ArgumentItem::new(name, kind, &format!("the {name}"));
    Arc::new(ToolItem::function(name, &format!("does {name}"), arguments.iter().map(argument).collect()))
}

fn search() -> Functions {
    Functions::of(&[offered("web search", &[("query", "string"), ("most", "integer")])])
}

#[test]
fn an_open_argument_cannot_be_enforced_and_does_not_hinder_the_others() {
    assert!(can_be_enforced(&search()));
    for kind in ["object", "array", "date"] {
        let functions = Functions::of(&[offered("a", &[("x", kind)]), offered("b", &[("x", "str")])]);
        let strict: Vec<_> = functions.iter().map(|function| strict_schema(function).is_some()).collect();
        assert_eq!((strict, can_be_enforced(&functions)), (vec![false, true, true], false), "{kind}");
    }
}

#[test]
fn what_a_schema_refers_to_is_sent_in_its_place() {
    let with_schema = |schema: serde_json::Value| {
        let place = ArgumentItem { schema: Some(schema), ..ArgumentItem::new("place", "object", "the place") };
        Functions::of(&[Arc::new(ToolItem::function("find", "finds", vec![place]))])
    };
    let city = json!({ "type": "object", "required": ["name"], "properties": { "name": { "$ref": "#/$defs/name" } } });
    let definitions = json!({ "city": city, "name": { "type": "string" } });
    let nested = with_schema(json!({ "$ref": "#/$defs/city", "$defs": definitions }));
    let (sent, is_strict) = sent_schema(nested.meant("find").unwrap(), true);
    assert!(is_strict && can_be_enforced(&nested) && !sent.to_string().contains("$ref"), "{sent}");
    assert_eq!(sent["properties"]["place"]["properties"]["name"], json!({ "type": "string" }));
    assert!(were_kept(&nested, &[call("find", r#"{"thought": "x", "place": {"name": "Oslo"}}"#)]));
    assert!(!were_kept(&nested, &[call("find", r#"{"thought": "x", "place": {"name": 3}}"#)]));

    let tree = json!({ "type": "object", "properties": { "left": { "$ref": "#/$defs/tree" } } });
    let recursive = with_schema(json!({ "$ref": "#/$defs/tree", "$defs": { "tree": tree } }));
    let (sent, is_strict) = sent_schema(recursive.meant("find").unwrap(), true);
    assert!(
        !is_strict && !sent.to_string().contains("$ref"),
        "a tree has no end that a provider could hold to: {sent}"
    );
    assert_eq!(sent["properties"]["place"]["properties"]["left"]["properties"]["left"], json!({}));
}

fn call(function: &str, arguments: &str) -> ReplyPart {
    ReplyPart::Call { id: None, function: function.to_owned(), arguments: arguments.into() }
}

#[test]
fn a_schema_is_kept_only_if_every_call_keeps_to_it() {
    let good = || call("web_search", r#"{"thought": "x", "query": "q", "most": 1}"#);
    assert!(were_kept(&search(), &[good()]) && were_kept(&search(), &[good(), good()]));
    for broken in [
        call("web_search", r#"{"thought": "x", "query": 1, "most": 1}"#),
        call("web_search", r#"{"query": "q", "most": 1}"#),
        call("web_search", "{} {}"),
        call("web_search", "{\"thought\": \"x\", \"query\": "),
        call("telepathy", "{}"),
    ] {
        assert!(!were_kept(&search(), &[good(), broken.clone()]), "{broken:?}");
        assert!(!were_kept(&search(), std::slice::from_ref(&broken)), "{broken:?}");
    }
    assert!(!were_kept(&search(), &[ReplyPart::Text { text: "words".into() }]), "nothing was called");
}

/// The arguments of a call as they come from a server's bytes, through everything between the wire and the reply.
fn from_wire(bytes: &[u8], cuts: &[usize]) -> String {
    let (mut lines, mut messages) = (LineReader::new(LONGEST_LINE), Messages::new(Framing::Events));
    let (dialect, mut understood) = (OpenAi::default(), Understood::default());
    let mut arguments = String::new();
    let mut rest = bytes;
    for cut in cuts.iter().map(|cut| cut % 97 + 1).chain([usize::MAX]) {
        let (piece, after) = rest.split_at(cut.min(rest.len()));
        rest = after;
        lines.push(piece);
        while let Some(line) = lines.next() {
            let Brought::Message(message) = messages.line(line.unwrap()).unwrap() else { continue };
            for said in dialect.read(&message, &mut understood).unwrap() {
                let Said::Call(piece) = said else { panic!("only calls are sent: {said:?}") };
                assert!(piece.belongs_to(0, None));
                arguments += &piece.arguments;
            }
        }
    }
    arguments
}

proptest! {
    /// However a server and the way from it cut the arguments, they are what the model wrote.
    #[test]
    fn any_arguments_arrive_as_they_were_written(
        query in any::<String>(),
        chunk in 1_usize..9,
        cuts in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        let written = json!({ "thought": "x", "query": query }).to_string();
        let event = |function: Value| {
            let choice = json!({ "index": 0, "delta": { "tool_calls": [{ "index": 0, "function": function }] } });
            format!("data: {}\n\n", json!({ "id": "c", "choices": [choice] }))
        };
        let mut wire = event(json!({ "name": "web_search", "arguments": "" }));
        let characters: Vec<char> = written.chars().collect();
        for piece in characters.chunks(chunk) {
            wire += &event(json!({ "arguments": piece.iter().collect::<String>() }));
        }
        prop_assert_eq!(from_wire(wire.as_bytes(), &cuts), written);
    }
}
