//! Whole runs with a model behind a connection, from the question to what the record says.

use crate::ask::{patient, provider};
use crate::speech;
use crate::stub::{Act, Script, Seen, Stub, answer, send, stream};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;
use trellis_domain::config::StoredItem;
use trellis_domain::decision::{DecidedBy, DecisionKind, Enforcement};
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::parts::ReplyPart;
use trellis_domain::record::{Body, Name, Reading, Record, ReplyFormat};
use trellis_domain::{Caller, RequestId, Scope, Workspace};
use trellis_models::{CallSettings, Provider, TemplatePrompter};
use trellis_orchestrator::RunService;
use trellis_orchestrator::accept::{Question, UnknownNames};
use trellis_orchestrator::hub::{Hub, Item};
use trellis_orchestrator::memory::scripted::ScriptedTools;
use trellis_orchestrator::memory::{MemoryConfig, MemoryJournal};
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::ports::{Config, RealWorld, World};
use trellis_orchestrator::queue::FairQueue;
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};
use trellis_patterns::react::IterationNames;

const PROMPTS: [(&str, &str); 9] = [
    ("json", "task-type-classify"),
    ("json", "pattern-select"),
    ("text", "agent-react"),
    ("json", "supervisor-decompose"),
    ("json", "supervisor-review"),
    ("text", "supervisor-synthesise"),
    ("json", "plan-create"),
    ("json", "plan-step-execute"),
    ("text", "plan-synthesise"),
];

fn items() -> Vec<StoredItem> {
    let item = |kind: &str, key: &str, value: Value| StoredItem {
        kind: kind.to_owned(),
        key: key.to_owned(),
        value: value.to_string(),
    };
    let patterns = ["react", "plan-then-execute", "supervisor"];
    let described = |name: &str| json!({ "name": name, "description": name, "when_to_use": name });
    let tool = json!({ "type": "text-completion", "name": "search", "description": "finds facts" });
    let mut items = vec![item("tool", "search", tool)];
    items.extend(patterns.map(|name| item("agent-pattern", name, described(name))));
    items.extend(["general", "research"].map(|name| {
        let mut task_type = described(name);
        task_type["valid_patterns"] = json!(patterns);
        item("agent-task-type", name, task_type)
    }));
    items.extend(PROMPTS.map(|(reply, id)| {
        item("prompt", &format!("template.{id}"), json!({ "prompt": "{{ question }}", "response-type": reply }))
    }));
    items
}

/// What the model says to a prompt.
fn said(seen: &Seen) -> String {
    let value = match seen.headers["x-trellis-prompt"].as_str() {
        "task-type-classify" => json!({ "to_do": "research", "task_type": "research", "rationale": "it asks why" }),
        "pattern-select" => json!({
            "how": "react", "pattern": "react", "rationale": "it is simple",
            "signals": { "complexity": "low", "independent_dimensions": 1, "urgency": "normal" },
        }),
        "agent-react" if seen.headers["x-trellis-step"] == "i1" => {
            return "Thought: look\nAction: search\nArgs: {\"question\": \"moss\"}".to_owned();
        }
        "agent-react" => return "Thought: enough\nFinal Answer: Because of chlorophyll.".to_owned(),
        "supervisor-decompose" => {
            json!({ "goals": [{ "goal": "look", "pattern": "react", "group": null, "context": null }] })
        }
        "supervisor-review" => json!({ "decision": "answer", "reason": "enough", "goals": null }),
        "plan-create" => json!({ "steps": [{ "goal": "look", "tool_hint": null, "depends_on": [] }] }),
        "plan-step-execute" => {
            json!({ "tool": "search", "arguments": { "question": "moss" }, "answer": null, "surprising": false })
        }
        _ => return "Because of chlorophyll.".to_owned(),
    };
    value.to_string()
}

fn openai(seen: &Seen) -> Script {
    let text = said(seen);
    let (first, second) = text.split_at(text.len() / 2);
    stream(speech::reply("openai", &[first, second]))
}

/// The records of a run under this pattern; the router chooses one if it is empty.
async fn run(stub: &Stub, pattern: &str) -> Vec<Arc<Record>> {
    run_with(provider("openai", &stub.base, patient()), pattern).await
}

