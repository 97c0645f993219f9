//! What a caller sees of plans and teams, and what happens around them.

use crate::memory;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::{AgentRequest, AgentResponse, AgentStep};
use trellis_domain::run::Termination;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, hurried, question, silent};
use trellis_orchestrator::contract::{play, trouble};
use trellis_orchestrator::dialog::Dialog;
use trellis_orchestrator::hub::Item;
use trellis_orchestrator::memory::scripted::{ScriptedPrompter, ScriptedTools};
use trellis_orchestrator::orchestrator::{Orchestrator, Ports};
use trellis_orchestrator::ports::{BoxFuture, PromptCall, PromptError, PromptReply, Prompter, ReplySink};
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};

/// The messages that a caller gets, in one of the two modes.
async fn dialog(scene: &Value, pattern: &str, streaming: bool, limits: SomeLimits) -> (String, Vec<AgentResponse>) {
    let mut prompter = ScriptedPrompter::new(play::reply);
    prompter.piece = 3;
    let bench = Bench::with_tools(memory(), prompter, ScriptedTools::new(play::result)).await;
    let request = AgentRequest { streaming, ..question(scene, pattern) };
    let run = bench.request(1, request, limits).await;
    let workers = Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions::default());
    let (stop, stopped) = tokio::sync::watch::channel(None);
    let serving = tokio::spawn(async move { workers.run(stopped).await });
    let mut dialog = Dialog::new(run.clone(), streaming);
    let messages: Vec<_> = bench.follow(&run).await.into_iter().flat_map(|item| dialog.project(item)).collect();
    stop.send_replace(Some(Stop::Drain));
    serving.await.unwrap();
    assert!(dialog.is_over());
    (run.as_str().to_owned(), messages)
}

fn all_scenes() -> Vec<(Value, &'static str, SomeLimits)> {
    let mut scenes: Vec<_> =
        trouble::scenes().into_iter().map(|(scene, pattern)| (scene, pattern, SomeLimits::default())).collect();
    scenes.push((json!({"team": [[agent("a"), silent()]]}), "supervisor", hurried(60)));
    scenes.push((agent("alone"), "react", SomeLimits::default()));
    scenes
}

