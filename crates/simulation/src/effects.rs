//! Models and tools that are slow, fail, say nothing, write rubbish or panic. What they are asked is witnessed.

use crate::fault_source::FaultSource;
use crate::process_life::ProcessLife;
use crate::recorder::Recorder;
use serde_json::{Map, Value};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Scope;
use trellis_domain::parts::CallPiece;
use trellis_domain::record::ReplyFormat;
use trellis_orchestrator::contract::play;
use trellis_orchestrator::memory::scripted::{Scripted, ScriptedPrompter, ScriptedTools};
use trellis_orchestrator::ports::{
    BoxFuture, CallLabels, Completion, PromptCall, PromptError, PromptReply, Prompter, ReplySink, ToolCall, ToolError,
    ToolOutput, ToolRunner,
};

/// What a process asks models and tools with.
#[derive(Debug)]
pub(crate) struct Effects {
    process: usize,
    life: Arc<ProcessLife>,
    fault_source: Arc<FaultSource>,
    recorder: Arc<Recorder>,
    prompter: ScriptedPrompter,
    tools: ScriptedTools,
}

fn scene(variables: &Map<String, Value>) -> Value {
    let text = variables.get("question").and_then(Value::as_str).unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

fn reply(call: &PromptCall) -> Result<Scripted, String> {
    let scene = scene(&call.variables);
    if scene["panic"] == true {
        // Without the message that a panic prints: it is meant.
        std::panic::resume_unwind(Box::new("this model makes its caller panic"));
    }
    if scene["rubbish"] == true {
        return Ok(Scripted::Text("{\"name\": \"search\", ```".to_owned()));
    }
    // Whose answer it is can be told, also where two were asked the same.
    let by = call.labels.as_ref().map(|labels| labels.session.to_string()).unwrap_or_default();
    Ok(match play::reply_or_call(call)? {
        Scripted::Text(said) if said.contains("Final Answer: ") => Scripted::Text(format!("{said}, says {by}")),
        said @ (Scripted::Text(_) | Scripted::Parts(_)) => said,
    })
}

/// One of so many parts of the time that a model takes is spent writing.
const WRITING: u32 = 2;

/// A reply in pieces.
#[derive(Debug, Default)]
struct Written(Vec<WrittenPiece>);

#[derive(Debug)]
enum WrittenPiece {
    Format(ReplyFormat),
    Text(String),
    Call(CallPiece),
}

impl WrittenPiece {
    fn say(&self, sink: &mut dyn ReplySink) -> ControlFlow<()> {
        match self {
            Self::Format(format) => {
                sink.begin(*format);
                ControlFlow::Continue(())
            }
            Self::Text(text) => sink.text(text),
            Self::Call(piece) => sink.call(piece),
        }
    }
}

impl ReplySink for Written {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.0.push(WrittenPiece::Text(text.to_owned()));
        ControlFlow::Continue(())
    }

    fn begin(&mut self, format: ReplyFormat) {
        self.0.push(WrittenPiece::Format(format));
    }

    fn call(&mut self, piece: &CallPiece) -> ControlFlow<()> {
        self.0.push(WrittenPiece::Call(piece.clone()));
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {
        self.0.clear();
    }
}

impl Effects {
    pub(crate) fn new(
        process: usize,
        life: Arc<ProcessLife>,
        fault_source: Arc<FaultSource>,
        recorder: Arc<Recorder>,
    ) -> Self {
        let (mut prompter, tools) = (ScriptedPrompter::saying(reply), ScriptedTools::new(play::result));
        prompter.piece = 9;
        Self { process, life, fault_source, recorder, prompter, tools }
    }

    fn note(&self, scope: &Scope, labels: Option<&CallLabels>, text: String, is_of_tool: bool) {
        if let Some(CallLabels { session, step, .. }) = labels {
            self.recorder.called(
                self.process,
                (scope.workspace.clone(), session.clone(), step.clone()),
                text,
                is_of_tool,
            );
        }
    }

    async fn reply_in_time(&self, call: PromptCall, sink: &mut dyn ReplySink) -> Result<PromptReply, PromptError> {
        let time_limit = call.timeout.unwrap_or(Duration::MAX);
        let reply = async {
            let takes = self.fault_source.takes(|faults| faults.model_takes_ms);
            let writing = takes / WRITING;
            tokio::time::sleep(takes.saturating_sub(writing)).await;
            if self.fault_source.strikes(|faults| faults.model_fails) {
                return Err(PromptError::Provider { reason: "simulated".to_owned(), failures: Vec::new() });
            }
            let mut written = Written::default();
            let reply = self.prompter.ask(call, &mut written).await?;
            let between = writing / u32::try_from(written.0.len().max(1)).unwrap_or(1);
            for piece in written.0 {
                tokio::time::sleep(between).await;
                self.life.stand().await;
                if piece.say(sink).is_break() {
                    break;
                }
            }
            Ok(reply)
        };
        let late = |_| Err(PromptError::took_too_long(time_limit, Vec::new()));
        tokio::time::timeout(time_limit, reply).await.unwrap_or_else(late)
    }
}

impl Prompter for Effects {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            self.life.pass().await;
            self.note(&call.scope, call.labels.as_ref(), Value::Object(call.variables.clone()).to_string(), false);
            let reply = self.reply_in_time(call, sink).await;
            self.life.pass().await;
            reply
        })
    }

    fn complete<'a>(
        &'a self,
        call: Completion,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        self.prompter.complete(call, sink)
    }

    fn models(&self) -> Vec<String> {
        self.prompter.models()
    }
}

impl ToolRunner for Effects {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.life.pass().await;
            self.note(&call.scope, call.labels.as_ref(), Value::Object(call.arguments.clone()).to_string(), true);
            tokio::time::sleep(self.fault_source.takes(|faults| faults.tool_takes_ms)).await;
            let output = self.tools.call(call).await;
            self.life.pass().await;
            output
        })
    }
}
