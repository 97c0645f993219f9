use super::*;
use std::time::Duration;
use trellis_domain::config::{ConfigItem, validate};
use trellis_domain::record::Name;
use trellis_domain::{Collection, Scope};
use trellis_orchestrator::memory::scripted::ScriptedTools;
use trellis_orchestrator::permits::Permit;
use trellis_orchestrator::ports::CallLabels;

fn tool(item: &StoredItem) -> Arc<ToolItem> {
    match validate(&item.kind, &item.key, &item.value) {
        Ok(ConfigItem::Tool(tool)) => tool,
        other => panic!("not a tool: {other:?}"),
    }
}

fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

fn call(tool: Arc<ToolItem>, in_run: &str, arguments: &Value) -> ToolCall {
    let (run, session, step) = (run(in_run), run(in_run), Name::new("i1"));
    ToolCall {
        scope: Scope::default(),
        collection: Collection::default(),
        settings: Arc::new(Settings::default()),
        tool,
        arguments: arguments.as_object().cloned().unwrap(),
        idempotency_key: "k".to_owned(),
        step: None,
        document: None,
        timeout: Duration::from_mins(1),
        max_reply_bytes: 1 << 20,
        labels: Some(CallLabels { run, session, step, attempt: 1, task_type: None, model: None }),
        permit: Permit::default(),
        input: trellis_orchestrator::ports::CallInput::Nobody,
    }
}

fn fixtures() -> FixtureTools {
    let documents = Documents::new([("Moss".to_owned(), "Moss is green.".to_owned())]);
    FixtureTools::new(Arc::new(ScriptedTools::new(|call| Ok(format!("inner {}", call.tool.name)))), documents)
}

async fn answer(tools: &FixtureTools, tool: Arc<ToolItem>, run: &str, arguments: Value) -> String {
    let answered = tools.call(call(tool, run, &arguments)).await;
    answered.map_or_else(|error| format!("error: {}", error.reason), |output| output.text)
}

fn recorded(result: &str) -> Recorded {
    let arguments = json!({"town": "Oslo", "days": 2}).as_object().cloned().unwrap();
    Recorded::from([("weather".to_owned(), vec![RecordedCall { arguments, result: result.to_owned() }])])
}

#[tokio::test]
async fn search_and_calculator_are_offered_and_answered() {
    let items = tool_items();
    let [search, calculator] = &items[..] else { panic!("two items: {items:?}") };
    let tools = fixtures();
    let arguments = |item| tool(item).arguments.iter().map(|argument| argument.name.clone()).collect::<Vec<_>>();
    assert_eq!((arguments(search), arguments(calculator)), (vec!["query".into()], vec!["expression".into()]));
    assert_eq!(answer(&tools, tool(search), "r", json!({"query": "moss"})).await, "## Moss\nMoss is green.");
    assert_eq!(answer(&tools, tool(calculator), "r", json!({"expression": "6 * 7"})).await, "42");
    assert_eq!(answer(&tools, tool(calculator), "r", json!({"expression": 5})).await, "5");
    let wrong = answer(&tools, tool(calculator), "r", json!({"expression": "1 / 0"})).await;
    assert_eq!(wrong, "error: division by zero; check the number behind / or %");
    let missing = answer(&tools, tool(search), "r", json!({"question": "moss"})).await;
    assert_eq!(missing, "error: the argument `query` is missing; `search` expects `query` (string)");
}

#[tokio::test]
async fn all_other_tools_go_on_to_whoever_answers_them_otherwise() {
    let other = |name: &str| StoredItem {
        kind: "tool".into(),
        key: name.into(),
        value: json!({"type": "mcp-tool", "name": name, "mcp-tool": "m"}).to_string(),
    };
    for name in ["lookup", SEARCH] {
        assert_eq!(answer(&fixtures(), tool(&other(name)), "r", json!({})).await, format!("inner {name}"));
    }
}

#[tokio::test]
async fn each_run_has_recorded_answers_of_its_own_until_it_is_forgotten() {
    let tools = fixtures();
    tools.for_session(run("one"), recorded("rain"));
    tools.for_session(run("two"), recorded("sun"));
    let items = recorded_tool_items([&recorded("rain"), &Recorded::new()]);
    let [weather] = &items[..] else { panic!("one item: {items:?}") };
    let weather = tool(weather);
    let kinds: Vec<_> = weather.arguments.iter().map(|a| format!("{} {}", a.name, a.kind)).collect();
    assert_eq!((kinds, &weather.groups), (vec!["days integer".into(), "town string".into()], &vec!["weather".into()]));
    let asked = || json!({"days": 2.0, "town": "Oslo"});
    assert_eq!(answer(&tools, Arc::clone(&weather), "one", asked()).await, "rain");
    assert_eq!(answer(&tools, Arc::clone(&weather), "two", asked()).await, "sun");
    let other = answer(&tools, Arc::clone(&weather), "two", json!({"town": "Rome"})).await;
    assert!(
        other.starts_with("error: `weather` has no result for these arguments") && !other.contains("Oslo"),
        "{other}"
    );
    tools.forget(&run("one"));
    let gone = answer(&tools, weather, "one", asked()).await;
    assert_eq!(gone, "error: nothing is recorded for `weather` in this run; use another tool");
}
