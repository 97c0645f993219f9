//! What a model is asked, in the form that this model takes.

use crate::models::Wishes;
use crate::prompt_text::PromptText;
use crate::provider::{LastSent, ModelRequest, RefusedForm, Sent};
use crate::reply;
use crate::said::said;
use crate::template::Templates;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Hash;
use trellis_domain::config::{PromptReply as Expected, Settings, ToolItem};
use trellis_domain::document::Document;
use trellis_domain::parts::{ChatTurn, ReplyPart};
use trellis_domain::record::{FailedAttempt, PromptUse, ReplyFormat};
use trellis_orchestrator::permits::{CallCapacity, Permit, Requester};
use trellis_orchestrator::ports::{CallLabels, Completion, PromptCall, PromptError, PromptNeed};
use trellis_patterns::react::conversation::in_words;

/// The variable that tells a template that tools are offered as functions.
const NATIVE_TOOLS: &str = "native_tools";

/// So much of a question stands below each result.
const LONGEST_REPEATED: usize = 500;

/// One prompt, on its way to a model.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) request: ModelRequest,
    pub(crate) timeout: Option<Duration>,
    /// Who is asked, as `provider/name`; none before that is known.
    pub(crate) model: Option<String>,
    settings: Arc<Settings>,
    template: Option<Hash>,
    /// What the model may call, as functions or in text.
    tools: Option<Arc<[Arc<ToolItem>]>>,
    /// What was said after the prompt, as it was said.
    turns: Vec<ChatTurn>,
    /// What the text is made of, if another model may need another text.
    variables: Option<Map<String, Value>>,
    requester: Requester,
    /// Room for the first attempt, if it has been waited for already.
    permit: Permit,
}

impl Asking {
    /// A prompt, rendered in text form. What it was rendered with is only kept for models that read it.
    pub(crate) fn of_prompt(templates: &Templates, call: PromptCall) -> Result<Self, PromptError> {
        let PromptCall { scope, settings, id, variables, schema, turns, tools, timeout, labels, permit } = call;
        let Some(template) = settings.prompts.get(&id) else { return Err(PromptError::UnknownPrompt { id }) };
        let expected = reply::expected(&template.reply, schema);
        let (system, user) = render(templates, &settings, &id, &variables)?;
        let words =
            turns_in_words(templates, &settings, &id, &variables, (&turns, tools.as_deref().unwrap_or_default()))?;
        let template = Some(template.hash);
        let requester = Requester {
            workspace: scope.workspace,
            run: labels.as_ref().map(|labels: &CallLabels| labels.run.clone()),
        };
        let drawn = drawn(&variables);
        let request = ModelRequest {
            system,
            user,
            prompt: id,
            variables: Map::new(),
            expected,
            turns: words,
            tools: None,
            labels,
            drawn,
            sent: LastSent::default(),
        };
        let variables = Some(variables);
        Ok(Self { request, timeout, model: None, settings, template, tools, turns, variables, requester, permit })
    }

    /// A text that needs no template.
    pub(crate) fn of_text(call: Completion) -> Self {
        let Completion { scope, settings, system, prompt: user, schema, json } = call;
        let (system, user) = (system.unwrap_or_default().into(), user.into());
        let expected = if json || schema.is_some() { Expected::Json { schema } } else { Expected::Text };
        let (prompt, variables) = (Completion::ID.to_owned(), Map::new());
        let sent = LastSent::default();
        let turns = Vec::new();
        let request = ModelRequest {
            system,
            user,
            prompt,
            variables,
            expected,
            turns,
            tools: None,
            labels: None,
            drawn: Vec::new(),
            sent,
        };
        let requester = Requester { workspace: scope.workspace, run: None };
        Self {
            request,
            timeout: None,
            model: None,
            settings,
            template: None,
            tools: None,
            turns: Vec::new(),
            variables: None,
            requester,
            permit: Permit::default(),
        }
    }