async fn run_with(model: Arc<dyn Provider>, pattern: &str) -> Vec<Arc<Record>> {
    let world: Arc<dyn World> = Arc::new(RealWorld);
    let config = Arc::new(MemoryConfig::new(Arc::clone(&world)));
    config.put(&Workspace::default(), items(), Caller::program()).await.unwrap();
    let ports = Ports {
        journal: Arc::new(MemoryJournal::default()),
        queue: Arc::new(FairQueue::new(Arc::clone(&world))),
        config,
        tools: Arc::new(ScriptedTools::new(|_| Ok("chlorophyll".to_owned()))),
        prompter: Arc::new(TemplatePrompter::new(model, Arc::clone(&world))),
        hub: Arc::new(Hub::default()),
        world,
    };
    let orchestrator = Arc::new(Orchestrator::new(ports, Options::default()));
    let runs = RunService::new(&orchestrator);
    let request = AgentRequest {
        question: "Why is moss green?".to_owned(),
        pattern: pattern.to_owned(),
        streaming: true,
        ..AgentRequest::default()
    };
    let question = Question {
        scope: Scope::default(),
        request_id: RequestId::new("r").unwrap(),
        request,
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        selection: trellis_domain::Selection::default(),
        by: None,
    };
    let run = runs.accept(question).await.unwrap().run;
    let (stop, stopped) = watch::channel(None);
    let workers = Workers::new(orchestrator, WorkerOptions::default());
    let serving = tokio::spawn(async move { workers.run(stopped).await });
    let mut subscription = runs.follow(&Workspace::default(), &run, 0);
    let mut records = Vec::new();
    loop {
        let Item::Record(record) = subscription.next().await.unwrap() else { continue };
        let last = record.header.name == Name::end() && record.header.session == run;
        records.push(record);
        if last {
            break;
        }
    }
    stop.send_replace(Some(Stop::Drain));
    serving.await.unwrap();
    records
}

/// What a model chose in a run and how it was held, in order.
fn choices(records: &[Arc<Record>]) -> Vec<(DecisionKind, String, Enforcement)> {
    let decisions = records.iter().flat_map(|record| match &record.body {
        Body::Replied(replied) => replied.decision.as_slice(),
        Body::Routed(routed) => routed.decisions.as_slice(),
        Body::Accepted(_)
        | Body::Observed(_)
        | Body::FannedOut(_)
        | Body::Joined(_)
        | Body::Intended(_)
        | Body::InputRequired(_)
        | Body::Parked(_)
        | Body::Settled(_)
        | Body::Told(_)
        | Body::Ended(_) => &[],
    });
    let by_model = decisions.filter(|decision| decision.decided_by == DecidedBy::Model);
    by_model.map(|decision| (decision.kind, decision.chosen.join(","), decision.enforcement)).collect()
}

fn answer_of(records: &[Arc<Record>]) -> String {
    let Body::Ended(ended) = &records.last().unwrap().body else { panic!("a run ends with its end") };
    ended.answer.as_ref().unwrap().text().to_owned()
}

fn of_router(enforcement: Enforcement) -> Vec<(DecisionKind, String, Enforcement)> {
    let task_type = (DecisionKind::TaskType, "research".to_owned(), enforcement);
    let pattern = (DecisionKind::Pattern, "react".to_owned(), enforcement);
    vec![task_type.clone(), pattern.clone(), task_type, pattern]
}

#[tokio::test]
async fn what_the_provider_enforced_is_on_record_as_enforced() {
    let stub = Stub::start(|_, seen| openai(seen)).await;
    let records = run(&stub, "").await;
    assert_eq!(answer_of(&records), "Because of chlorophyll.");
    // Once where the model says it and once where the router settles it; the tool is chosen in free text.
    let tool = (DecisionKind::Tool, "search".to_owned(), Enforcement::Validated);
    assert_eq!(choices(&records), [of_router(Enforcement::Decoding), vec![tool]].concat());
    for record in &records {
        if let Body::Replied(replied) = &record.body {
            assert_eq!(replied.model.as_deref(), Some("openai/m-2026"));
            assert_eq!((replied.in_token, replied.out_token), (Some(11), Some(4)));
        }
    }
}

#[tokio::test]
async fn what_the_provider_did_not_enforce_is_on_record_as_checked() {
    let stub = Stub::start(|_, seen| {
        let refused = !seen.body["response_format"].is_null();
        if refused { answer("400 Bad Request", "", "{\"error\": \"no response_format here\"}") } else { openai(seen) }
    })
    .await;
    let records = run(&stub, "").await;
    assert_eq!(answer_of(&records), "Because of chlorophyll.");
    assert_eq!(choices(&records)[..4], of_router(Enforcement::Validated));
}

/// A server that says yes to every schema and lets the model write what it likes.
#[tokio::test]
async fn a_server_that_overlooks_the_schema_is_not_believed() {
    let stub = Stub::start(|_, seen| match seen.headers["x-trellis-prompt"].as_str() {
        "task-type-classify" => stream(speech::reply("openai", &["I think research."])),
        "pattern-select" => stream(speech::reply("openai", &["{\"pattern\": \"react\"}"])),
        _ => openai(seen),
    })
    .await;
    let records = run(&stub, "").await;
    let held = choices(&records).into_iter().filter(|(_, _, enforcement)| *enforcement == Enforcement::Decoding);
    assert_eq!(held.count(), 0);
}

