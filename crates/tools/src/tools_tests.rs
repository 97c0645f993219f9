use super::*;
use serde_json::{Value, json};
use std::time::Duration;
use trellis_domain::config::{ConfigItem, Settings, validate};
use trellis_domain::document::Payload;
use trellis_domain::{Collection, Scope};
use trellis_orchestrator::memory::scripted::{SILENT, ScriptedPrompter};
use trellis_orchestrator::permits::Permit;
use trellis_orchestrator::ports::{PromptCall, PromptError, PromptReply, ReplyContent, ReplySink};

fn tool(value: &str) -> Arc<ToolItem> {
    match validate("tool", "t", value) {
        Ok(ConfigItem::Tool(tool)) => tool,
        other => panic!("not a tool: {other:?}"),
    }
}

/// A call of a tool by a run that has nothing to say about it.
pub(crate) fn call(tool: Arc<ToolItem>, arguments: &Value) -> ToolCall {
    ToolCall {
        scope: Scope::default(),
        collection: Collection::default(),
        settings: Arc::new(Settings::default()),
        tool,
        arguments: arguments.as_object().cloned().unwrap(),
        idempotency_key: "k".to_owned(),
        step: None,
        document: None,
        timeout: Duration::from_mins(1),
        max_reply_bytes: 1 << 20,
        labels: None,
        permit: Permit::default(),
        input: trellis_orchestrator::ports::CallInput::Nobody,
    }
}

/// Calls a tool whose model repeats what it was sent.
async fn echo(value: &str, arguments: Value) -> Result<ToolOutput, String> {
    let script = |call: &PromptCall| Ok(format!("{} {}", call.id, Value::Object(call.variables.clone())));
    let tools = Tools::new(Arc::new(ScriptedPrompter::new(script)));
    tools.call(call(tool(value), &arguments)).await.map_err(|error| error.to_string())
}

const ASK: &str = r#"{"type": "text-completion", "name": "ask"}"#;
const LOOKUP: &str = r#"{"type": "prompt", "name": "lookup", "template": "find", "arguments": [
    {"name": "company", "type": "string"}, {"name": "year", "type": "integer"}]}"#;

