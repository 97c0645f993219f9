//! Calls whose tool asks a person for input before it does anything. What it asks for is on record; it is called again with
//! the answer, or with the word that there is none.

use super::{Call, Question, is_chosen};
use crate::contract::{Order, Turn};
use crate::session::Session;
use crate::text::cut;
use serde_json::Value;
use trellis_domain::config::{ToolItem, ToolKind};
use trellis_domain::decision::DecisionKind;
use trellis_domain::document::Payload;
use trellis_domain::input::{Form, GivenInput, InputRequired};
use trellis_domain::park::answer;
use trellis_domain::plain_lines;
use trellis_domain::record::Name;

/// Since these rules a tool may ask for input.
const SINCE: u32 = 5;
/// How many bytes of what a tool says a question shows, and of the fields of a form.
const SHOWN: usize = 2_000;

/// Whether a tool may ask a person for input here.
pub fn may_ask(session: &Session, item: &ToolItem) -> bool {
    item.kind == ToolKind::McpTool && session.revision() >= SINCE
}

/// What the call whose outcome is recorded under this name is made with; none if its tool has asked for nothing yet.
pub fn given_input(session: &Session, outcome: &Name) -> Option<GivenInput> {
    let n = session.inputs(outcome);
    let asked = session.input_required(outcome, n)?;
    let settled = session.settled(session.park_about(&Name::input(outcome, n))?.number)?;
    let content = settled.content.as_ref().filter(|_| is_chosen(settled, answer::ANSWER));
    let answer = |form: &Form| Some(content?.get(&form.name)?.as_object()?.clone());
    let answers = asked.forms.iter().map(|form| (form.name.clone(), answer(form))).collect();
    Some(GivenInput { state: asked.state.as_ref().map(Payload::text).map(str::to_owned), answers })
}

/// The call, if its tool asks for nothing or was answered; otherwise what is done in the place of everything else.
pub(super) fn answered(session: &Session, turn: &Turn, call: Call) -> Result<Call, Order> {
    let n = session.inputs(&call.name);
    let Some(asked) = session.input_required(&call.name, n) else { return Ok(call) };
    let about = Name::input(&call.name, n);
    let Some(park) = session.park_about(&about) else { return Err(question(session, turn, about, asked, call)) };
    match session.settled(park.number) {
        Some(_) => Ok(call),
        None => Err(Order::Close),
    }
}

fn question(session: &Session, turn: &Turn, about: Name, asked: &InputRequired, call: Call) -> Order {
    let question = Question {
        about,
        text: text(asked, &call),
        kind: DecisionKind::ToolInput,
        options: [answer::ANSWER, answer::DECLINE].map(str::to_owned).to_vec(),
        expires: turn.now.plus_ms(call.item.asking.timeout_ms),
        otherwise: answer::DECLINE,
        forms: asked.forms.clone(),
    };
    question.into_order(session, turn, call)
}

/// What is asked, told apart from the tool's own words: every line of them is marked.
fn text(asked: &InputRequired, call: &Call) -> String {
    let mut text = format!("`{}` was called with {} and asks for input, in its own words:", call.tool, call.told());
    for form in &asked.forms {
        if asked.forms.len() > 1 {
            text.push_str("\nForm `");
            text.push_str(&plain_lines(&form.name).replace('\n', " "));
            text.push_str("`:");
        }
        for line in plain_lines(&cut(&form.message, SHOWN)).lines() {
            text.push_str("\n> ");
            text.push_str(line);
        }
        text.push_str("\nFields: ");
        text.push_str(&cut(&fields(form), SHOWN));
    }
    text
}

fn fields(form: &Form) -> String {
    let field = |(name, schema): (&String, &Value)| {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
        let required = if form.requires(name) { ", required" } else { "" };
        format!("{} ({kind}{required})", plain_lines(name).replace('\n', " "))
    };
    let fields: Vec<_> = form.fields().map(field).collect();
    if fields.is_empty() { "none".to_owned() } else { fields.join(", ") }
}