#[tokio::test]
async fn choices_of_a_supervisor_are_enforced_even_where_members_are_optional() {
    let stub = Stub::start(|_, seen| openai(seen)).await;
    let records = run(&stub, "supervisor").await;
    assert_eq!(answer_of(&records), "Because of chlorophyll.");
    let of = |kind| choices(&records).into_iter().find(|(found, _, _)| *found == kind);
    let (pattern, round) = (DecisionKind::SubagentPattern, DecisionKind::Round);
    assert_eq!(of(pattern), Some((pattern, "react".to_owned(), Enforcement::Decoding)));
    assert_eq!(of(round), Some((round, "answer".to_owned(), Enforcement::Decoding)));
}

#[tokio::test]
async fn choices_of_a_plan_are_enforced_down_to_the_arguments() {
    let stub = Stub::start(|_, seen| openai(seen)).await;
    let records = run(&stub, "plan-then-execute").await;
    assert_eq!(answer_of(&records), "Because of chlorophyll.");
    let tool = (DecisionKind::Tool, "search".to_owned(), Enforcement::Decoding);
    assert_eq!(choices(&records), [tool]);
    let strict = |seen: &Seen| seen.body["response_format"]["json_schema"]["strict"].as_bool();
    let held: Vec<_> = stub.seen().iter().map(strict).collect();
    assert_eq!(held, [Some(true), Some(true), None], "the plan, its step, the synthesis");
}

/// Half an action is not acted upon, however well it reads.
#[tokio::test]
async fn a_reply_that_was_cut_off_is_not_acted_upon() {
    let stub = Stub::start(|_, seen| {
        let cut = seen.headers["x-trellis-step"] == "i1";
        let said = stream(speech::reply("openai", &[&said(seen)]));
        let shortened = |act| match act {
            Act::Send(bytes) => send(String::from_utf8(bytes).unwrap().replace("\"stop\"", "\"length\"")),
            act @ (Act::Pause(_) | Act::Hang | Act::Forever(_)) => act,
        };
        if cut { said.into_iter().map(shortened).collect() } else { said }
    })
    .await;
    let records = run(&stub, "react").await;
    let first = records.iter().find(|record| record.header.name == Name::iteration(1)).unwrap();
    let Body::Replied(replied) = &first.body else { panic!("an iteration is a reply") };
    let reason = "the reply was cut off at the model's limit of tokens; be brief".to_owned();
    assert_eq!(replied.reading, Reading::Unusable { reason });
    assert_eq!(answer_of(&records), "Because of chlorophyll.");
}

/// What a model decides, whichever way it says it.
fn decided(seen: &Seen) -> Script {
    let (function, arguments) = match seen.headers["x-trellis-step"].as_str() {
        "i1" => ("search", json!({ "thought": "Look it up.\nNow.", "question": "moss" })),
        "i2" => ("telepathy", json!({ "thought": "Or so.", "to": "moss" })),
        "i3" => ("search", json!("moss")),
        _ => ("final_answer", json!({ "thought": "Enough.", "answer": "Because of\n\nchlorophyll." })),
    };
    let thought = arguments["thought"].as_str().map(|thought| format!("Thought: {thought}\n")).unwrap_or_default();
    if seen.body["tools"].is_array() {
        let arguments = arguments.to_string();
        let (first, second) = arguments.split_at(arguments.len() / 2);
        return stream(speech::call("openai", function, &[first, second]));
    }
    let mut members = arguments.clone();
    let rest = members.as_object_mut().map_or_else(
        || arguments.to_string(),
        |members| {
            members.remove("thought");
            json!(members).to_string()
        },
    );
    let text = match arguments["answer"].as_str() {
        Some(answer) => format!("{thought}Final Answer: {answer}"),
        None => format!("{thought}Action: {function}\nArgs: {rest}"),
    };
    stream(speech::reply("openai", &[&text]))
}

