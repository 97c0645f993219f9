use super::*;
use crate::TemplatePrompter;
use crate::provider::LastSent;
use serde_json::{Map, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::config::{Settings, StoredItem, ToolItem};
use trellis_domain::reply::ReactReply;
use trellis_orchestrator::ports::{PromptCall, PromptError, PromptReply as Reply, Prompter, RealWorld, ReplySink};
use trellis_patterns::react::parser;

pub(super) const PARTNER: &str = "Assess the risk profile of Company X as a potential partner";

macro_rules! seeded {
    ($($reply:ident $id:literal),* $(,)?) => {
        [$(($id, stringify!($reply), include_str!(concat!("../../trellis/seeds/prompts/", $id, ".txt")))),*]
    };
}

pub(super) const PROMPTS: [(&str, &str, &str); 18] = seeded![
    json "task-type-classify",
    json "pattern-select",
    text "agent-react",
    json "plan-create",
    json "plan-step-execute",
    json "plan-revise",
    text "plan-synthesise",
    json "supervisor-decompose",
    json "supervisor-review",
    text "supervisor-synthesise",
    text "question",
    text "sample-financial-data",
    text "sample-regulatory-filings",
    text "sample-news-search",
    text "sample-supply-chain",
    text "sample-archive-search",
    text "sample-market-register",
    text "sample-notes",
];
const OBJECTS: [(&str, &str); 3] = [
    ("tool", include_str!("../../trellis/seeds/tools.json")),
    ("agent-pattern", include_str!("../../trellis/seeds/patterns.json")),
    ("agent-task-type", include_str!("../../trellis/seeds/task-types.json")),
];

pub(super) fn settings() -> Arc<Settings> {
    let prompts = PROMPTS.map(|(id, reply, text)| {
        ("prompt", format!("template.{id}"), json!({ "prompt": text, "response-type": reply }))
    });
    let objects = OBJECTS.into_iter().flat_map(|(kind, text)| {
        let objects: Map<String, Value> = serde_json::from_str(text).unwrap();
        objects.into_iter().map(move |(key, value)| (kind, key, value))
    });
    let item =
        |(kind, key, value): (&str, String, Value)| StoredItem { kind: kind.to_owned(), key, value: value.to_string() };
    let settings = Settings::take(1, prompts.into_iter().chain(objects).map(item)).0;
    assert!(settings.problems.is_empty(), "{:?}", settings.problems);
    Arc::new(settings)
}

/// Keeps the pieces.
#[derive(Debug, Default)]
struct Pieces(Vec<String>);

impl ReplySink for Pieces {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.0.push(text.to_owned());
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {
        panic!("a rehearsal never fails");
    }
}

pub(super) async fn ask(settings: &Arc<Settings>, id: &str, variables: Value) -> Reply {
    try_ask(settings, id, variables).await.unwrap()
}

pub(super) async fn try_ask(settings: &Arc<Settings>, id: &str, variables: Value) -> Result<Reply, PromptError> {
    let call = PromptCall {
        scope: trellis_domain::Scope::default(),
        settings: Arc::clone(settings),
        id: id.to_owned(),
        variables: variables.as_object().cloned().unwrap(),
        ..PromptCall::default()
    };
    let mut pieces = Pieces::default();
    let prompter = TemplatePrompter::new(Arc::new(Rehearsal::instant()), Arc::new(RealWorld));
    let reply = prompter.ask(call, &mut pieces).await?;
    assert_eq!(pieces.0.concat(), reply.raw);
    assert!(pieces.0.iter().all(|piece| (1..=PIECE).contains(&piece.chars().count())));
    assert_eq!(
        (reply.model.as_deref(), reply.out_token),
        (Some("rehearsal"), Some(rough_tokens([reply.raw.as_str()])))
    );
    Ok(reply)
}

/// Tools as prompts show them.
pub(super) fn described<'a>(tools: impl IntoIterator<Item = &'a Arc<ToolItem>>) -> Value {
    let described = |tool: &Arc<ToolItem>| {
        let ToolItem { name, description, arguments, groups, .. } = &**tool;
        json!({ "name": name, "description": description, "arguments": arguments, "groups": groups })
    };
    tools.into_iter().map(described).collect()
}

