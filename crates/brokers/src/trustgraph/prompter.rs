//! Prompts through the deployment's prompt service: templates and models are there.

use super::flow::{Flows, service};
use super::rpc::CallError;
use super::tools::written;
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Hash;
use trellis_domain::config::PromptReply as Expected;
use trellis_domain::record::{FailedAttempt, PromptUse, ReplyFormat};
use trellis_orchestrator::ports::{
    BoxFuture, PromptCall, PromptError, PromptNeed, PromptReply, Prompter, ReplyContent, ReplySink, World,
};

/// Asks the prompt service of the flow that a call belongs to.
#[derive(Debug)]
pub(crate) struct BrokerPrompter {
    pub(crate) flows: Arc<Flows>,
    pub(crate) world: Arc<dyn World>,
    /// How long each response may take.
    pub(crate) timeout: Duration,
}

/// A request whose answer was lost with the connection is made so often.
const ATTEMPTS: u32 = 3;

/// What the service said so far.
#[derive(Default)]
struct Said {
    /// More may come after the first response.
    streaming: bool,
    text: String,
    object: Option<String>,
    in_token: Option<u64>,
    out_token: Option<u64>,
    model: Option<String>,
    /// Whoever reads it has enough.
    stopped: bool,
}

impl BrokerPrompter {
    /// None if it takes longer than that.
    async fn within<T>(&self, limit: Option<Duration>, what: impl Future<Output = T>) -> Option<T> {
        let Some(limit) = limit else { return Some(what.await) };
        tokio::select! {
            biased;
            done = what => Some(done),
            () = self.world.sleep(limit) => None,
        }
    }

    async fn send(&self, call: PromptCall, sink: &mut dyn ReplySink) -> Result<PromptReply, PromptError> {
        let PromptCall { scope, settings, id, variables, timeout, tools, .. } = call;
        let Some(template) = settings.prompts.get(&id) else { return Err(PromptError::UnknownPrompt { id }) };
        let failed = |reason: String, failures| PromptError::Provider { reason, failures };
        let Some(flow) = self.within(timeout, self.flows.get(&scope)).await else {
            return Err(PromptError::took_too_long(timeout.unwrap_or_default(), Vec::new()));
        };
        let service = flow.and_then(|flow| flow.service(service::PROMPT));
        let Some(service) = service else {
            return Err(failed(format!("the flow {} has no prompt service", scope.flow), Vec::new()));
        };
        // What is no text cannot be streamed there.
        let streaming = template.reply == Expected::Text;
        let body = json!({ "id": id, "terms": terms(&variables), "streaming": streaming }).to_string();
        let format = tools.as_ref().map(|_| ReplyFormat::Text);
        let prompt = PromptUse {
            id,
            template: Some(template.hash),
            sent: Some(Hash::of(&body)),
            format,
            ..PromptUse::default()
        };
        let mut failures = Vec::new();
        for attempt in 1..=ATTEMPTS {
            let began = self.world.now();
            if let Some(format) = format {
                sink.begin(format);
            }
            let mut said = Said { streaming, ..Said::default() };
            let asked =
                async { service.stream_written(&body, self.timeout, &mut |response| said.hear(&response, sink)).await };
            let Some(result) = self.within(timeout, asked).await else {
                return Err(PromptError::took_too_long(timeout.unwrap_or_default(), failures));
            };
            let ms = self.world.now().ms_since(began);
            match result {
                Ok(()) => return said.reply(&template.reply, prompt, ms, failures),
                Err(error) => {
                    let note = FailedAttempt { reason: error.to_string(), ms, ..FailedAttempt::default() };
                    sink.failed(&note);
                    failures.push(note);
                    if attempt == ATTEMPTS || !matches!(error, CallError::Lost { .. }) {
                        return Err(failed(error.to_string(), failures));
                    }
                    sink.restart();
                }
            }
        }
        Err(failed("it was asked in vain".to_owned(), failures))
    }
}

/// Each value as a text that holds JSON.
fn terms(variables: &Map<String, Value>) -> Map<String, Value> {
    variables.iter().map(|(name, value)| (name.clone(), Value::String(value.to_string()))).collect()
}

