//! Tools as functions: offered, called, refused.

use crate::ask::{ask, patient, provider, request, written};
use crate::speech;
use crate::stub::{Act, Script, Seen, Stub, answer, stream};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::Hash;
use trellis_domain::config::{ConfigItem, PromptReply, Settings, StoredItem, ToolItem, validate};
use trellis_domain::parts::{ChatTurn, Piece, ReplyPart, StopReason};
use trellis_domain::record::ReplyFormat;
use trellis_models::{CallSettings, ModelRequest, Provider, TemplatePrompter};
use trellis_orchestrator::ports::{PromptCall, PromptReply as Reply, Prompter, RealWorld, ReplySink};

const EACH: [&str; 3] = ["openai", "anthropic", "ollama"];

pub(crate) fn tools() -> Arc<[Arc<ToolItem>]> {
    let question = json!({"name": "question", "type": "string", "description": "what to ask"});
    let tool = json!({"type": "prompt", "name": "web search", "description": "Searches.", "template": "search",
        "arguments": [question]});
    match validate("tool", "search", &tool.to_string()) {
        Ok(ConfigItem::Tool(tool)) => [tool].into(),
        other => panic!("not a tool: {other:?}"),
    }
}

pub(crate) fn offering() -> ModelRequest {
    ModelRequest { tools: Some(tools()), ..request(PromptReply::Text) }
}

const ARGUMENTS: [&str; 3] = ["{\"thought\": \"Look it", " up.\", \"question\": \"Why", "?\"}"];
const TEXT: &str = "Thought: Look it up.\nAction: web search\nArgs: {\"question\": \"Why?\"}";

/// The function that was called and what it was called with.
fn called(part: &ReplyPart) -> (&str, Value) {
    let ReplyPart::Call { function, arguments, .. } = part else { panic!("not a call: {part:?}") };
    (function, serde_json::from_str(arguments.text()).unwrap())
}

#[tokio::test]
async fn a_call_is_given_as_it_was_made() {
    for name in EACH {
        let stub = Stub::always(stream(speech::call(name, "web_search", &ARGUMENTS))).await;
        let provider = provider(name, &stub.base, patient());
        let (reply, pieces) = ask(&*provider, &offering()).await;
        let reply = reply.unwrap();
        let [part] = &reply.parts[..] else { panic!("{name}: {reply:?}") };
        assert_eq!(called(part), ("web_search", json!({"thought": "Look it up.", "question": "Why?"})), "{name}");
        let ReplyPart::Call { id, arguments, .. } = part else { panic!("{part:?}") };
        assert_eq!(id.is_some(), name == "openai", "{name} tells ids in this stream or not");
        assert_eq!(pieces.concat(), format!("web_search{}", arguments.text()), "{name}");
        assert_eq!((reply.text.as_str(), reply.stop.is_some()), ("", true), "{name}");
        assert!(reply.response.is_some(), "what came back is known by its hash");
        assert_eq!(reply.enforced, name != "ollama", "Ollama offers functions and enforces nothing");
        if name != "ollama" {
            assert_eq!(pieces[1..3], ARGUMENTS[..2], "{name}: it is heard while it is written");
        }
        let offered = &stub.seen()[0].body["tools"];
        assert_eq!(offered.as_array().unwrap().len(), 2, "the tool and the final answer");
    }
}

#[tokio::test]
async fn an_answer_is_heard_while_it_is_written() {
    let arguments = ["{\"thought\": \"Enough.\", \"answer\": \"Beca", "use.\"}"];
    for name in ["openai", "anthropic"] {
        let stub = Stub::always(stream(speech::call(name, "final_answer", &arguments))).await;
        let (reply, pieces) = ask(&*provider(name, &stub.base, patient()), &offering()).await;
        assert_eq!(pieces[1..], arguments, "{name}");
        assert!(reply.unwrap().enforced);
    }
}

#[tokio::test]
async fn words_instead_of_a_call_are_words() {
    for name in EACH {
        let stub = Stub::always(stream(speech::reply(name, &["Because ", "of moss."]))).await;
        let (reply, _) = ask(&*provider(name, &stub.base, patient()), &offering()).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.parts.len(), reply.enforced), ("Because of moss.", 0, false));
    }
}