    /// What configuration says about the models of this prompt.
    pub(crate) fn wishes(&self) -> Wishes<'_> {
        let wish = self.request.labels.as_ref().map(CallLabels::wish).unwrap_or_default();
        Wishes::of(PromptNeed { settings: &self.settings, id: &self.request.prompt, wish })
    }

    /// Waits for the turn of this call at a model that has room for so many.
    pub(crate) async fn enter(&mut self, capacity: Option<&Arc<CallCapacity>>) -> Permit {
        let waited_for = std::mem::take(&mut self.permit);
        match capacity {
            Some(capacity) if !waited_for.is_in(capacity) => capacity.enter(self.requester.clone()).await,
            Some(_) | None => waited_for,
        }
    }

    /// Calls may wait long, and real models see only the text: what no model reads any more is dropped.
    pub(crate) fn forget_variables(&mut self, are_read: bool, may_take_tools: bool) {
        let differs = |text: &str| text.contains(NATIVE_TOOLS);
        let prompt = self.settings.prompts.get(&self.request.prompt);
        let is_needed = may_take_tools
            && self.tools.is_some()
            && (prompt.is_some_and(|prompt| prompt.next.is_some() || differs(&prompt.text))
                || differs(&self.settings.system_prompt));
        match (are_read, is_needed) {
            (true, true) => self.request.variables = self.variables.clone().unwrap_or_default(),
            (true, false) => self.request.variables = self.variables.take().unwrap_or_default(),
            (false, true) => {}
            (false, false) => self.variables = None,
        }
    }

    /// Whether the reply chooses a tool.
    pub(crate) fn offers_tools(&self) -> bool {
        self.tools.is_some()
    }

    /// Makes the request fit a model that takes tools, or one that writes which one it wants.
    pub(crate) fn offer_tools(&mut self, templates: &Templates, native: bool) -> Result<(), PromptError> {
        if self.request.tools.is_some() == native {
            return Ok(());
        }
        self.request.tools = self.tools.clone().filter(|_| native);
        let said = (&self.turns[..], self.tools.as_deref().unwrap_or_default());
        self.request.turns = if native { self.turns.clone() } else { in_words(said.0, said.1) };
        let Some(variables) = &mut self.variables else { return Ok(()) };
        variables.insert(NATIVE_TOOLS.to_owned(), native.into());
        let (system, user) = render(templates, &self.settings, &self.request.prompt, variables)?;
        if !native {
            self.request.turns = turns_in_words(templates, &self.settings, &self.request.prompt, variables, said)?;
        }
        (self.request.system, self.request.user) = (system, user);
        Ok(())
    }

    /// How the model is asked to say which tool it wants, if it is.
    pub(crate) fn format(&self) -> Option<ReplyFormat> {
        let format = if self.request.tools.is_some() { ReplyFormat::NativeTools } else { ReplyFormat::Text };
        self.tools.as_ref().map(|_| format)
    }

    /// For the record of the call, once for each time that it was sent.
    pub(crate) fn record(&self) -> PromptUse {
        self.record_of(self.request.sent.take())
    }

    /// The forms that the model refused in the last call, for the record.
    pub(crate) fn refused(&self, model: &str) -> Vec<FailedAttempt> {
        let attempt = |RefusedForm { reason, ms, sent }: RefusedForm| FailedAttempt {
            reason,
            ms,
            too_long: false,
            model: Some(model.to_owned()),
            asked: Some(Box::new(self.record_of(sent.map(|sent| *sent)))),
        };
        self.request.sent.take_refused().into_iter().map(attempt).collect()
    }

    /// The hash of what is asked, whoever is.
    pub(crate) fn said(&self) -> Hash {
        said(&self.request, [&self.request.system.whole(), &self.request.user.whole()])
    }

    fn record_of(&self, sent: Option<Sent>) -> PromptUse {
        let (system, user) = (self.request.system.whole(), self.request.user.whole());
        let texts = [&*system, &*user];
        let usual = PromptUse {
            id: self.request.prompt.clone(),
            template: self.template,
            said: Some(said(&self.request, texts)),
            model: self.model.clone(),
            format: self.format(),
            ..PromptUse::default()
        };
        let Some(sent) = sent else {
            return PromptUse { sent: Some(hash_of(texts, &self.request.turns)), ..usual };
        };
        let request = sent.body.and_then(Document::stored);
        PromptUse { sent: Some(sent.hash), parameters: sent.parameters, request, ..usual }
    }
}