/// What a run's records say, without what differs by nature: times, bytes sent, how a choice was held, and in which words
/// a model is told what was wrong with its own form.
fn story(records: &[Arc<Record>]) -> Vec<String> {
    let told = records.iter().map(|record| {
        let body = match &record.body {
            Body::Replied(replied) => {
                let chosen: Vec<_> =
                    replied.decision.iter().map(|decision| (&decision.options, &decision.chosen)).collect();
                let thought = replied.thought.as_ref().map(|thought| thought.text().to_owned());
                format!("{thought:?} {:?} {chosen:?}", replied.reading)
            }
            Body::Observed(observed) => format!("{:?} {:?}", observed.result, observed.error),
            Body::Ended(ended) => format!("{:?} {:?}", ended.reason, ended.answer),
            Body::Accepted(_)
            | Body::Routed(_)
            | Body::FannedOut(_)
            | Body::Joined(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::Parked(_)
            | Body::Settled(_)
            | Body::Told(_) => String::new(),
        };
        format!("{} {body}", record.header.name)
    });
    let same = |told: String| match told.find("not a JSON object") {
        Some(_) => told.split_whitespace().next().unwrap_or_default().to_owned() + " is no JSON object",
        None => told,
    };
    told.map(same).collect()
}

fn formats(records: &[Arc<Record>]) -> Vec<Option<ReplyFormat>> {
    records.iter().filter_map(|record| Some(record.body.as_replied()?.prompt.format)).collect()
}

#[tokio::test]
async fn a_run_with_functions_and_one_in_text_tell_the_same_story() {
    let stub = Stub::start(|_, seen| decided(seen)).await;
    let native = run_with(provider("openai", &stub.base, patient()), "react").await;
    let settings = CallSettings { native_tools: false, ..patient() };
    let text = run_with(provider("openai", &stub.base, settings), "react").await;
    assert_eq!(story(&native), story(&text));
    assert_eq!(answer_of(&native), "Because of\n\nchlorophyll.");
    assert_eq!(formats(&native), [Some(ReplyFormat::NativeTools); 4]);
    assert_eq!(formats(&text), [Some(ReplyFormat::Text); 4]);
    for replied in native.iter().filter_map(|record| record.body.as_replied()) {
        let [ReplyPart::Call { id, arguments, .. }] = &replied.parts[..] else { panic!("{replied:?}") };
        assert!(replied.raw.text().is_empty() && id.is_some() && !arguments.text().is_empty(), "as it was called");
        assert!(replied.prompt.received.is_some());
    }
    let readings: Vec<_> = native.iter().filter_map(|record| Some(&record.body.as_replied()?.reading)).collect();
    let [Reading::Acted { .. }, Reading::Acted { tool, .. }, Reading::Unusable { .. }, Reading::Answered { .. }] =
        readings.as_slice()
    else {
        panic!("{readings:?}")
    };
    assert_eq!(tool, "telepathy", "an unknown function is an unknown tool");
}

/// Servers without a parser for it leave in the reply what the model only thought.
#[tokio::test]
async fn what_a_model_thinks_before_it_speaks_is_neither_read_nor_told() {
    for thought in ["<think>Perhaps.\nFinal Answer: wrong</think>\n", "Perhaps.\nFinal Answer: wrong\n</think>\n\n"] {
        let stub = Stub::start(move |_, seen| {
            let text = format!("{thought}{}", said(seen));
            let pieces: Vec<_> = text.split_inclusive(' ').collect();
            stream(speech::reply("openai", &pieces))
        })
        .await;
        for native_tools in [true, false] {
            let settings = CallSettings { native_tools, ..patient() };
            let records = run_with(provider("openai", &stub.base, settings), "react").await;
            assert_eq!(answer_of(&records), "Because of chlorophyll.", "{thought}");
            let replies: Vec<_> = records.iter().filter_map(|record| record.body.as_replied()).collect();
            let readings: Vec<_> = replies.iter().map(|replied| &replied.reading).collect();
            assert!(matches!(&readings[..], [Reading::Acted { .. }, Reading::Answered { .. }]), "{readings:?}");
            let unmarked = !thought.starts_with('<');
            assert!(replies.iter().all(|replied| replied.repairs.len() == usize::from(unmarked)), "{replies:?}");
        }
    }
}

/// Only what could not be written otherwise was enforced while it was written.
#[tokio::test]
async fn the_choice_of_a_function_is_enforced_where_functions_are_strict() {
    let stub = Stub::start(|_, seen| decided(seen)).await;
    let of_tool = |records: &[Arc<Record>]| choices(records).into_iter().map(|(_, name, held)| (name, held)).collect();
    let native: Vec<_> = of_tool(&run_with(provider("openai", &stub.base, patient()), "react").await);
    let search = |held| ("search".to_owned(), held);
    let nothing = || (String::new(), Enforcement::Validated);
    // The second names no function that was offered, the third is no JSON object: so the server did not enforce them.
    assert_eq!(native, [search(Enforcement::Decoding), nothing(), nothing()]);
    let settings = CallSettings { native_tools: false, ..patient() };
    let text: Vec<_> = of_tool(&run_with(provider("openai", &stub.base, settings), "react").await);
    assert_eq!(text, [search(Enforcement::Validated), nothing(), nothing()]);
}