#[tokio::test(flavor = "multi_thread")]
async fn every_dialog_has_one_end_and_every_message_its_own_name() {
    for (scene, pattern, limits) in all_scenes() {
        for streaming in [true, false] {
            let (run, messages) = dialog(&scene, pattern, streaming, limits.clone()).await;
            let ends: Vec<_> = messages.iter().filter(|message| message.end_of_dialog).collect();
            assert_eq!(ends.len(), 1, "{pattern}");
            assert!(messages.last().unwrap().end_of_dialog, "the end is the last message");
            assert!(messages.iter().all(|message| !message.session_id.is_empty()), "each names its session");
            let mut kinds: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
            for message in messages.iter().filter(|message| message.message_type != "explain") {
                assert!(!message.message_id.is_empty(), "{message:?}");
                kinds.entry(&message.message_id).or_default().insert((&message.message_type, &message.session_id));
            }
            assert!(kinds.values().all(|of| of.len() == 1), "no two messages share an id: {kinds:?}");
            let mut finished: BTreeMap<&str, u32> = BTreeMap::new();
            for message in messages.iter().filter(|message| message.end_of_message) {
                *finished.entry(&message.message_id).or_default() += 1;
            }
            assert!(finished.values().all(|count| *count == 1), "a message ends once: {finished:?}");
            let answers = messages.iter().filter(|message| message.message_type == "answer");
            assert!(answers.into_iter().all(|message| message.session_id == run), "subagents do not answer the caller");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_modes_say_the_same() {
    let whole = |messages: &[AgentResponse]| {
        let mut texts: BTreeMap<(String, String), String> = BTreeMap::new();
        for message in messages.iter().filter(|message| message.message_type != "explain") {
            let place = (message.message_type.clone(), message.message_id.clone());
            texts.entry(place).or_default().push_str(&message.content);
        }
        let explained: BTreeSet<_> = messages.iter().filter_map(|message| message.explain_id.clone()).collect();
        (texts, explained)
    };
    for (scene, pattern, limits) in all_scenes() {
        let (_, streamed) = dialog(&scene, pattern, true, limits.clone()).await;
        let (_, plain) = dialog(&scene, pattern, false, limits.clone()).await;
        let (mut streamed, plain) = (whole(&streamed), whole(&plain));
        // Whether a request streams is part of it, so the ids of the two runs differ only in the session.
        streamed.0.retain(|_, text| !text.is_empty());
        let count = |texts: &BTreeMap<(String, String), String>| {
            let mut all: Vec<_> = texts.iter().map(|((kind, _), text)| (kind.clone(), text.clone())).collect();
            all.sort();
            all
        };
        assert_eq!(count(&streamed.0), count(&plain.0), "{pattern}");
        assert_eq!(streamed.1.len(), plain.1.len(), "the same events");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisors_caller_hears_goals_findings_and_one_answer() {
    let scene = json!({"team": [[agent("a"), agent("b")]]});
    let (run, messages) = dialog(&scene, "supervisor", true, SomeLimits::default()).await;
    let prefix = format!("urn:trustgraph:agent:{run}");
    let own = messages.iter().filter(|message| message.session_id == run);
    let mut lines: Vec<String> = Vec::new();
    for message in own {
        let place = message.explain_id.as_deref().unwrap_or(&message.message_id);
        let line = format!("{} {}", message.message_type, place.strip_prefix(&prefix).unwrap_or(place));
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    let expected = [
        "explain ",
        "explain /pattern-decision",
        "thought /decompose/thought",
        "explain /decompose",
        "observation /finding/0",
        "observation /finding/1",
        "explain /finding/0",
        "explain /finding/1",
        "thought /review/1/thought",
        "answer /synthesis",
        "explain /synthesis",
        "answer /synthesis",
    ];
    assert_eq!(lines, expected);
    assert_eq!(messages.last().unwrap().in_token, Some(7 * 7), "the end tells what the whole run cost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plans_caller_hears_the_plan_each_step_and_one_answer() {
    let scene = json!({"plan": [{"say": "zero", "tool": true}, {"say": "one", "needs": [0]}]});
    let (run, messages) = dialog(&scene, "plan-then-execute", false, SomeLimits::default()).await;
    let prefix = format!("urn:trustgraph:agent:{run}");
    let line = |message: &AgentResponse| {
        let place = message.explain_id.as_deref().unwrap_or(&message.message_id);
        format!("{} {}", message.message_type, place.strip_prefix(&prefix).unwrap_or(place))
    };
    let expected = [
        "explain ",
        "explain /pattern-decision",
        "thought /plan/thought",
        "explain /plan",
        "thought /step/0/thought",
        "observation /step/0",
        "explain /step/0",
        "thought /step/1/thought",
        "observation /step/1",
        "explain /step/1",
        "explain /synthesis",
        "answer /synthesis",
    ];
    assert_eq!(messages.iter().map(line).collect::<Vec<_>>(), expected);
}

/// A prompter that takes its time with some questions.
#[derive(Debug)]
struct Slow {
    inner: ScriptedPrompter,
    word: &'static str,
    delay: Duration,
}

impl Prompter for Slow {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            if call.variables["question"].as_str().is_some_and(|question| question.contains(self.word))
                && call.id == "agent-react"
            {
                tokio::time::sleep(self.delay).await;
            }
            self.inner.ask(call, sink).await
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_too_late_is_recorded_and_changes_nothing() {
    let first = Bench::play(memory()).await;
    let slow = Slow { inner: ScriptedPrompter::new(play::reply), word: "tardy", delay: Duration::from_millis(300) };
    let ports = Ports { prompter: Arc::new(slow), ..first.orchestrator.ports.clone() };
    let orchestrator = Arc::new(Orchestrator::new(ports, first.orchestrator.options.clone()));
    let bench = Bench { orchestrator, ..first };
    // The second subagent answers after the fan-in has gone on, and while the third round of work is under way.
    let scene = json!({"team": [[agent("a"), {"answer": "tardy"}], [{"team": [[{"silent": true}, agent("b")]]}]]});
    let run = bench.request(1, question(&scene, "supervisor"), hurried(150)).await;
    let workers = Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions::default());
    let (stop, stopped) = tokio::sync::watch::channel(None);
    let serving = tokio::spawn(async move { workers.run(stopped).await });
    let items = bench.follow(&run).await;
    let late = run.child(1, 1);
    let mut played = Played::of(&bench, run.clone()).await;
    // The late reply may still be on its way when the answer is there.
    for _ in 0..100 {
        if played.records.iter().any(|record| record.header.late) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        played = Played::of(&bench, run.clone()).await;
    }
    stop.send_replace(Some(Stop::Abandon));
    serving.await.unwrap();
    played.keeps_the_promises();
    let of_late = played.records.iter().filter(|record| record.header.session == late);
    let names: Vec<_> = of_late.map(|record| (record.header.name.as_str(), record.header.late)).collect();
    assert_eq!(names, [("session", false), ("pattern-decision", false), ("end", false), ("i1", true)]);
    assert_eq!(played.joins()[0].members[1].reason, Termination::Timeout);
    assert!(!played.answer().contains("tardy"), "{}", played.answer());
    let ended = items.iter().position(|item| matches!(item, Item::Record(record) if record.header.session == late && record.body.as_ended().is_some()));
    let spoke = |item: &Item| matches!(item, Item::Text { session, .. } if *session == late);
    assert!(!items[ended.unwrap()..].iter().any(spoke), "nothing of it streams after its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_remembers_its_questions_and_answers() {
    let contexts: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&contexts);
    let prompter = ScriptedPrompter::new(move |call| {
        heard.lock().unwrap().push(call.variables["context"].as_str().unwrap_or_default().to_owned());
        play::reply(call)
    });
    let bench = Bench::with_tools(memory(), prompter, ScriptedTools::new(play::result)).await;
    for (n, conversation) in [(1, "c"), (2, "c"), (3, "other"), (4, "")] {
        let scene = json!({"answer": format!("answer {n}")});
        let request = AgentRequest { conversation_id: conversation.to_owned(), ..question(&scene, "react") };
        let run = bench.request(n, request, SomeLimits::default()).await;
        bench.finish(std::slice::from_ref(&run), 1).await;
    }
    let contexts = contexts.lock().unwrap();
    let first = "Earlier in this conversation:\n\nQuestion: {\"answer\":\"answer 1\"}\nAnswer: answer 1";
    assert_eq!(*contexts, ["", first, "", ""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_on_every_node_of_a_team() {
    let bench = Bench::play(memory()).await;
    let scene = json!({"team": [[agent("a"), {"plan": [{"say": "zero", "tool": true}]}]]});
    let request = AgentRequest { conversation_id: "c-7".to_owned(), ..question(&scene, "supervisor") };
    let run = bench.request(1, request, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run).await;
    let quads = trellis_patterns::project(&played.records);
    let subjects: BTreeSet<_> = quads.iter().map(|quad| quad.s.text().to_owned()).collect();
    let tagged = |quad: &&trellis_domain::rdf::Quad| {
        quad.p.text() == trellis_provenance::vocabulary::trellis::CONVERSATION_ID && quad.o.text() == "c-7"
    };
    let marked: BTreeSet<_> = quads.iter().filter(tagged).map(|quad| quad.s.text().to_owned()).collect();
    assert_eq!(subjects.difference(&marked).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(trellis_patterns::documents(&played.records).iter().all(|found| found.conversation.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_that_a_caller_brings_along_are_context_and_not_iterations() {
    let bench = Bench::play(memory()).await;
    let step = AgentStep { action: "search".to_owned(), observation: "old fact".to_owned(), ..AgentStep::default() };
    let scene = json!({"tools": 3, "answer": "a"});
    let request = AgentRequest { history: vec![step.clone(), step], pattern: String::new(), ..question(&scene, "") };
    let run = bench.request(1, request, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    let names: Vec<_> = played.records.iter().map(|record| record.header.name.as_str()).collect();
    // The play counts the steps that it is shown: two were brought, so one more is enough.
    assert_eq!(names, ["session", "pattern-decision", "i1", "i1/observation", "i2", "end"]);
    let routed = played.records.iter().find_map(|record| record.body.as_routed()).unwrap();
    assert_eq!(routed.pattern, "react", "routing is skipped");
}
