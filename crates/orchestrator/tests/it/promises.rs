//! What is promised to callers of plans and teams, asserted on what they hear and on what stays behind.

use crate::memory;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::{AgentRequest, AgentResponse, AgentStep, message_type};
use trellis_domain::rdf::Quad;
use trellis_domain::record::Name;
use trellis_domain::run::{RunState, Termination};
use trellis_domain::{Caller, RunId, Timestamp, Workspace};
use trellis_orchestrator::contract::runs::{Bench, StorePorts};
use trellis_orchestrator::contract::teams::{Played, agent, hurried, question, silent};
use trellis_orchestrator::contract::{play, trouble};
use trellis_orchestrator::dialog::Dialog;
use trellis_orchestrator::hub::Item;
use trellis_orchestrator::memory::scripted::{ScriptedPrompter, ScriptedTools};
use trellis_orchestrator::orchestrator::{Orchestrator, Ports};
use trellis_orchestrator::ports::{
    BoxFuture, PromptCall, PromptError, PromptReply, Prompter, ReplySink, all_due_turns,
};
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};
use trellis_patterns::react::IterationNames;
use trellis_patterns::{documents, project};
use trellis_provenance::{Step, iri, trace};

/// A bench whose model may say something else than the play.
pub(crate) async fn bench(
    script: impl Fn(&PromptCall) -> Result<String, String> + Send + Sync + 'static,
    items: &[(&str, &str, Value)],
) -> Bench {
    let mut prompter = ScriptedPrompter::new(script);
    prompter.piece = 3;
    let bench = Bench::with_tools(memory(), prompter, ScriptedTools::new(play::result)).await;
    put(&bench, items).await;
    bench
}

pub(crate) async fn put(bench: &Bench, items: &[(&str, &str, Value)]) {
    let item = |(kind, key, value): &(&str, &str, Value)| StoredItem {
        kind: (*kind).to_owned(),
        key: (*key).to_owned(),
        value: value.to_string(),
    };
    let items = items.iter().map(item).collect();
    bench.orchestrator.ports.config.put(&Workspace::default(), items, Caller::program()).await.unwrap();
}

/// A model that is dead for these prompts and plays the others.
fn dead_for(prompts: &'static [&'static str]) -> impl Fn(&PromptCall) -> Result<String, String> {
    |call| if prompts.contains(&call.id.as_str()) { Err("connection refused".to_owned()) } else { play::reply(call) }
}

/// A run that goes on in the background until it is told to stop.
pub(crate) struct Serving {
    stop: watch::Sender<Option<Stop>>,
    workers: tokio::task::JoinHandle<()>,
}

impl Serving {
    pub(crate) fn start(bench: &Bench, options: WorkerOptions) -> Self {
        let workers = Workers::new(Arc::clone(&bench.orchestrator), options);
        let (stop, stopped) = watch::channel(None);
        Self { stop, workers: tokio::spawn(async move { workers.run(stopped).await }) }
    }

    pub(crate) async fn stop(self, how: Stop) {
        self.stop.send_replace(Some(how));
        self.workers.await.unwrap();
    }
}

/// What the caller of a run hears, to the end.
async fn heard(bench: &Bench, run: &RunId, streaming: bool) -> Vec<AgentResponse> {
    let serving = Serving::start(bench, WorkerOptions::default());
    let mut dialog = Dialog::new(run.clone(), streaming);
    let messages = bench.follow(run).await.into_iter().flat_map(|item| dialog.project(item)).collect();
    serving.stop(Stop::Drain).await;
    assert!(dialog.is_over());
    messages
}

