//! Tools as functions: offered, called, refused.

use crate::ask::{ask, patient, provider, request};
use crate::speech;
use crate::stub::{Act, Script, Seen, Stub, answer, stream};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::Hash;
use trellis_domain::config::{ConfigItem, PromptReply, Settings, StoredItem, ToolItem, validate};
use trellis_domain::record::ReplyFormat;
use trellis_models::{CallSettings, ModelRequest, Provider, TemplatePrompter};
use trellis_orchestrator::ports::{PromptCall, PromptReply as Reply, Prompter, RealWorld, ReplySink};

const EACH: [&str; 3] = ["openai", "anthropic", "ollama"];

fn tools() -> Vec<Arc<ToolItem>> {
    let question = json!({"name": "question", "type": "string", "description": "what to ask"});
    let tool = json!({"type": "prompt", "name": "web search", "description": "Searches.", "template": "search",
        "arguments": [question]});
    match validate("tool", "search", &tool.to_string()) {
        Ok(ConfigItem::Tool(tool)) => vec![tool],
        other => panic!("not a tool: {other:?}"),
    }
}

fn offering() -> ModelRequest {
    ModelRequest { tools: Some(tools()), ..request(PromptReply::Text) }
}

const ARGUMENTS: [&str; 3] = ["{\"thought\": \"Look it", " up.\", \"question\": \"Why", "?\"}"];
const TEXT: &str = "Thought: Look it up.\nAction: web search\nArgs: {\"question\": \"Why?\"}";

#[tokio::test]
async fn a_call_is_told_in_the_text_grammar() {
    for name in EACH {
        let stub = Stub::always(stream(speech::call(name, "web_search", &ARGUMENTS))).await;
        let provider = provider(name, &stub.base, patient());
        let (reply, pieces) = ask(&*provider, &offering()).await;
        let reply = reply.unwrap();
        assert_eq!(reply.text.replace("\"question\":\"", "\"question\": \""), TEXT, "{name}");
        assert_eq!(pieces.concat(), reply.text);
        assert_eq!(reply.enforced, name != "ollama", "Ollama offers functions and enforces nothing");
        if name != "ollama" {
            assert_eq!(pieces[..2], ["Thought: Look it", " up."], "{name}: a thought is heard while it is written");
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
        assert_eq!(pieces, ["Thought: Enough.\nFinal Answer: Beca", "use."], "{name}");
        assert!(reply.unwrap().enforced);
    }
}

#[tokio::test]
async fn words_instead_of_a_call_are_the_answer() {
    for name in EACH {
        let stub = Stub::always(stream(speech::reply(name, &["Because ", "of moss."]))).await;
        let (reply, _) = ask(&*provider(name, &stub.base, patient()), &offering()).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.enforced), ("Final Answer: Because of moss.", false));
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
    let mut listener = |text: &str| {
        heard.push_str(text);
        ControlFlow::Break(())
    };
    let reply = provider.complete(&request, &mut listener).await.unwrap();
    assert_eq!((heard.as_str(), reply.text.as_str(), reply.enforced), ("Thought: Look it", "Thought: Look it", false));
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

async fn prompt(prompter: &TemplatePrompter) -> Reply {
    let call = PromptCall {
        settings: settings(),
        id: "agent-react".to_owned(),
        variables: json!({ "question": "Why?" }).as_object().cloned().unwrap(),
        tools: Some(tools()),
        ..PromptCall::default()
    };
    prompter.ask(call, &mut Unheard).await.unwrap()
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
        assert_eq!((&texts[0], &texts[refused]), (&json!("Call. Why?"), &json!("Write. Why?")));
    }
}

#[tokio::test]
async fn a_model_that_refuses_strict_functions_is_offered_loose_ones() {
    for name in ["openai", "anthropic"] {
        let stub = Stub::start(picky(name, true)).await;
        let prompter = prompter(provider(name, &stub.base, patient()));
        for (asked, refused) in [(2, 1), (3, 0)] {
            let reply = prompt(&prompter).await;
            assert_eq!((reply.raw.as_str(), reply.prompt.format), (TEXT, Some(ReplyFormat::NativeTools)), "{name}");
            assert!(!reply.enforced);
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
async fn several_calls_at_once_are_put_right() {
    let calls = json!([
        { "index": 0, "id": "a", "function": { "name": "web_search", "arguments": ARGUMENTS.concat() } },
        { "index": 1, "id": "b", "function": { "name": "final_answer", "arguments": "{}" } },
    ]);
    let body = json!({ "id": "c", "choices": [{ "message": { "tool_calls": calls }, "finish_reason": "tool_calls" }] });
    let stub = Stub::always(answer("200 OK", "", &body.to_string())).await;
    let reply = prompt(&prompter(provider("openai", &stub.base, patient()))).await;
    assert_eq!((reply.raw.as_str(), reply.enforced), (TEXT, true));
    assert_eq!(reply.mended, ["2 calls were made at once; only the first counts"]);
}