/// Plays a session as the loop would: the tools called, each thought, and the answer.
pub(super) struct Played {
    pub(super) calls: Vec<String>,
    thoughts: Vec<String>,
    pub(super) answer: String,
}

/// With the tools of these names on offer, of which some fail.
pub(super) async fn play(question: &str, offered: &[&str], failing: &[&str]) -> Played {
    let settings = settings();
    let described = described(offered.iter().map(|name| &settings.tools[*name]));
    let (mut history, mut calls, mut thoughts) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let variables = json!({
            "question": question, "tools": described, "tool_names": offered.join(","), "context": null,
            "history": history,
        });
        let reply = parser::read(&ask(&settings, "agent-react", variables).await.raw);
        thoughts.push(reply.thought().to_owned());
        let (tool, arguments) = match reply {
            ReactReply::Action { tool, arguments, .. } => (tool, Value::Object(arguments)),
            ReactReply::Answer { answer, .. } => return Played { calls, thoughts, answer },
            ReactReply::Unreadable { reason, .. } => panic!("{reason}"),
        };
        calls.push(format!("{tool} {arguments}"));
        let observation = if failing.contains(&tool.as_str()) {
            "Error: the line is down".to_owned()
        } else {
            let prompt = settings.tools[&tool].setting("template").unwrap_or("question");
            ask(&settings, prompt, arguments.clone()).await.raw
        };
        let thought = thoughts.last().unwrap();
        history.push(json!({ "thought": thought, "action": tool, "arguments": arguments, "observation": observation }));
    }
}

pub(super) const ALL: [&str; 8] = [
    "archive-search",
    "ask-model",
    "financial-data",
    "market-register",
    "news-search",
    "regulatory-filings",
    "search-notes",
    "supply-chain",
];

#[tokio::test]
async fn the_worked_example_is_played_with_three_tools() {
    let played = play(PARTNER, &ALL, &[]).await;
    assert_eq!(
        played.calls,
        [
            r#"financial-data {"company":"Company X"}"#,
            r#"regulatory-filings {"company":"Company X"}"#,
            r#"news-search {"query":"Company X"}"#,
        ]
    );
    assert!(played.thoughts[..3].iter().all(|thought| thought.contains("Company X")));
    let answer = played.answer;
    assert!(
        answer.starts_with("## Partner risk profile: Company X\n\n**Overall: moderate** (3 of 3 sources"),
        "{answer}"
    );
    for found in ["| Financial | `financial-data` | low |", "Net debt", "export licence", "late deliveries"] {
        assert!(answer.contains(found), "{found} is missing in {answer}");
    }
    assert!(answer.contains("- Operational: `supply-chain` was not asked"));
    assert!(answer.contains("Sample data (scripted)"));
    assert!(answer.ends_with(NOTE));
}

#[tokio::test]
async fn the_tools_on_offer_decide_which_are_played() {
    let offered = ["supply-chain", "news-search", "financial-data"];
    let calls = play("Is Globex & Sons a risky partner?", &offered, &[]).await.calls;
    assert_eq!(
        calls,
        [
            r#"financial-data {"company":"Globex & Sons"}"#,
            r#"news-search {"query":"Globex & Sons"}"#,
            r#"supply-chain {"company":"Globex & Sons"}"#,
        ]
    );
}

#[tokio::test]
async fn a_failed_tool_is_mentioned_and_the_rest_goes_on() {
    let played = play(PARTNER, &ALL, &["regulatory-filings"]).await;
    assert_eq!(played.calls.len(), 3);
    assert!(played.thoughts[2].starts_with("`regulatory-filings` failed (the line is down), so I go on without it. "));
    assert!(played.answer.contains("(2 of 3 sources answered"));
    assert!(played.answer.contains("- Legal: `regulatory-filings` failed: the line is down"));
    let played = play(PARTNER, &ALL, &ALL).await;
    assert!(played.answer.contains("**Overall: not known** (0 of 3"), "{}", played.answer);
}

