//! The same script, streamed and not: the same texts, the same end, one end of dialog.

use crate::memory;
use serde_json::json;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::{AgentRequest, AgentResponse};
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::contract::teams::{agent, question};
use trellis_orchestrator::dialog::Dialog;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::PromptCall;
use trellis_patterns::react::IterationNames;

/// The messages of a run, as a listener sees it that was there from the start.
async fn messages(
    script: impl Fn(&PromptCall) -> Result<String, String> + Send + Sync + 'static,
    streaming: bool,
) -> Vec<AgentResponse> {
    let mut prompter = ScriptedPrompter::new(script);
    prompter.piece = 3;
    let bench = Bench::new(memory(), prompter).await;
    let run = bench.ask(1, SomeLimits { max_iterations: Some(4), ..SomeLimits::default() }).await;
    let (items, ()) = tokio::join!(bench.follow(&run), bench.finish(std::slice::from_ref(&run), 1));
    let mut dialog = Dialog::new(run, streaming);
    items.into_iter().flat_map(|item| dialog.project(item)).collect()
}

fn reply(call: &PromptCall) -> String {
    SCRIPT[call.labels.as_ref().unwrap().step.as_iteration().unwrap_or(1) as usize - 1].to_owned()
}

/// Kind, text and flags of each message, pieces of one message joined.
fn outline(messages: &[AgentResponse]) -> Vec<String> {
    let mut lines: Vec<(String, String, String)> = Vec::new();
    for message in messages {
        let id = message.explain_id.clone().unwrap_or_else(|| message.message_id.clone());
        let place = id.split_once("agent:").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, place)| place);
        match lines.last_mut() {
            Some((kind, at, text)) if *kind == message.message_type && at == place && !message.end_of_dialog => {
                text.push_str(&message.content);
            }
            _ => lines.push((message.message_type.clone(), place.to_owned(), message.content.clone())),
        }
    }
    lines.into_iter().map(|(kind, place, text)| format!("{kind} {place} {text}").trim_end().to_owned()).collect()
}

const BOTH: [&str; 15] = [
    "explain",
    "explain pattern-decision",
    "thought i1/thought first",
    "explain i1",
    "observation i1/observation a fact",
    "explain i1/observation",
    "thought i2/thought second",
    "explain i2",
    "observation i2/observation a fact",
    "explain i2/observation",
    "thought i3/thought third",
    "explain i3",
    "observation i3/observation a fact",
    "explain i3/observation",
    "thought i4/thought done",
];

#[tokio::test(flavor = "multi_thread")]
async fn streamed_answers_come_in_pieces_and_an_empty_message_ends_the_dialog() {
    let messages = messages(|call| Ok(reply(call)), true).await;
    let lines = outline(&messages);
    assert_eq!(lines[..15], BOTH);
    assert_eq!(lines[15..], ["answer final It is so.", "explain final", "answer final"]);
    let last = messages.last().unwrap();
    assert!(last.end_of_message && last.end_of_dialog && last.content.is_empty());
    assert_eq!((last.in_token, last.model.as_deref()), (Some(28), Some("scripted")));
    assert!(messages.iter().filter(|m| m.message_type == "answer" && !m.end_of_dialog).all(|m| !m.end_of_message));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_streaming_each_message_is_whole() {
    let messages = messages(|call| Ok(reply(call)), false).await;
    let lines = outline(&messages);
    assert_eq!(lines[..15], BOTH);
    assert_eq!(lines[15..], ["explain final", "answer final It is so."]);
    assert!(messages.iter().filter(|m| m.message_type != "explain").all(|m| m.end_of_message));
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_one_message_ends_the_dialog_and_each_names_message_and_session() {
    for streaming in [true, false] {
        let messages = messages(|call| Ok(reply(call)), streaming).await;
        assert_eq!(messages.iter().filter(|m| m.end_of_dialog).count(), 1);
        assert!(messages.iter().all(|m| !m.session_id.is_empty()));
        assert!(messages.iter().filter(|m| m.message_type != "explain").all(|m| !m.message_id.is_empty()));
        let thoughts: Vec<_> = messages.iter().filter(|m| m.message_type == "thought").collect();
        let ends = thoughts.iter().filter(|m| m.end_of_message).count();
        assert_eq!(ends, 4, "the last piece of each thought says so, and no other");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_model_ends_the_dialog_with_an_error() {
    let messages = messages(|_| Err("connection refused".to_owned()), true).await;
    let last = messages.last().unwrap();
    assert_eq!(last.message_type, "error");
    assert_eq!(last.content, "the model did not answer: connection refused");
    assert_eq!(last.error.as_ref().map(|error| error.kind.as_str()), Some("agent-error"));
    assert!(last.end_of_dialog && last.end_of_message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_still_gives_what_was_found() {
    let script = |call: &PromptCall| {
        let n = call.labels.as_ref().unwrap().step.as_iteration().unwrap_or(0);
        Ok(format!("Thought: more\nAction: search\nArgs: {{\"question\": \"{n}\"}}"))
    };
    for streaming in [true, false] {
        let messages = messages(script, streaming).await;
        let answer: String =
            messages.iter().filter(|m| m.message_type == "answer").map(|m| m.content.as_str()).collect();
        assert!(answer.starts_with("No final answer after 4 iterations,"), "{answer}");
        assert!(messages.last().unwrap().end_of_dialog);
    }
}

/// What subagents bring arrives as what their supervisor observes: whole, in the supervisor's session, and never as the
/// answer; also below another supervisor.
#[tokio::test(flavor = "multi_thread")]
async fn findings_arrive_as_observations() {
    let inner = json!({"team": [[agent("deep")]]});
    let scene = json!({"team": [[agent("first"), {"fail": true}, inner]]});
    for streaming in [true, false] {
        let bench = Bench::play(memory()).await;
        let limits = SomeLimits { max_rounds: Some(1), ..SomeLimits::default() };
        let asked = AgentRequest { streaming, ..question(&scene, "supervisor") };
        let run = bench.request(1, asked, limits).await;
        let (items, ()) = tokio::join!(bench.follow(&run), bench.finish(std::slice::from_ref(&run), 2));
        let mut dialog = Dialog::new(run.clone(), streaming);
        let messages: Vec<_> = items.into_iter().flat_map(|item| dialog.project(item)).collect();
        let findings: Vec<_> = messages.iter().filter(|message| message.message_id.contains("/finding/")).collect();
        let of_root = |message: &&&AgentResponse| message.session_id == run.as_str();
        let told: Vec<_> = findings.iter().filter(of_root).map(|message| message.content.as_str()).collect();
        assert_eq!((told.len(), told[0]), (2, "first"), "who brought nothing is not heard");
        assert!(told[1].contains("finding 0"), "{told:?}");
        let below: Vec<_> = findings.iter().filter(|message| !of_root(message)).map(|m| m.content.as_str()).collect();
        assert_eq!(below, ["deep"]);
        assert!(findings.iter().all(|message| message.message_type == "observation" && message.end_of_message));
        let ids: std::collections::BTreeSet<_> = findings.iter().map(|message| &message.message_id).collect();
        assert_eq!(ids.len(), 3);
        let answers = messages.iter().filter(|message| message.message_type == "answer");
        assert!(answers.into_iter().all(|message| message.session_id == run.as_str()));
    }
}