/// Says where the bytes stop that a server sends in the middle of a call.
#[tokio::test]
async fn a_listener_can_stop_a_call() {
    let stub =
        Stub::always([stream(speech::call("openai", "web_search", &ARGUMENTS[..1])), vec![Act::Hang]].concat()).await;
    let provider = provider("openai", &stub.base, patient());
    let mut heard = String::new();
    let request = offering();
    let mut listener = |piece: Piece<'_>| {
        heard += &written(piece);
        if heard.contains("Look") { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let reply = provider.complete(&request, &mut listener).await.unwrap();
    assert_eq!(heard, format!("web_search{}", ARGUMENTS[0]));
    let [ReplyPart::Call { arguments, .. }] = &reply.parts[..] else { panic!("{reply:?}") };
    assert_eq!((arguments.text(), reply.enforced), (ARGUMENTS[0], false));
}

fn settings() -> Arc<Settings> {
    let prompt = "{% if native_tools %}Call.{% else %}Write.{% endif %} {{ question }}";
    let value = json!({ "prompt": prompt }).to_string();
    let item = StoredItem { kind: "prompt".to_owned(), key: "template.agent-react".to_owned(), value };
    Arc::new(Settings::take(1, [item]).0)
}

struct Unheard;

impl ReplySink for Unheard {
    fn text(&mut self, _: &str) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {}
}

fn asked() -> PromptCall {
    PromptCall {
        settings: settings(),
        id: "agent-react".to_owned(),
        variables: json!({ "question": "Why?" }).as_object().cloned().unwrap(),
        tools: Some(tools()),
        ..PromptCall::default()
    }
}

async fn prompt(prompter: &TemplatePrompter) -> Reply {
    prompter.ask(asked(), &mut Unheard).await.unwrap()
}

fn prompter(model: Arc<dyn Provider>) -> TemplatePrompter {
    TemplatePrompter::new(model, Arc::new(RealWorld))
}

fn text_of(seen: &Seen) -> &Value {
    let messages = seen.body["messages"].as_array().unwrap();
    &messages.last().unwrap()["content"]
}

/// A server of that provider which takes functions in no form, or in none that is strict.
fn picky(name: &'static str, takes_loose: bool) -> impl Fn(usize, &Seen) -> Script {
    move |_, seen| {
        let tools = &seen.body["tools"];
        let strict = tools[0]["strict"] == true || tools[0]["function"]["strict"] == true;
        match (tools.is_null(), strict || !takes_loose) {
            (true, _) => stream(speech::reply(name, &[TEXT])),
            (false, true) => answer("400 Bad Request", "", "{\"error\": \"m does not support tools\"}"),
            (false, false) => stream(speech::call(name, "web_search", &ARGUMENTS)),
        }
    }
}

#[tokio::test]
async fn a_model_that_refuses_tools_is_asked_in_text_and_that_is_remembered() {
    for name in EACH {
        let stub = Stub::start(picky(name, false)).await;
        let prompter = prompter(provider(name, &stub.base, patient()));
        let first = prompt(&prompter).await;
        assert_eq!((first.raw.as_str(), first.prompt.format), (TEXT, Some(ReplyFormat::Text)), "{name}");
        let refused = stub.seen().len() - 1;
        let sent: Vec<_> = first.failures.iter().map(|failure| failure.asked.as_ref().unwrap().sent).collect();
        let seen: Vec<_> = stub.seen()[..refused].iter().map(|seen| Some(Hash::of(&seen.bytes))).collect();
        assert_eq!(sent, seen, "everything that it refused is on record");
        let reasons = first.failures.iter().all(|failure| failure.reason.contains("does not support tools"));
        assert!(reasons, "{:?}", first.failures);
        assert_eq!(refused, if name == "ollama" { 1 } else { 2 }, "{name}: strict, loose");
        let second = prompt(&prompter).await;
        assert_eq!((second.raw.as_str(), second.failures.len(), stub.seen().len()), (TEXT, 0, refused + 2), "{name}");
        let texts: Vec<_> = stub.seen().iter().map(|seen| text_of(seen).clone()).collect();
        let cached = json!([{ "type": "text", "text": "Call. Why?", "cache_control": { "type": "ephemeral" } }]);
        let offered = if name == "anthropic" { cached } else { json!("Call. Why?") };
        assert_eq!((&texts[0], &texts[refused]), (&offered, &json!("Write. Why?")));
    }
}

#[tokio::test]
async fn a_model_that_refuses_strict_functions_is_offered_loose_ones() {
    for name in ["openai", "anthropic"] {
        let stub = Stub::start(picky(name, true)).await;
        let prompter = prompter(provider(name, &stub.base, patient()));
        for (asked, refused) in [(2, 1), (3, 0)] {
            let reply = prompt(&prompter).await;
            assert_eq!(
                (called(&reply.parts[0]).0, reply.prompt.format),
                ("web_search", Some(ReplyFormat::NativeTools))
            );
            assert!(!reply.enforced, "{name}");
            assert_eq!((reply.failures.len(), stub.seen().len()), (refused, asked));
        }
    }
}

#[tokio::test]
async fn functions_are_a_setting() {
    for name in EACH {
        let stub = Stub::start(picky(name, true)).await;
        let settings = CallSettings { native_tools: false, ..patient() };
        let reply = prompt(&prompter(provider(name, &stub.base, settings))).await;
        assert_eq!((reply.raw.as_str(), reply.prompt.format), (TEXT, Some(ReplyFormat::Text)));
        assert_eq!((stub.seen().len(), text_of(&stub.seen()[0])), (1, &json!("Write. Why?")));
    }
}

/// Some models are better at one call at a time.
#[tokio::test]
async fn several_calls_in_a_reply_are_a_setting() {
    let none = || Value::Null;
    for (name, parallel_calls, expected) in [
        ("openai", None, [json!(false), none()]),
        ("openai", Some(true), [none(), none()]),
        ("anthropic", None, [none(), none()]),
        ("anthropic", Some(false), [none(), json!(true)]),
    ] {
        let stub = Stub::always(stream(speech::call(name, "web_search", &ARGUMENTS))).await;
        let settings = CallSettings { parallel_calls, ..patient() };
        ask(&*provider(name, &stub.base, settings), &offering()).await.0.unwrap();
        let body = &stub.seen()[0].body;
        let said = [&body["parallel_tool_calls"], &body["tool_choice"]["disable_parallel_tool_use"]];
        assert_eq!(said.map(Clone::clone), expected, "{name}, {parallel_calls:?}");
    }
}

#[tokio::test]
async fn a_model_that_knows_nothing_of_single_calls_is_not_told_again() {
    let stub = Stub::start(|_, seen| {
        if seen.body.to_string().contains("disable_parallel_tool_use") {
            let message = "tool_choice.any.disable_parallel_tool_use: Extra inputs are not permitted";
            return answer("400 Bad Request", "", &json!({ "error": { "message": message } }).to_string());
        }
        stream(speech::call("anthropic", "web_search", &ARGUMENTS))
    })
    .await;
    let settings = CallSettings { parallel_calls: Some(false), ..patient() };
    let provider = provider("anthropic", &stub.base, settings);
    for _ in 0..2 {
        ask(&*provider, &offering()).await.0.unwrap();
    }
    let told = stub.seen().iter().filter(|seen| seen.body.to_string().contains("disable_parallel_tool_use")).count();
    assert_eq!(told, 1);
}

/// Refusing schemas says nothing about functions, nor the other way round.
#[tokio::test]
async fn schemas_and_functions_are_remembered_apart() {
    let stub = Stub::start(picky("openai", false)).await;
    let model = provider("openai", &stub.base, patient());
    prompt(&prompter(Arc::clone(&model))).await;
    ask(&*model, &crate::ask::held()).await.0.unwrap();
    assert_eq!(stub.seen().last().unwrap().body["response_format"]["json_schema"]["strict"], true);
}

#[tokio::test]
async fn several_calls_at_once_are_given_as_they_were_made() {
    let calls = json!([
        { "index": 0, "id": "a", "function": { "name": "web_search", "arguments": ARGUMENTS.concat() } },
        { "index": 1, "id": "b", "function": { "name": "web_search", "arguments": ARGUMENTS.concat() } },
    ]);
    let body = json!({ "id": "c", "choices": [{ "message": { "tool_calls": calls }, "finish_reason": "tool_calls" }] });
    let stub = Stub::always(answer("200 OK", "", &body.to_string())).await;
    let reply = prompt(&prompter(provider("openai", &stub.base, patient()))).await;
    let ids = reply.parts.iter().map(|part| match part {
        ReplyPart::Call { id, .. } => id.as_deref(),
        ReplyPart::Thought { .. } | ReplyPart::Text { .. } | ReplyPart::Refusal { .. } => None,
    });
    assert_eq!((ids.collect::<Vec<_>>(), reply.enforced), (vec![Some("a"), Some("b")], true));
    assert_eq!(reply.stop, Some(StopReason::Calls));
    assert!(reply.repairs.is_empty());
}

/// A thought, words and a call of a model that tells them apart: each is a part, and words are what is read.
#[tokio::test]
async fn thoughts_and_words_are_parts_of_their_own() {
    let call = json!({ "id": "a", "function": { "name": "web_search", "arguments": "{}" } });
    let message = json!({ "reasoning_content": "Hm.", "content": "Let me look.", "tool_calls": [call] });
    let body = json!({ "id": "c", "choices": [{ "message": message, "finish_reason": "tool_calls" }] });
    let stub = Stub::always(answer("200 OK", "", &body.to_string())).await;
    let (reply, _) = ask(&*provider("openai", &stub.base, patient()), &offering()).await;
    let reply = reply.unwrap();
    let expected = [
        ReplyPart::Thought { text: "Hm.".into(), signature: None },
        ReplyPart::Text { text: "Let me look.".into() },
        ReplyPart::Call { id: Some("a".to_owned()), function: "web_search".to_owned(), arguments: "{}".into() },
    ];
    assert_eq!((reply.text.as_str(), &reply.parts[..]), ("Let me look.", &expected[..]));
}

/// What was thought between tags in the text is a part, too, and what came back is kept if that is wanted.
#[tokio::test]
async fn a_reply_is_kept_as_it_came_if_that_is_wanted() {
    let settings = CallSettings { keep_requests: true, ..patient() };
    let stub = Stub::always(stream(speech::reply("openai", &["<think>Hm.</th", "ink>Moss."]))).await;
    let reply = ask(&*provider("openai", &stub.base, settings), &request(PromptReply::Text)).await.0.unwrap();
    let parts = [ReplyPart::Thought { text: "Hm.".into(), signature: None }, ReplyPart::Text { text: "Moss.".into() }];
    assert_eq!((reply.text.as_str(), &reply.parts[..]), ("Moss.", &parts[..]));
    let response = reply.response.unwrap();
    let body = response.body.unwrap();
    assert!(body.contains("<think>Hm.</th") && body.contains("[DONE]"), "{body}");
    assert_eq!(response.hash, Hash::of(&body), "no key was taken out of this one");
}

/// A conversation: what the model called and what came of it, in each provider's words.
#[tokio::test]
async fn a_conversation_is_told_in_each_providers_words() {
    let call = |id: Option<&str>, question: &str| ReplyPart::Call {
        id: id.map(str::to_owned),
        function: "web_search".to_owned(),
        arguments: json!({ "question": question }).to_string().into(),
    };
    let result = |call: Option<&str>, text: &str, is_error| ChatTurn::ToolResult {
        call: call.map(str::to_owned),
        function: "web_search".to_owned(),
        text: text.into(),
        is_error,
    };
    let said = ReplyPart::Text { text: "Both.".into() };
    let turns = vec![
        ChatTurn::Assistant { parts: vec![said, call(Some("x"), "a"), call(None, "b")] },
        result(Some("x"), "one", false),
        result(None, "two", true),
        ChatTurn::User { text: "Go on.".into() },
    ];
    let (first, second) = (json!({ "question": "a" }), json!({ "question": "b" }));
    let function = |arguments: &Value| json!({ "name": "web_search", "arguments": arguments });
    let openai = json!([
        { "role": "assistant", "content": "Both.", "tool_calls": [
            { "id": "call00001", "type": "function", "function": function(&json!(first.to_string())) },
            { "id": "call00002", "type": "function", "function": function(&json!(second.to_string())) },
        ] },
        { "role": "tool", "tool_call_id": "call00001", "content": "one" },
        { "role": "tool", "tool_call_id": "call00002", "content": "two" },
        { "role": "user", "content": "Go on." },
    ]);
    let anthropic = json!([
        { "role": "assistant", "content": [
            { "type": "text", "text": "Both." },
            { "type": "tool_use", "id": "x", "name": "web_search", "input": first },
            { "type": "tool_use", "id": "call00002", "name": "web_search", "input": second },
        ] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "x", "content": "one" },
            { "type": "tool_result", "tool_use_id": "call00002", "content": "two", "is_error": true },
            { "type": "text", "text": "Go on.", "cache_control": { "type": "ephemeral" } },
        ] },
    ]);
    let ollama = json!([
        { "role": "assistant", "content": "Both.", "tool_calls": [
            { "function": function(&first) }, { "function": function(&second) },
        ] },
        { "role": "tool", "tool_name": "web_search", "content": "one" },
        { "role": "tool", "tool_name": "web_search", "content": "two" },
        { "role": "user", "content": "Go on." },
    ]);
    for (name, expected) in EACH.into_iter().zip([openai, anthropic, ollama]) {
        let stub = Stub::always(stream(speech::reply(name, &["Moss."]))).await;
        let request = ModelRequest { turns: turns.clone(), ..offering() };
        ask(&*provider(name, &stub.base, patient()), &request).await.0.unwrap();
        let sent = stub.seen()[0].body["messages"].as_array().unwrap().clone();
        let after = sent.len() - expected.as_array().unwrap().len();
        assert_eq!(json!(sent[after..]), expected, "{name}");
    }
}