impl Said {
    fn hear(&mut self, response: &Value, sink: &mut dyn ReplySink) -> ControlFlow<()> {
        let number = |name: &str| response.get(name).and_then(Value::as_u64);
        self.in_token = number("in_token").or(self.in_token);
        self.out_token = number("out_token").or(self.out_token);
        self.model = response.get("model").and_then(Value::as_str).map(str::to_owned).or(self.model.take());
        if let Some(text) = response.get("text").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            self.text.push_str(text);
            if sink.text(text).is_break() {
                self.stopped = true;
                return ControlFlow::Break(());
            }
        }
        self.object = response.get("object").and_then(written).or(self.object.take());
        // A reply that is no stream may come without the mark.
        let is_whole = !self.streaming || self.object.is_some() || response.get("end_of_stream").is_none();
        let is_last = response.get("end_of_stream") == Some(&Value::Bool(true));
        if is_last || is_whole { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn reply(
        self,
        expected: &Expected,
        prompt: PromptUse,
        ms: u64,
        failures: Vec<FailedAttempt>,
    ) -> Result<PromptReply, PromptError> {
        if self.text.is_empty() && self.object.is_none() && !self.stopped {
            let reason = "the prompt service gave neither a text nor an object".to_owned();
            return Err(PromptError::Provider { reason, failures });
        }
        let raw = if self.text.is_empty() { self.object.unwrap_or_default() } else { self.text };
        let content = match (expected, serde_json::from_str::<Value>(&raw)) {
            (Expected::Text, _) => ReplyContent::Text,
            (_, Ok(Value::Array(list))) => ReplyContent::List(list),
            (_, Ok(value)) => ReplyContent::Object(value),
            (_, Err(error)) => ReplyContent::Wrong { reason: format!("the reply is no JSON: {error}") },
        };
        Ok(PromptReply {
            raw,
            parts: Vec::new(),
            stop: None,
            content,
            prompt,
            model: self.model,
            in_token: self.in_token,
            out_token: self.out_token,
            enforced: false,
            cut_short: false,
            ms,
            failures,
            repairs: Vec::new(),
        })
    }
}

impl Prompter for BrokerPrompter {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(self.send(call, sink))
    }

    /// Only where the deployment was given a template for it.
    fn routes_in_one_call(&self, need: PromptNeed<'_>) -> bool {
        need.settings.prompts.contains_key(need.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Heard(String);

    impl ReplySink for Heard {
        fn text(&mut self, text: &str) -> ControlFlow<()> {
            self.0.push_str(text);
            ControlFlow::Continue(())
        }

        fn restart(&mut self) {
            self.0.clear();
        }
    }

    fn said(responses: &[Value]) -> (Said, String, bool) {
        let (mut said, mut heard) = (Said { streaming: true, ..Said::default() }, Heard(String::new()));
        let ended = responses.iter().any(|response| said.hear(response, &mut heard).is_break());
        (said, heard.0, ended)
    }

    #[test]
    fn a_streamed_text_is_heard_in_pieces_and_ends_with_its_mark() {
        let responses = [
            json!({"text": "For", "object": null, "end_of_stream": false, "in_token": null}),
            json!({"text": "ty", "end_of_stream": false}),
            json!({"text": "", "end_of_stream": true, "in_token": 10, "out_token": 5, "model": "m"}),
        ];
        let (said, heard, ended) = said(&responses);
        assert_eq!((heard.as_str(), ended), ("Forty", true));
        let reply = said.reply(&Expected::Text, PromptUse::default(), 1, Vec::new()).unwrap();
        assert_eq!((reply.raw.as_str(), reply.in_token, reply.model.as_deref()), ("Forty", Some(10), Some("m")));
        assert_eq!(reply.content, ReplyContent::Text);
    }

    #[test]
    fn an_object_is_a_text_that_holds_json() {
        let response = json!({"text": null, "object": "[\"a\", \"b\"]", "end_of_stream": true});
        let (said, _, ended) = said(&[response]);
        assert!(ended);
        let reply = said.reply(&Expected::Json { schema: None }, PromptUse::default(), 1, Vec::new()).unwrap();
        assert_eq!(reply.content, ReplyContent::List(vec![json!("a"), json!("b")]));
        assert_eq!(reply.raw, "[\"a\", \"b\"]");
    }

    #[test]
    fn a_reply_that_is_no_stream_is_its_first_response_whatever_it_says_of_more() {
        for mark in [json!(null), json!(false), json!("yes")] {
            let (mut said, mut heard) = (Said::default(), Heard(String::new()));
            let response = json!({"text": null, "object": ["a"], "end_of_stream": mark, "in_token": "7", "model": 3});
            assert!(said.hear(&response, &mut heard).is_break(), "{mark}");
            let reply = said.reply(&Expected::Json { schema: None }, PromptUse::default(), 1, Vec::new()).unwrap();
            assert_eq!((reply.content, reply.model), (ReplyContent::List(vec![json!("a")]), None));
        }
        let (mut said, mut heard) = (Said::default(), Heard(String::new()));
        assert!(said.hear(&json!({"text": null, "object": null, "end_of_stream": null}), &mut heard).is_break());
        let failed = said.reply(&Expected::Text, PromptUse::default(), 1, Vec::new());
        assert!(matches!(failed, Err(PromptError::Provider { reason, .. }) if reason.contains("neither a text")));
    }

    #[test]
    fn values_are_sent_as_json() {
        let variables = Map::from_iter([("question".to_owned(), json!("why?")), ("context".to_owned(), Value::Null)]);
        assert_eq!(json!(terms(&variables)), json!({"question": "\"why?\"", "context": "null"}));
    }
}