#[tokio::test]
async fn any_other_question_gets_two_tools_and_an_honest_summary() {
    let played = play("Why is moss\n\nThought: green?", &ALL, &[]).await;
    assert_eq!(
        played.calls,
        [
            r#"search-notes {"query":"Why is moss Thought: green?"}"#,
            r#"ask-model {"question":"Why is moss Thought: green?"}"#,
        ]
    );
    assert!(played.answer.starts_with("You asked: Why is moss Thought: green?\n\n1. `search-notes` brought this:"));
    assert!(played.answer.contains("> - Nothing was looked up, and nothing is claimed"));
    assert!(played.answer.ends_with(NOTE));
}

#[tokio::test]
async fn without_a_tool_that_it_knows_it_answers_at_once() {
    for question in [PARTNER, "Why?"] {
        let played = play(question, &[], &[]).await;
        assert!(played.calls.is_empty());
        assert!(played.answer.contains("No tool was called"));
    }
    let own = json!({ "question": "Why?", "tools": [{ "name": "delete-all", "arguments": [] }], "history": [] });
    assert!(matches!(parser::read(&ask(&settings(), "agent-react", own).await.raw), ReactReply::Answer { .. }));
}

#[tokio::test]
async fn a_reply_that_could_not_be_read_is_regretted() {
    let history = json!([{ "action": "__parse_error__", "observation": "Error: the reply is empty" }]);
    let variables = json!({ "question": "Why?", "tools": [{ "name": "search-notes" }], "history": history });
    let reply = parser::read(&ask(&settings(), "agent-react", variables).await.raw);
    assert!(reply.thought().starts_with("My last reply could not be read (the reply is empty). "), "{reply:?}");
    assert!(matches!(reply, ReactReply::Action { .. }));
}

#[test]
fn companies_are_found_in_questions() {
    for (question, company) in [
        (PARTNER, "Company X"),
        ("Should we worry about risks with Acme GmbH, our new partner?", "Acme GmbH"),
        ("What is Initech's risk as a partner", "Initech"),
        ("A risk check of Studio 54 & Co as partner", "Studio 54 & Co"),
        ("assess the partner risk of globex corp as supplier", "globex corp"),
        ("Trace how Company X came to its present owners, step by step", "Company X"),
        ("partner risk?", "the company"),
    ] {
        assert_eq!(company::company_in(question), company, "{question}");
    }
    let compared = company::companies_in("Compare Company X, Acme GmbH and Company X's rival as partners by risk");
    assert_eq!(compared, ["Company X", "Acme GmbH"]);
    assert_eq!(company::companies_in("compare a and b"), ["the first company", "the second company"]);
}

#[test]
fn a_reply_is_fitted_to_the_schema_of_its_call() {
    let schema = json!({
        "type": "object",
        "required": ["pattern", "rationale"],
        "properties": {
            "pattern": { "enum": ["a", "b"] },
            "rationale": { "type": "string" },
            "urgency": { "enum": ["some"] },
        },
        "additionalProperties": false,
    });
    let fitted = minimal::fitted(json!({ "pattern": "b", "urgency": "none", "more": 1 }), &schema);
    assert_eq!(fitted, json!({ "pattern": "b", "rationale": "scripted by the rehearsal model", "urgency": "some" }));
    assert_eq!(minimal::fitted(json!([1]), &schema)["pattern"], "a");
    let right = json!({ "pattern": "b", "rationale": "" });
    assert_eq!(minimal::fitted(right.clone(), &schema), right);
}

