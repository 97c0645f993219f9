//! What a model can do, found out by asking it a few small questions.

use crate::provider::{ContextSize, LastSent, ModelReply, ModelRequest, Provider, ProviderError};
use serde_json::{Map, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::config::{ArgumentItem, PromptReply, ToolItem};
use trellis_domain::parts::ReplyPart;

/// What stands where the id of a prompt stands otherwise.
const PROMPT: &str = "examination";

/// What was found out about one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// As `provider/name`.
    pub model: String,
    /// Whether it answers at all.
    pub is_reached: bool,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub what: &'static str,
    pub can: Can,
    /// How it was seen.
    pub says: String,
    /// What the provider refused meanwhile, in its words.
    pub refused: Vec<String>,
}

/// How far something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Can {
    Yes,
    /// It works, and nothing can be relied on.
    Partly,
    No,
}

/// Asks for a plain reply, one under a schema, and a call of a function; and says how much the model can read.
pub async fn examine(model: &dyn Provider) -> Examination {
    let plain = plain(model).await;
    let is_reached = plain.can != Can::No;
    let mut findings = vec![plain];
    if is_reached {
        findings.push(schema(model).await);
        findings.push(functions(model).await);
        findings.push(context(model).await);
    }
    Examination { model: model.name(), is_reached, findings }
}

async fn plain(model: &dyn Provider) -> Finding {
    let request = request("Reply with the one word moss.", PromptReply::Text);
    let mut pieces = 0_usize;
    let reply = ask(model, &request, &mut pieces).await;
    let finding = |can, says| Finding { what: "reply", can, says, refused: refused(&request) };
    match reply {
        Err(error) => finding(Can::No, error.to_string()),
        Ok(reply) => {
            let stream = if pieces > 1 { "streams" } else { "came at once" };
            let counts = match (reply.in_token, reply.out_token) {
                (Some(read), Some(written)) => format!("{read} tokens read, {written} written"),
                (_, _) => "tokens are not counted".to_owned(),
            };
            finding(Can::Yes, format!("{stream}, {counts}, as {}", reply.model))
        }
    }
}

async fn schema(model: &dyn Provider) -> Finding {
    let schema = json!({
        "type": "object", "required": ["size"], "additionalProperties": false,
        "properties": { "size": { "type": "string", "enum": ["small", "large"] } },
    });
    let request = request(
        "How large is an elephant? Reply with a JSON object whose member size is small or large.",
        PromptReply::Json { schema: Some(schema) },
    );
    let reply = ask(model, &request, &mut 0).await;
    let (can, says) = match reply {
        Err(error) => (Can::No, error.to_string()),
        Ok(reply) if !reply.enforced && was_held_to_json(&request) => {
            (Can::Partly, "not enforced: the provider sees to it that it is JSON, and replies are checked".to_owned())
        }
        Ok(reply) => enforcement(&reply),
    };
    Finding { what: "schema", can, says, refused: refused(&request) }
}

async fn functions(model: &dyn Provider) -> Finding {
    let mut request = request("What is the weather in Marrowby? Look it up.", PromptReply::Text);
    request.tools = Some(Arc::from(vec![Arc::new(weather())]));
    if !model.takes_tools(&request.prompt) {
        let says = "turned off, or refused a moment ago: tools are named in text".to_owned();
        return Finding { what: "functions", can: Can::No, says, refused: Vec::new() };
    }
    let reply = ask(model, &request, &mut 0).await;
    let (can, says) = match reply {
        Err(error) => (Can::No, error.to_string()),
        Ok(reply) if reply.parts.iter().any(|part| matches!(part, ReplyPart::Call { .. })) => enforcement(&reply),
        Ok(_) => (Can::Partly, "offered, and the model wrote a text instead of a call".to_owned()),
    };
    Finding { what: "functions", can, says, refused: refused(&request) }
}

/// Whether JSON was asked for in what was answered, in the place of a schema.
fn was_held_to_json(request: &ModelRequest) -> bool {
    let sent = request.sent.take();
    sent.is_some_and(|sent| sent.parameters.get("response_format").is_some_and(|it| it["type"] == "json_object"))
}

async fn context(model: &dyn Provider) -> Finding {
    let (can, says) = match model.context_size().await {
        Some(ContextSize::Set(tokens)) => (Can::Yes, format!("{tokens} tokens, as it is set")),
        Some(ContextSize::Told(tokens)) => (Can::Yes, format!("{tokens} tokens, as its server says")),
        None => {
            (Can::Partly, "not known; set context-tokens of this model, so that prompts are made to fit".to_owned())
        }
    };
    Finding { what: "context", can, says, refused: Vec::new() }
}

/// Whether the reply had to be what it is.
fn enforcement(reply: &ModelReply) -> (Can, String) {
    match &reply.probe {
        Some(_) if reply.enforced => {
            (Can::Yes, "enforced: asked for what the schema forbids, it kept to the schema".to_owned())
        }
        Some(probe) if !probe.obeyed => {
            let written = &probe.reply;
            (Can::Partly, format!("taken and overlooked: asked for what the schema forbids, it wrote {written}"))
        }
        Some(_) | None => (Can::Partly, "not enforced: replies are checked".to_owned()),
    }
}

async fn ask(model: &dyn Provider, request: &ModelRequest, pieces: &mut usize) -> Result<ModelReply, ProviderError> {
    let turn = model.turn(request).await;
    let mut count = |_: trellis_domain::parts::Piece<'_>| {
        *pieces += 1;
        ControlFlow::Continue(())
    };
    let reply = model.complete(request, &mut count).await;
    if let Ok(ModelReply { in_token: Some(read), out_token: Some(written), .. }) = &reply {
        model.settle(turn, read.saturating_add(*written));
    }
    reply
}

fn refused(request: &ModelRequest) -> Vec<String> {
    request.sent.take_refused().into_iter().map(|form| form.reason).collect()
}

fn request(user: &str, expected: PromptReply) -> ModelRequest {
    ModelRequest {
        system: String::new().into(),
        user: user.to_owned().into(),
        prompt: PROMPT.to_owned(),
        variables: Map::new(),
        expected,
        turns: Vec::new(),
        tools: None,
        labels: None,
        drawn: Vec::new(),
        sent: LastSent::default(),
    }
}

fn weather() -> ToolItem {
    let place = ArgumentItem::new("place", "string", "a town");
    ToolItem::function("weather", "Tells the weather of a place.", vec![place])
}