/// What stands in the texts of this run only. Sessions that have no mark of their own are shown a word in its place.
fn drawn(variables: &Map<String, Value>) -> Vec<String> {
    const SHORTEST: usize = 6;
    let values = ["mark", "today"].into_iter().filter_map(|name| variables.get(name)?.as_str());
    values.filter(|value| value.len() >= SHORTEST).map(str::to_owned).collect()
}

/// Of everything that is said in a request: its own texts, and the turns after them.
fn hash_of(texts: [&str; 2], turns: &[ChatTurn]) -> Hash {
    let mut said: Vec<_> = texts.map(Cow::Borrowed).into();
    for turn in turns {
        match turn {
            ChatTurn::User { text } => said.extend(["user".into(), text.text().into()]),
            ChatTurn::ToolResult { function, text, .. } => said.extend([function.into(), text.text().into()]),
            ChatTurn::Assistant { parts } => said.extend(parts.iter().map(|part| match part {
                ReplyPart::Thought { text, .. } | ReplyPart::Text { text } | ReplyPart::Refusal { text } => {
                    text.text().into()
                }
                ReplyPart::Call { function, arguments, .. } => format!("{function}({})", arguments.text()).into(),
            })),
        }
    }
    Hash::of_parts(said.iter().map(|part| part.as_bytes()))
}

/// What was said after the prompt in words, each result with what the prompt says below it.
fn turns_in_words(
    templates: &Templates,
    settings: &Settings,
    id: &str,
    variables: &Map<String, Value>,
    (turns, tools): (&[ChatTurn], &[Arc<ToolItem>]),
) -> Result<Vec<ChatTurn>, PromptError> {
    let mut words = in_words(turns, tools);
    let next = settings.prompts.get(id).and_then(|prompt| prompt.next.as_ref()).filter(|_| !words.is_empty());
    let Some(next) = next else { return Ok(words) };
    let wrong = |reason| PromptError::Template { id: id.to_owned(), reason: format!("in `next`: {reason}") };
    // A long question would be sent again with every result.
    let question = variables.get("question").and_then(Value::as_str).filter(|text| text.len() > LONGEST_REPEATED);
    let variables = match question {
        Some(long) => {
            let mut shortened = variables.clone();
            shortened.insert("question".to_owned(), long[..long.floor_char_boundary(LONGEST_REPEATED)].into());
            Cow::Owned(shortened)
        }
        None => Cow::Borrowed(variables),
    };
    let next = templates.render(next, &variables).map_err(wrong)?;
    // What stands before the first reply is a part of the prompt.
    for turn in words.iter_mut().skip_while(|turn| matches!(turn, ChatTurn::User { .. })) {
        if let ChatTurn::User { text } = turn {
            *text = format!("{}\n\n{next}", text.text()).into();
        }
    }
    Ok(words)
}

fn render(
    templates: &Templates,
    settings: &Settings,
    id: &str,
    variables: &Map<String, Value>,
) -> Result<(PromptText, PromptText), PromptError> {
    let wrong = |reason| PromptError::Template { id: id.to_owned(), reason };
    let user = match settings.prompts.get(id) {
        Some(prompt) => templates.render_known(prompt.hash, &prompt.text, variables).map_err(wrong)?,
        None => PromptText::from(""),
    };
    let system = templates.render(&settings.system_prompt, variables);
    let system = system.map_err(|reason| wrong(format!("prompt/system, which stands in front of it: {reason}")))?;
    Ok((system, user))
}
