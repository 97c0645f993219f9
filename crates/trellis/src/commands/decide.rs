//! Answering a question that a run waits for.

use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::person;
use crate::show::{print_json, print_line};
use serde_json::json;
use trellis_domain::SessionId;
use trellis_domain::record::{Core, Name};
use trellis_orchestrator::Answering;

/// What somebody has answered, as it was typed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypedDecision<'a> {
    pub(crate) run: &'a str,
    pub(crate) choice: &'a str,
    pub(crate) reason: Option<&'a str>,
    pub(crate) arguments: Option<&'a str>,
    pub(crate) result: Option<&'a str>,
    pub(crate) content: Option<&'a str>,
}

pub(crate) async fn run(
    desk: &Desk,
    global: &Global,
    wish: TypedDecision<'_>,
    question: Option<&str>,
) -> Result<Exit, Failure> {
    let run = desk.find_run(wish.run).await?;
    let object = |flag: &str, text: Option<&str>| {
        let wrong = |error| Failure::usage(format!("{flag} must be a JSON object: {error}"));
        text.map(serde_json::from_str).transpose().map_err(wrong)
    };
    let answer = Answering {
        question: question.map(named).transpose()?,
        choice: wish.choice.to_owned(),
        reason: wish.reason.map(str::to_owned),
        arguments: object("--arguments", wish.arguments)?,
        result: wish.result.map(str::to_owned),
        content: object("--content", wish.content)?,
        by: person::caller(),
    };
    desk.decide(&run, &answer).await?;
    match global.output {
        Output::Json => print_json(&json!({"run_id": run.as_str(), "choice": wish.choice}).to_string())?,
        Output::Text | Output::Ndjson | Output::Csv => {
            let goes_on = if matches!(desk, Desk::Local(_)) { "; `trellis resume` goes on with it" } else { "" };
            print_line(&format!("decided: {} in run {run}{goes_on}", wish.choice))?;
        }
    }
    Ok(Exit::Ok)
}

/// A question by its session and number, such as `SESSION/park/1`.
fn named(text: &str) -> Result<(SessionId, u32), Failure> {
    let wrong = || Failure::usage(format!("--question must be such as `SESSION/park/1`, found `{text}`"));
    let (session, park) = text.split_once("/park/").ok_or_else(wrong)?;
    let Some(Core::Park(number)) = Name::new(format!("park/{park}")).core() else { return Err(wrong()) };
    Ok((SessionId::new(session).map_err(|_| wrong())?, number))
}