#[test]
fn minimal_values_are_valid_for_simple_schemas() {
    for schema in [
        json!({
            "type": "object",
            "required": ["a", "b"],
            "properties": { "a": { "enum": ["x", "y"] }, "b": { "type": "integer", "minimum": 3 } },
        }),
        json!({ "type": "array", "minItems": 2, "items": { "type": "string", "maxLength": 4 } }),
        json!({ "type": ["string", "null"], "minLength": 50 }),
        json!({ "anyOf": [{ "type": "boolean" }, { "type": "null" }] }),
        json!({ "type": "number", "exclusiveMaximum": -2 }),
        json!({ "const": [1] }),
        json!({}),
    ] {
        let value = minimal::value(&schema);
        assert!(jsonschema::is_valid(&schema, &value), "{value} for {schema}");
    }
}

pub(crate) fn request(prompt: &str, expected: PromptReply) -> ModelRequest {
    ModelRequest {
        system: "é".repeat(5).into(),
        user: "four".into(),
        prompt: prompt.to_owned(),
        variables: serde_json::Map::default(),
        expected,
        turns: Vec::new(),
        tools: None,
        labels: None,
        drawn: Vec::new(),
        sent: LastSent::default(),
    }
}

async fn complete(request: &ModelRequest) -> Result<ModelReply, ProviderError> {
    Rehearsal::instant().complete(request, &mut |_| ControlFlow::Continue(())).await
}

#[tokio::test]
async fn a_prompt_without_a_script_gets_a_labelled_reply() {
    let reply = complete(&request("poem", PromptReply::Text)).await.unwrap();
    assert!(reply.text.starts_with("Sample data (scripted). There is no script for the prompt `poem`."));
    assert_eq!(reply.in_token, Some(2 + 1));
    let lines = PromptReply::JsonLines { schema: Some(json!({ "type": "boolean" })) };
    assert_eq!(reply_to(&request("poem", lines)), "false");
}

#[tokio::test]
async fn the_archive_refuses_and_the_register_stays_silent() {
    let refused = complete(&request("sample-archive-search", PromptReply::Text)).await.unwrap_err();
    assert_eq!(refused, ProviderError::Permanent { reason: "the archive is closed (scripted)".to_owned() });
    let register = request("sample-market-register", PromptReply::Text);
    assert!(tokio::time::timeout(Duration::from_millis(20), complete(&register)).await.is_err());
}

#[tokio::test]
async fn a_reply_that_is_stopped_ends_there() {
    let mut heard = String::new();
    let mut stop_soon = |piece: Piece<'_>| {
        let Piece::Text(text) = piece else { panic!("{piece:?}") };
        heard.push_str(text);
        if heard.len() > 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let reply = Rehearsal::instant().complete(&request("question", PromptReply::Text), &mut stop_soon).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.text.len()), (heard.as_str(), 24));
}

#[test]
fn pieces_are_cut_between_characters() {
    let text = "zwölf Bären übten Ökologie 🌲🌲🌲🌲🌲🌲🌲🌲🌲🌲🌲🌲🌲";
    assert_eq!(pieces(text).collect::<String>(), text);
    assert!(pieces(text).all(|piece| piece.chars().count() <= PIECE));
    assert_eq!(pieces("").count(), 0);
}

#[test]
fn a_route_is_a_task_type_and_one_of_its_patterns() {
    let types = json!([
        { "name": "general", "patterns": ["react", "supervisor"] },
        { "name": "risk-assessment", "patterns": ["plan-then-execute", "react"] },
    ]);
    let chosen = |question: &str| {
        let variables = json!({ "question": question, "task_types": types });
        let reply = decision("route", Given::new(variables.as_object().unwrap())).unwrap();
        (reply["route"]["task_type"].clone(), reply["route"]["pattern"].clone())
    };
    assert_eq!(chosen("Tell me of moss in parallel and independently"), (json!("general"), json!("supervisor")));
    let partner = chosen("Assess the risk profile of Company X as a potential partner");
    assert_eq!(partner, (json!("risk-assessment"), json!("react")), "`supervisor` is not offered there");
}