async fn asked(bench: &Bench, request: AgentRequest, limits: SomeLimits) -> (RunId, Vec<AgentResponse>) {
    let streaming = request.streaming;
    let run = bench.request(1, request, limits).await;
    let messages = heard(bench, &run, streaming).await;
    (run, messages)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_or_a_team_that_fails_ends_the_dialog_once_and_with_the_reason() {
    let failing_step = json!({"plan": [{"say": "zero", "tool": true, "fail": true}]});
    let failing_team = json!({"team": [[{"fail": true}, {"fail": true}]]});
    let shallow = SomeLimits { max_depth: Some(0), ..SomeLimits::default() };
    let usual = SomeLimits::default();
    let ends: [(&'static [&'static str], Value, &str, &SomeLimits); 7] = [
        (&["agent-react"], agent("a"), "react", &usual),
        (&["plan-create"], failing_step.clone(), "plan-then-execute", &usual),
        (&["plan-synthesise"], failing_step.clone(), "plan-then-execute", &usual),
        (&["plan-create", "plan-step-execute", "plan-synthesise"], failing_step, "plan-then-execute", &usual),
        (&["supervisor-decompose"], failing_team.clone(), "supervisor", &usual),
        (&["supervisor-synthesise"], failing_team.clone(), "supervisor", &usual),
        (&[], failing_team, "supervisor", &shallow),
    ];
    for (dead, scene, pattern, limits) in ends {
        for streaming in [true, false] {
            let bench = bench(dead_for(dead), &[]).await;
            let request = AgentRequest { streaming, ..question(&scene, pattern) };
            let (run, mut messages) = asked(&bench, request, limits.clone()).await;
            let last = messages.pop().unwrap();
            assert_eq!((last.end_of_dialog, last.end_of_message), (true, true), "{dead:?}: {last:?}");
            assert_eq!((last.message_type.as_str(), last.session_id.as_str()), ("error", run.as_str()));
            let error = last.error.as_ref().unwrap();
            assert_eq!((error.kind.as_str(), &error.message), ("agent-error", &last.content));
            assert!(!last.content.is_empty(), "{dead:?}");
            assert!(messages.iter().all(|message| !message.end_of_dialog && message.error.is_none()), "{dead:?}");
            assert!(messages.iter().all(|message| message.message_type != "answer"), "{dead:?}");
            Played::of(&bench, run).await.keeps_the_promises();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_that_fails_in_any_way_never_ends_the_callers_dialog() {
    let panics = |call: &PromptCall| {
        let scene = call.variables["question"].as_str().unwrap_or_default();
        assert!(!(call.id == "agent-react" && scene.contains("a bug")), "a bug that only this goal finds");
        play::reply(call)
    };
    let endless = json!({"tools": 99});
    let nested = json!({"team": [[{"fail": true}, {"answer": "a bug"}]]});
    let broken_plan = json!({"fail": true, "plan": []});
    let team =
        [agent("fine"), json!({"fail": true}), json!({"answer": "a bug"}), endless, nested, broken_plan, silent()];
    for streaming in [true, false] {
        let bench = bench(panics, &[]).await;
        let request = AgentRequest { streaming, ..question(&json!({ "team": [team] }), "supervisor") };
        let limits = SomeLimits { max_iterations: Some(4), max_rounds: Some(1), ..hurried(1_500) };
        let (run, mut messages) = asked(&bench, request, limits).await;
        let last = messages.pop().unwrap();
        assert_eq!((last.message_type.as_str(), last.end_of_dialog, &last.error), ("answer", true, &None));
        assert_eq!(last.session_id, run.as_str());
        for message in &messages {
            assert!(!message.end_of_dialog && message.error.is_none(), "{message:?}");
            assert_ne!(message.message_type, "error", "{message:?}");
        }
        let played = Played::of(&bench, run).await;
        played.keeps_the_promises();
        let reasons: Vec<_> = played.joins().last().unwrap().members.iter().map(|member| member.reason).collect();
        let expected = [
            Termination::FinalAnswer,
            Termination::Error,
            Termination::Error,
            Termination::MaxIterations,
            // A team that brought nothing says so, and that is an answer.
            Termination::SubagentsPartial,
            Termination::Error,
            Termination::Timeout,
        ];
        assert_eq!(reasons, expected);
        assert_eq!(played.end().missing, [1, 2, 3, 5, 6]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_rests_on_no_result_of_any_tool_is_a_partial_one() {
    let failing = json!({"tools": 2, "answer": "perhaps"});
    let known = json!({"answer": "known"});
    let ends = [
        (failing.clone(), "react", Termination::AnswerPartial),
        (failing.clone(), "reflexion", Termination::AnswerPartial),
        (known.clone(), "react", Termination::FinalAnswer),
        (json!({"plan": [{"say": "zero", "tool": true}]}), "plan-then-execute", Termination::PlanPartial),
        (json!({"team": [[failing, failing]]}), "supervisor", Termination::SubagentsPartial),
        (json!({"team": [[failing, known]]}), "supervisor", Termination::SubagentsComplete),
        (json!({"to": "agent:react", "ask": failing}), "dispatch", Termination::SubagentsPartial),
    ];
    for (scene, pattern, reason) in ends {
        for streaming in [true, false] {
            let broken = ScriptedTools::new(|_| Err("no network".to_owned()));
            let bench = Bench::with_tools(memory(), ScriptedPrompter::new(play::reply), broken).await;
            let request = AgentRequest { streaming, ..question(&scene, pattern) };
            let (run, messages) = asked(&bench, request, SomeLimits::default()).await;
            let last = messages.last().unwrap();
            assert_eq!(
                (last.message_type.as_str(), last.end_of_dialog, &last.error),
                ("answer", true, &None),
                "{scene}"
            );
            let played = Played::of(&bench, run).await;
            played.keeps_the_promises();
            assert_eq!(played.replayed(), [] as [String; 0], "{scene}");
            assert_eq!(played.end().reason, reason, "{scene}, streaming: {streaming}");
            let listed = bench.summary(&played.run).await.state;
            let is_whole = matches!(reason, Termination::FinalAnswer | Termination::SubagentsComplete);
            assert_eq!(listed, if is_whole { RunState::Answered } else { RunState::AnsweredPartial }, "{scene}");
        }
    }
}

/// The tokens and the model on the last message.
fn told_cost(messages: &[AgentResponse]) -> (Option<u64>, Option<u64>, Option<String>) {
    let (last, before) = messages.split_last().unwrap();
    assert!(
        before.iter().all(|message| message.in_token.is_none() && message.model.is_none()),
        "only the end tells it"
    );
    (last.in_token, last.out_token, last.model.clone())
}

fn told_answer(messages: &[AgentResponse]) -> String {
    let answers = messages.iter().filter(|message| message.message_type == message_type::ANSWER);
    answers.map(|message| message.content.as_str()).collect()
}

/// Serves a question until so many records are there, and then dies. False if the run ended before.
async fn live_for(store: StorePorts, scene: &Value, pattern: &str, records: usize) -> bool {
    let bench = Bench::play(store).await;
    let run = bench.request(1, question(scene, pattern), SomeLimits::default()).await;
    let mut subscription = bench.runs().follow(&Workspace::default(), &run, 0);
    let serving = Serving::start(&bench, WorkerOptions::default());
    let mut seen = 0;
    while seen < records {
        if let Item::Record(record) = subscription.next().await.unwrap() {
            seen += 1;
            if record.header.session == run && record.header.name == Name::end() {
                serving.stop(Stop::Abandon).await;
                return false;
            }
        }
    }
    serving.stop(Stop::Abandon).await;
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_tells_what_all_iterations_steps_and_subagents_cost_whatever_died_on_the_way() {
    let mut scenes = trouble::scenes();
    scenes.push((json!({"tools": 5, "answer": "a"}), "react"));
    for (scene, pattern) in scenes {
        let whole = Bench::play(memory()).await;
        let (run, messages) = asked(&whole, question(&scene, pattern), SomeLimits::default()).await;
        let (expected, answer) = (told_cost(&messages), told_answer(&messages));
        let records = whole.records(&run).await;
        let replies = records.iter().filter_map(|record| record.body.as_replied());
        let tokens: u64 = replies.clone().filter_map(|replied| replied.in_token).sum();
        let written: u64 = replies.filter_map(|replied| replied.out_token).sum();
        assert_eq!(expected, (Some(tokens), Some(written), Some("scripted".to_owned())), "{pattern}");
        for records in (2..).step_by(5) {
            let store = memory();
            if !live_for(store.clone(), &scene, pattern, records).await {
                break;
            }
            let second = Bench::play(store).await;
            let (_, messages) = asked(&second, question(&scene, pattern), SomeLimits::default()).await;
            assert_eq!(told_cost(&messages), expected, "{pattern}, restarted after {records} records");
            assert_eq!(told_answer(&messages), answer, "{pattern}, restarted after {records} records");
            assert_eq!(messages.iter().filter(|message| message.end_of_dialog).count(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_each_reply_cost_is_on_the_node_that_came_of_it() {
    for (scene, pattern) in trouble::scenes() {
        let bench = Bench::play(memory()).await;
        let (run, messages) = asked(&bench, question(&scene, pattern), SomeLimits::default()).await;
        let graph = trace(&project(&bench.records(&run).await));
        let steps = graph.sessions.iter().flat_map(|session| &session.steps);
        let tokens = |step: &Step| match step {
            Step::Plan(step) => step.cost.in_token,
            Step::PlanReview(step) => step.cost.in_token,
            Step::StepResult(step) => step.cost.in_token,
            Step::Decomposition(step) => step.cost.in_token,
            Step::Review(step) => step.cost.in_token,
            Step::Synthesis(step) => step.cost.in_token,
            Step::Analysis(step) => step.cost.in_token,
            Step::Conclusion(step) => step.cost.in_token,
            _ => None,
        };
        let all: u64 = steps.filter_map(tokens).sum();
        assert_eq!(messages.last().unwrap().in_token, Some(all), "{pattern}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_and_documents_of_subagents_name_the_conversation() {
    let bench = Bench::play(memory()).await;
    let scene = json!({"team": [[agent("a"), {"fail": true}, {"team": [[agent("b")]]}, {"plan": [{"say": "zero"}]}]]});
    let request = AgentRequest { conversation_id: "c-7".to_owned(), ..question(&scene, "supervisor") };
    let (run, _) = asked(&bench, request, SomeLimits::default()).await;
    let records = bench.records(&run).await;
    let quads = project(&records);
    let named = |quad: &&Quad| quad.p.text() == "urn:trellis:ns:conversationId" && quad.o.text() == "c-7";
    let named: BTreeSet<_> = quads.iter().filter(named).map(|quad| quad.s.text().to_owned()).collect();
    let sessions: BTreeSet<_> = records.iter().map(|record| record.header.session.clone()).collect();
    assert_eq!(sessions.len(), 6);
    let texts = documents(&records);
    for session in sessions.into_iter().filter(|session| *session != run) {
        assert!(named.contains(&iri::completion(&session)), "the completion of {session}");
        let own: Vec<_> = texts.iter().filter(|document| document.session == session).collect();
        assert!(own.iter().all(|document| document.conversation.as_ref().is_some_and(|id| id.as_str() == "c-7")));
        assert!(own.iter().all(|document| named.contains(&document.id) || document.id.ends_with("/doc")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_to_stop_is_told_to_every_decision_to_stop_and_named_at_the_end() {
    const WORDS: &str = "Two sources agree.";
    let general = [("agent-task-type", "general", json!({"name": "general", "termination": WORDS}))];
    let step = json!({"say": "zero", "tool": true, "fail": true});
    let plan = json!({"plan": [step], "revisions": [[{"say": "one"}]]});
    let scenes = [
        (agent("a"), "react", vec!["agent-react"]),
        (plan, "plan-then-execute", vec!["plan-revise", "plan-synthesise"]),
        (
            json!({"team": [[agent("a"), {"fail": true}]]}),
            "supervisor",
            vec!["agent-react", "supervisor-review", "supervisor-synthesise"],
        ),
    ];
    for (scene, pattern, prompts) in scenes {
        let told: Arc<std::sync::Mutex<BTreeMap<String, bool>>> = Arc::default();
        let heard = Arc::clone(&told);
        let script = move |call: &PromptCall| {
            let says = call.variables["context"].as_str().is_some_and(|text| text.contains(WORDS));
            *heard.lock().unwrap().entry(call.id.clone()).or_insert(true) &= says;
            play::reply(call)
        };
        let bench = bench(script, &general).await;
        let (run, _) = asked(&bench, question(&scene, pattern), SomeLimits::default()).await;
        let told = told.lock().unwrap().clone();
        for prompt in prompts {
            assert_eq!(told.get(prompt), Some(&true), "{prompt} is asked, and told when to stop");
        }
        let played = Played::of(&bench, run).await;
        assert!(played.ends().iter().all(|(_, ended)| ended.criteria == WORDS), "{pattern}");
        for session in trace(&project(&played.records)).sessions {
            let criteria = match session.steps.last().unwrap() {
                Step::Conclusion(end) => &end.criteria,
                Step::Synthesis(end) => &end.criteria,
                other => panic!("{other:?} is no end"),
            };
            assert_eq!(criteria.as_deref(), Some(WORDS), "{pattern}");
        }
    }
}

/// The documents of a run by the node that refers to them, and by the message they were streamed as.
fn stored_texts(played: &Played) -> BTreeMap<String, String> {
    let texts: BTreeMap<_, _> =
        documents(&played.records).into_iter().map(|found| (found.id, found.text.text().to_owned())).collect();
    let quads = project(&played.records);
    let of = |property: &str| -> Vec<(String, String)> {
        let said = quads.iter().filter(|quad| quad.p.text() == property);
        said.map(|quad| (quad.s.text().to_owned(), quad.o.text().to_owned())).collect()
    };
    let by_node = of("https://trustgraph.ai/ns/document");
    let mut stored: BTreeMap<_, _> =
        by_node.into_iter().filter_map(|(node, document)| Some((node, texts.get(&document)?.clone()))).collect();
    for (node, message) in of("urn:trellis:ns:messageId") {
        if let Some(text) = stored.get(&node).cloned() {
            stored.insert(message, text);
        }
    }
    stored
}

/// The texts of the messages that were completed.
fn told_whole(messages: &[AgentResponse]) -> BTreeMap<&str, String> {
    let mut told: BTreeMap<&str, (String, bool)> = BTreeMap::new();
    for message in messages.iter().filter(|message| message.message_type != message_type::EXPLAIN) {
        let (text, is_whole) = told.entry(&message.message_id).or_default();
        text.push_str(&message.content);
        *is_whole |= message.end_of_message;
    }
    let whole = told.into_iter().filter(|(_, (_, is_whole))| *is_whole);
    whole.map(|(id, (text, _))| (id, text)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_that_was_told_whole_is_stored_word_for_word() {
    for (scene, pattern) in trouble::scenes() {
        for streaming in [true, false] {
            let bench = bench(play::reply, &[]).await;
            let request = AgentRequest { streaming, ..question(&scene, pattern) };
            let (run, messages) = asked(&bench, request, SomeLimits::default()).await;
            let stored = stored_texts(&Played::of(&bench, run).await);
            let told = told_whole(&messages);
            assert!(told.len() > 5);
            for (id, text) in told {
                assert_eq!(stored.get(id), Some(&text), "{id}, {pattern}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_routing_is_the_first_thing_after_the_question_however_it_came_about() {
    let patterns =
        ["react", "plan-then-execute", "supervisor"].map(|name| ("agent-pattern", name, json!({ "name": name })));
    let step = AgentStep { action: "search".to_owned(), observation: "old".to_owned(), ..AgentStep::default() };
    let team = json!({"team": [[agent("a"), {"plan": [{"say": "zero"}]}]]});
    let requests = [
        question(&team, ""),
        question(&team, "supervisor"),
        AgentRequest { task_type: "general".to_owned(), ..question(&team, "") },
        AgentRequest { session_id: "mine".to_owned(), ..question(&team, "") },
        AgentRequest { history: vec![step], ..question(&agent("a"), "") },
    ];
    for request in requests {
        let bench = bench(play::reply, &patterns).await;
        let (_, messages) = asked(&bench, request, SomeLimits::default()).await;
        let mut sessions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for message in &messages {
            let place = message.explain_id.as_deref().unwrap_or(&message.message_id);
            sessions.entry(&message.session_id).or_default().push(place);
        }
        for (session, places) in sessions {
            let root = format!("urn:trustgraph:agent:{session}");
            assert_eq!(places[..2], [root.clone(), format!("{root}/pattern-decision")]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_subagents_end_is_told_to_whoever_listens_also_a_failed_one() {
    let bench = Bench::play(memory()).await;
    let scene = json!({"team": [[agent("a"), {"fail": true}]]});
    let (run, messages) = asked(&bench, question(&scene, "supervisor"), SomeLimits::default()).await;
    let quads: Vec<_> = messages.into_iter().flat_map(|message| message.explain_triples).collect();
    let told = |index: u32| {
        let session = run.child(1, index);
        let found = trace(&quads).sessions.into_iter().find(|found| found.session == session.as_str()).unwrap();
        let end = found.completion.unwrap();
        assert_eq!(end.correlation, Some(run.correlation(1)));
        assert_eq!(end.parent_session.as_deref(), Some(run.as_str()));
        (end.result.is_some(), end.status, end.error)
    };
    assert_eq!(told(0), (true, None, None));
    let reason = "the model did not answer: the model is dead".to_owned();
    assert_eq!(told(1), (false, Some("error".to_owned()), Some(reason)));
}

/// A model that writes slowly enough for its readers to keep up, and whose reply to a prompt breaks off in the end.
#[derive(Debug)]
struct Slowly {
    inner: ScriptedPrompter,
    torn: &'static str,
}

impl Prompter for Slowly {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            let torn = call.id == self.torn;
            let mut written = Written::default();
            let reply = self.inner.ask(call, &mut written).await?;
            for piece in written.0 {
                if sink.text(&piece).is_break() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let reason = "the connection was lost".to_owned();
            if torn { Err(PromptError::Provider { reason, failures: Vec::new() }) } else { Ok(reply) }
        })
    }
}

/// A model whose first reply breaks off in the middle of a thought, and comes whole at the second attempt.
#[derive(Debug)]
struct Stumbling(ScriptedPrompter);

impl Prompter for Stumbling {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            if call.labels.as_ref().is_some_and(|labels| labels.step == Name::iteration(1)) {
                for piece in ["Thought: a first thought that", " is torn in the mid"] {
                    assert!(sink.text(piece).is_continue());
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                sink.restart();
            }
            self.0.ask(call, sink).await
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_thought_that_broke_off_is_never_told() {
    let first = Bench::play(memory()).await;
    let mut model = ScriptedPrompter::new(play::reply);
    model.piece = 5;
    let ports = Ports { prompter: Arc::new(Stumbling(model)), ..first.orchestrator.ports.clone() };
    let orchestrator = Arc::new(Orchestrator::new(ports, first.orchestrator.options.clone()));
    let bench = Bench { orchestrator, ..first };
    let scene = question(&json!({"tools": 2, "answer": "whole"}), "react");
    let (_, messages) = asked(&bench, scene, SomeLimits::default()).await;
    let thoughts: Vec<_> = messages.iter().filter(|message| message.message_type == message_type::THOUGHT).collect();
    let acted = messages.iter().position(|message| message.message_type == message_type::OBSERVATION).unwrap();
    let late = messages[acted..].iter().find(|message| message.content.contains("torn"));
    assert_eq!(late, None, "{thoughts:#?}");
    assert!(thoughts.iter().filter(|thought| thought.content.contains("mid")).all(|thought| !thought.end_of_message));
}

/// The pieces of a reply.
#[derive(Debug, Default)]
struct Written(Vec<String>);

impl ReplySink for Written {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.0.push(text.to_owned());
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {
        self.0.clear();
    }
}

async fn slow(
    script: impl Fn(&PromptCall) -> Result<String, String> + Send + Sync + 'static,
    torn: &'static str,
) -> Bench {
    let first = Bench::play(memory()).await;
    let mut inner = ScriptedPrompter::new(script);
    inner.piece = 20;
    let ports = Ports { prompter: Arc::new(Slowly { inner, torn }), ..first.orchestrator.ports.clone() };
    let orchestrator = Arc::new(Orchestrator::new(ports, first.orchestrator.options.clone()));
    Bench { orchestrator, ..first }
}

/// What was told under the id of the last message, and how many other answers were begun.
fn last_answer(messages: &[AgentResponse]) -> (String, usize) {
    let last = messages.last().unwrap();
    let answers = messages.iter().filter(|message| message.message_type == message_type::ANSWER);
    let ids: BTreeSet<_> = answers.map(|message| message.message_id.as_str()).collect();
    (told_whole(messages)[last.message_id.as_str()].clone(), ids.len() - 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_is_not_mixed_with_the_one_that_takes_its_place() {
    let plan = json!({"plan": [{"say": "zero"}, {"say": "one"}]});
    let scenes = [
        ("supervisor-synthesise", json!({"team": [[agent("a"), agent("b")]]}), "supervisor"),
        ("plan-synthesise", plan, "plan-then-execute"),
    ];
    for (torn, scene, pattern) in scenes {
        let bench = slow(play::reply, torn).await;
        let (run, messages) = asked(&bench, question(&scene, pattern), SomeLimits::default()).await;
        let played = Played::of(&bench, run).await;
        assert_eq!(last_answer(&messages), (played.answer().to_owned(), 1), "{torn}");
        assert_eq!(messages.iter().filter(|message| message.end_of_dialog).count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_cut_for_its_length_is_not_mixed_with_the_next_one() {
    let script = |call: &PromptCall| {
        let first = call.labels.as_ref().unwrap().step == Name::iteration(1);
        Ok(format!("Final Answer: {}", if first { "x".repeat(300) } else { "short".to_owned() }))
    };
    let bench = slow(script, "").await;
    let limits = SomeLimits { max_reply_bytes: Some(200), ..SomeLimits::default() };
    let (_, messages) = asked(&bench, question(&agent("a"), "react"), limits).await;
    assert_eq!(last_answer(&messages), ("short".to_owned(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn routing_is_a_turn_of_its_own_that_a_second_delivery_does_not_repeat() {
    let patterns = ["react", "supervisor"].map(|name| ("agent-pattern", name, json!({ "name": name })));
    let bench = bench(play::reply, &patterns).await;
    let run = bench.request(1, question(&agent("a"), ""), SomeLimits::default()).await;
    let journal = &bench.orchestrator.ports.journal;
    let open = async || all_due_turns(&**journal, Timestamp::from_micros(i64::MAX)).await.unwrap();
    let turn = open().await.remove(0);
    assert_eq!(turn.key.name, Name::route());
    for _ in 0..2 {
        bench.orchestrator.handle(&turn).await.unwrap();
        let names: Vec<_> = open().await.into_iter().map(|turn| turn.key.name).collect();
        assert_eq!(names, [Name::iteration(1)], "what was chosen goes back to the queue");
        assert_eq!(bench.prompter.calls.all(), BTreeMap::from([(format!("{run}/route/pattern"), 1)]));
    }
    bench.finish(std::slice::from_ref(&run), 1).await;
    Played::of(&bench, run).await.keeps_the_promises();
}