#[tokio::test]
async fn a_text_completion_asks_the_prompt_question_and_nothing_else() {
    let output = echo(ASK, json!({ "question": "Why?", "mood": "good" })).await.unwrap();
    assert_eq!(output.text, r#"question {"question":"Why?"}"#);
    let [asked] = &output.calls[..] else { panic!("one call: {:?}", output.calls) };
    let spent = asked.usage();
    assert_eq!((asked.prompt.id.as_str(), asked.reply.as_ref().map(Payload::text)), ("question", Some(&*output.text)));
    assert_eq!((spent.model.as_deref(), spent.in_token, spent.model_calls), (Some("scripted"), Some(7), 1));
    let output = echo(ASK, json!({ "question": { "a": [1] } })).await.unwrap();
    assert_eq!(output.text, r#"question {"question":"{\"a\":[1]}"}"#);
}

#[tokio::test]
async fn a_prompt_tool_renders_its_template_with_the_arguments() {
    let output = echo(LOOKUP, json!({ "company": "X", "year": 2024, "note": "n" })).await.unwrap();
    assert_eq!(output.text, r#"find {"company":"X","year":2024,"note":"n"}"#);
}

#[tokio::test]
async fn a_missing_argument_is_named_together_with_the_expected_ones() {
    let expected = "the argument `year` is missing; `lookup` expects `company` (string), `year` (integer)";
    assert_eq!(echo(LOOKUP, json!({ "company": "X" })).await.unwrap_err(), expected);
    assert_eq!(echo(LOOKUP, json!({ "company": "X", "year": null })).await.unwrap_err(), expected);
    let expected = "the argument `question` is missing; `ask` expects `question` (string)";
    assert_eq!(echo(ASK, json!({ "query": "Why?" })).await.unwrap_err(), expected);
}

#[tokio::test]
async fn a_models_failure_becomes_the_tools_error() {
    let tools = Tools::new(Arc::new(ScriptedPrompter::new(|_| Err("overloaded".to_owned()))));
    let error = tools.call(call(tool(ASK), &json!({ "question": "Why?" }))).await.unwrap_err();
    assert_eq!(error.reason, "the model did not answer: overloaded");
    let [asked] = &error.calls[..] else { panic!("one call: {:?}", error.calls) };
    assert_eq!((asked.prompt.id.as_str(), &asked.reply), ("question", &None), "what was tried is on record");
}

#[tokio::test]
async fn a_model_that_says_nothing_is_given_up_after_the_tools_time() {
    let tools = Tools::new(Arc::new(ScriptedPrompter::new(|_| Err(SILENT.to_owned()))));
    let timeout = Duration::from_millis(20);
    let call = ToolCall { timeout, ..call(tool(ASK), &json!({ "question": "Why?" })) };
    let error = tools.call(call).await.unwrap_err();
    assert_eq!(error.reason, "the model did not answer: the model took longer than 0.02 s");
    assert_eq!(error.calls.len(), 1, "what was tried is on record");
}

#[tokio::test]
async fn a_reply_that_does_not_end_is_cut_at_the_runs_limit() {
    let tools = Tools::new(Arc::new(ScriptedPrompter::new(|_| Ok("moss ".repeat(9)))));
    let call = ToolCall { max_reply_bytes: 40, ..call(tool(ASK), &json!({ "question": "Why?" })) };
    let output = tools.call(call).await.unwrap();
    assert!(output.text.ends_with("[cut off: the reply was longer than its model may write]"), "{}", output.text);
}

/// A prompter that knows no prompt, or replies with JSON.
#[derive(Debug)]
struct Fixed {
    content: Option<ReplyContent>,
    cut_short: bool,
}

impl Prompter for Fixed {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        _: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        let reply = |content| PromptReply {
            ms: 0,
            raw: "as written".to_owned(),
            parts: Vec::new(),
            stop: None,
            content,
            prompt: trellis_domain::record::PromptUse::default(),
            model: None,
            in_token: None,
            out_token: None,
            enforced: false,
            cut_short: self.cut_short,
            failures: Vec::new(),
            repairs: Vec::new(),
        };
        let result = self.content.clone().map(reply).ok_or(PromptError::UnknownPrompt { id: call.id });
        Box::pin(std::future::ready(result))
    }
}

async fn fixed(content: Option<ReplyContent>) -> Result<ToolOutput, ToolError> {
    perhaps_cut(content, false).await
}

async fn perhaps_cut(content: Option<ReplyContent>, cut_short: bool) -> Result<ToolOutput, ToolError> {
    let arguments = json!({ "company": "X", "year": 1 });
    Tools::new(Arc::new(Fixed { content, cut_short })).call(call(tool(LOOKUP), &arguments)).await
}

#[tokio::test]
async fn structured_replies_are_returned_as_json() {
    let object = fixed(Some(ReplyContent::Object(json!({ "a": 1 })))).await.unwrap();
    assert_eq!(object.text, r#"{"a":1}"#);
    let list = fixed(Some(ReplyContent::List(vec![json!(1), json!("b")]))).await.unwrap();
    assert_eq!(list.text, r#"[1,"b"]"#);
    assert_eq!(fixed(Some(ReplyContent::Text)).await.unwrap().text, "as written");
}

#[tokio::test]
async fn a_missing_template_is_named() {
    let error = fixed(None).await.unwrap_err().reason;
    assert_eq!(error, "there is no prompt `find`; add the configuration item prompt/template.find");
}

#[tokio::test]
async fn a_reply_that_was_cut_off_says_so() {
    let output = perhaps_cut(Some(ReplyContent::Text), true).await.unwrap();
    assert_eq!(output.text, "as written\n[cut off: the reply was longer than its model may write]");
    for content in [ReplyContent::List(vec![json!(1)]), ReplyContent::Wrong { reason: "half".to_owned() }] {
        let error = perhaps_cut(Some(content), true).await.unwrap_err();
        assert_eq!(error.reason, "the reply was cut off, because it was longer than its model may write");
        assert_eq!(error.calls.len(), 1, "what was paid for is counted");
    }
}