/// A model without functions is told the same in words.
#[tokio::test]
async fn a_conversation_without_functions_is_told_in_words() {
    let stub = Stub::always(stream(speech::reply("openai", &[TEXT]))).await;
    let settings = CallSettings { native_tools: false, ..patient() };
    let call = ReplyPart::Call { id: None, function: "web search".to_owned(), arguments: "{}".into() };
    let result = ChatTurn::ToolResult {
        call: None,
        function: "web search".to_owned(),
        text: "Nothing.".into(),
        is_error: false,
    };
    let turns = vec![ChatTurn::Assistant { parts: vec![call] }, result];
    let prompter = prompter(provider("openai", &stub.base, settings));
    prompter.ask(PromptCall { turns, ..asked() }, &mut Unheard).await.unwrap();
    let messages = stub.seen()[0].body["messages"].clone();
    let expected = json!([
        { "role": "user", "content": "Write. Why?" },
        { "role": "assistant", "content": "Action: web search\nArgs: {}" },
        { "role": "user", "content": "Observation: Nothing." },
    ]);
    assert_eq!(messages, expected);
}

/// Some servers send thoughts and words by turns. However often they do, each is one part.
#[tokio::test]
async fn thoughts_and_words_by_turns_are_two_parts() {
    let delta = |n: u32| {
        let delta = json!({ "reasoning": format!("t{n} "), "content": format!("w{n} ") });
        format!("data: {}\n\n", json!({ "id": "c", "choices": [{ "index": 0, "delta": delta }] }))
    };
    let end = json!({ "id": "c", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let messages = (0..1_500).map(delta).chain([format!("data: {end}\n\n"), "data: [DONE]\n\n".to_owned()]);
    let stub = Stub::always(stream(messages)).await;
    let reply = ask(&*provider("openai", &stub.base, patient()), &request(PromptReply::Text)).await.0.unwrap();
    let [ReplyPart::Thought { text: thought, .. }, ReplyPart::Text { text }] = &reply.parts[..] else {
        panic!("{} parts", reply.parts.len())
    };
    assert!(thought.text().ends_with("t1499 ") && text.text().ends_with("w1499 "));
}

/// A message may bring any number of calls, with names of any length: that is no reply.
#[tokio::test]
async fn calls_without_end_are_refused() {
    let call =
        |n: u32| json!({ "index": n, "id": "i".repeat(500), "function": { "name": "f".repeat(500), "arguments": "" } });
    for (calls, is_refused) in [(3, false), (5_000, true)] {
        let calls: Vec<_> = (0..calls).map(call).collect();
        let choice = json!({ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": "tool_calls" });
        let sent = format!("data: {}\n\ndata: [DONE]\n\n", json!({ "id": "c", "choices": [choice] }));
        let stub = Stub::always(stream(vec![sent])).await;
        let reply = ask(&*provider("openai", &stub.base, patient()), &offering()).await.0;
        assert_eq!(reply.is_err(), is_refused);
        for part in reply.map(|reply| reply.parts).unwrap_or_default() {
            assert!(matches!(&part, ReplyPart::Call { function, .. } if function.len() == 256), "{part:?}");
        }
    }
}
