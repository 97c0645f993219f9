use super::*;
use std::fs;
use trellis_domain::input::GivenInput;

/// Answers one list and ends, as a server that dies between two calls.
const SERVER: &str = r#"
echo x >> "$STARTS"
[ "$ONCE" = yes ] && [ -e "$STARTS.slow" ] || sleep "$SLOW"
touch "$STARTS.slow"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"what?\"}}" ;;
    *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}" ;;
    *'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"one\",\"inputSchema\":{}}$ODD]$MORE}}"; $AFTER ;;
    *'"tools/call"'*) eval "$CALL"; echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[]}}" ;;
    *'"ping"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}" ;;
  esac
done"#;

/// A server, and how often it was started.
fn server(folder: &std::path::Path, set: &[(&str, &str)]) -> (Mcp, impl Fn() -> usize + use<>) {
    let starts = folder.join("starts");
    let mut variables =
        serde_json::json!({ "STARTS": starts.to_str().unwrap(), "AFTER": ":", "CALL": ":", "SLOW": "0" });
    for (name, value) in set {
        variables[name] = Value::from(*value);
    }
    let program = serde_json::json!({ "command": "sh", "args": ["-c", SERVER], "env": variables, "timeout": 1000 });
    let file = serde_json::json!({ "mcpServers": { "s": program } }).to_string();
    let servers = read_servers(&file, &|_| None).unwrap();
    (Mcp::new(servers, Reach::default(), None), move || fs::read_to_string(&starts).unwrap_or_default().lines().count())
}

async fn discover(mcp: &Mcp) -> Result<ToolList, String> {
    mcp.discovered(&Workspace::default(), "s").await
}

#[tokio::test]
async fn a_connection_is_kept_and_shared() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, starts) = server(folder.path(), &[]);
    let (one, other) = tokio::join!(discover(&mcp), discover(&mcp));
    assert_eq!((one.unwrap().tools[0].name.as_str(), other.unwrap().tools.len()), ("one", 1));
    discover(&mcp).await.unwrap();
    assert_eq!(starts(), 1);
}

#[tokio::test]
async fn a_server_that_died_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, starts) = server(folder.path(), &[("AFTER", "exit 0")]);
    discover(&mcp).await.unwrap();
    // That it has gone away is heard of a moment later.
    until_closed(&mcp).await;
    discover(&mcp).await.unwrap();
    assert_eq!(starts(), 2);
}

async fn until_closed(mcp: &Mcp) {
    let client = Arc::clone(mcp.server(&Workspace::default(), "s").unwrap());
    let closed = async {
        while client.open().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), closed).await.unwrap();
}

async fn call(mcp: &Mcp) -> Result<Told, String> {
    let client = mcp.server(&Workspace::default(), "s").unwrap();
    client.call(CallToolRequestParams::new("one"), Duration::from_secs(1)).await.and_then(content::told)
}

#[tokio::test]
async fn a_server_that_hangs_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let once = "[ -e \"$STARTS.hung\" ] || { touch \"$STARTS.hung\"; sleep 100; }";
    let (mcp, starts) = server(folder.path(), &[("CALL", once)]);
    assert!(call(&mcp).await.unwrap_err().contains("no answer within 1 s"));
    until_closed(&mcp).await;
    assert_eq!(call(&mcp).await, Ok(Told::Text(String::new())));
    assert_eq!(starts(), 2);
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let flood = "while :; do echo '{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}'; done";
    let (mcp, _) = server(folder.path(), &[("CALL", flood)]);
    // Shells are slow writers, so that the call may be over first.
    let why = call(&mcp).await.unwrap_err();
    assert!(why.contains("more than anybody asked for") || why.contains("no answer within"), "{why}");
    until_closed(&mcp).await;
}

#[tokio::test]
async fn a_tool_that_nobody_can_use_keeps_nobody_from_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let odd =
        r#",{"name":"torn","inputSchema":"none"},{"name":"bare"},{"inputSchema":{}},{"name":"two","inputSchema":{}}"#;
    let (mcp, starts) = server(folder.path(), &[("ODD", odd)]);
    let list = discover(&mcp).await.unwrap();
    let names: Vec<_> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    let left_out: Vec<_> = list.left_out.iter().map(|tool| (tool.name.as_str(), tool.server.as_str())).collect();
    assert_eq!(left_out, [("torn", "s"), ("bare", "s"), ("tool 4", "s")]);
    assert!(list.left_out[0].reason.contains("not described as the protocol says: invalid type"), "{list:?}");
    assert!(list.left_out[1].reason.contains("inputSchema") && list.left_out[2].reason.contains("name"), "{list:?}");
    assert_eq!(starts(), 1);
}

#[tokio::test]
async fn a_list_without_end_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, _) = server(folder.path(), &[("MORE", ",\"nextCursor\":\"again\"")]);
    assert_eq!(discover(&mcp).await, Err("its list of tools has no end".to_owned()));
}

#[tokio::test]
async fn a_program_that_begins_slowly_is_found_by_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, starts) = server(folder.path(), &[("SLOW", "1")]);
    let first = tokio::time::timeout(Duration::from_millis(300), call(&mcp)).await;
    assert!(first.is_err(), "it has not begun yet");
    assert_eq!(call(&mcp).await, Ok(Told::Text(String::new())));
    assert_eq!(starts(), 1);
}

/// As one that is installed with its first start.
#[tokio::test]
async fn a_program_that_answers_after_ten_seconds_is_begun_with_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, starts) = server(folder.path(), &[("SLOW", "11"), ("ONCE", "yes")]);
    assert_eq!(discover(&mcp).await.unwrap().tools.len(), 1);
    assert_eq!(starts(), 2);
}

/// Speaks the newest protocol, asks twice, and puts its caller off once between.
const ASKING: &str = r#"
reply() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
ask() { reply "{\"resultType\":\"input_required\",\"requestState\":\"$1\",\"inputRequests\":{\"q\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"$2\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}}}}}"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) reply '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}' ;;
    *'"requestState":"later"'*) ask two "And now?" ;;
    *'"requestState":"one"'*) reply '{"resultType":"input_required","requestState":"later"}' ;;
    *'"requestState":"two"'*) reply '{"resultType":"complete","content":[{"type":"text","text":"done"}]}' ;;
    *'"tools/call"'*) ask one "How many?" ;;
  esac
done"#;

fn asking(script: &str) -> Mcp {
    let program = serde_json::json!({ "command": "sh", "args": ["-c", script], "timeout": 5000 });
    let file = serde_json::json!({ "mcpServers": { "s": program } }).to_string();
    Mcp::new(read_servers(&file, &|_| None).unwrap(), Reach::default(), None)
}

async fn call_with(mcp: &Mcp, input: CallInput) -> Result<ToolOutput, String> {
    let item = serde_json::json!({ "type": "mcp-tool", "server": "s", "mcp-tool": "one" }).to_string();
    let Ok(trellis_domain::config::ConfigItem::Tool(tool)) = trellis_domain::config::validate("tool", "one", &item)
    else {
        panic!("it is a tool")
    };
    let call = ToolCall { input, ..crate::tests::call(tool, &serde_json::json!({})) };
    mcp.call(&call).await.map_err(|error| error.reason)
}

#[tokio::test]
async fn a_server_that_asks_is_answered_with_its_own_state() {
    let mcp = asking(ASKING);
    let given = |state: &str| {
        let content = serde_json::json!({ "n": 3 }).as_object().cloned();
        let answers = [("q".to_owned(), content)].into();
        CallInput::Given(Box::new(GivenInput { state: Some(state.to_owned()), answers }))
    };
    let first = call_with(&mcp, CallInput::Possible).await.unwrap().asks.unwrap();
    assert_eq!((first.state.as_deref(), first.forms[0].message.as_str()), (Some("one"), "How many?"));
    let second = call_with(&mcp, given("one")).await.unwrap().asks.unwrap();
    assert_eq!((second.state.as_deref(), second.forms[0].message.as_str()), (Some("two"), "And now?"));
    assert_eq!(call_with(&mcp, given("two")).await.unwrap().text, "done");
    let nobody = call_with(&mcp, CallInput::Nobody).await.unwrap_err();
    assert!(nobody.contains("only in a run somebody can be asked"), "{nobody}");
}

/// Servers of older versions would ask while the call waits.
#[tokio::test]
async fn a_server_of_an_older_version_is_told_that_nobody_can_be_asked_and_its_list_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let changes = "echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}'";
    let note = format!("printf '%s' \"$line\" > {}", said.display());
    let (mcp, _) = server(folder.path(), &[("CALL", changes)]);
    discover(&mcp).await.unwrap();
    assert!(!mcp.has_another_list(&Workspace::default(), "s"));
    call(&mcp).await.unwrap();
    // What a server says by itself is heard of a moment later.
    let heard = async {
        while !mcp.has_another_list(&Workspace::default(), "s") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), heard).await.unwrap();
    discover(&mcp).await.unwrap();
    assert!(!mcp.has_another_list(&Workspace::default(), "s"), "whoever has asked for it knows it");

    let begun = SERVER.replace("*'\"initialize\"'*) echo", "*'\"initialize\"'*) eval \"$NOTE\"; echo");
    let variables = serde_json::json!({ "STARTS": folder.path().join("starts"), "AFTER": ":", "CALL": ":", "SLOW": "0", "NOTE": note });
    let program = serde_json::json!({ "command": "sh", "args": ["-c", begun], "env": variables });
    let file = serde_json::json!({ "mcpServers": { "s": program } }).to_string();
    let mcp = Mcp::new(read_servers(&file, &|_| None).unwrap(), Reach::default(), None);
    call(&mcp).await.unwrap();
    let said = fs::read_to_string(said).unwrap();
    assert!(said.contains("initialize") && !said.contains("elicitation"), "{said}");
}

/// What the operator does not offer is not listed, not found and not called, whatever is configured.
#[tokio::test]
async fn a_server_is_used_by_its_workspaces_and_only_for_its_tools() {
    let folder = tempfile::tempdir().unwrap();
    let (mut mcp, starts) = server(folder.path(), &[]);
    let (ours, theirs) = (Workspace::new("ours").unwrap(), Workspace::new("theirs").unwrap());
    let offer = |tool: &str| Offer {
        workspaces: Some([ours.clone()].into()),
        tools: Some([tool.to_owned(), "more".to_owned()].into()),
    };
    mcp.servers.get_mut("s").unwrap().offer = offer("other");
    let item = serde_json::json!({ "type": "mcp-tool", "server": "s", "mcp-tool": "one" }).to_string();
    let Ok(trellis_domain::config::ConfigItem::Tool(tool)) = trellis_domain::config::validate("tool", "one", &item)
    else {
        panic!("it is a tool")
    };
    let obstacle = |mcp: &Mcp, workspace| mcp.obstacle(workspace, &tool, &Settings::default());
    let call = |mcp: &Mcp, workspace: &Workspace| mcp.tool(workspace, "s", "one").map(drop);

    // A tool that is not on the list.
    assert_eq!(mcp.discovered(&ours, "s").await.unwrap().tools, []);
    let why = "the operator does not offer the tool `one` of the MCP server `s`; offered are: more, other";
    assert_eq!(obstacle(&mcp, &ours).as_deref(), Some(why));
    assert_eq!(call(&mcp, &ours), Err(why.to_owned()));
    assert_eq!(mcp.refusal(&ours, "s", "one").as_deref(), Some(why));

    // One that is.
    mcp.servers.get_mut("s").unwrap().offer = offer("one");
    assert_eq!(mcp.discovered(&ours, "s").await.unwrap().tools.len(), 1);
    assert_eq!((obstacle(&mcp, &ours), call(&mcp, &ours), mcp.names(&ours)), (None, Ok(()), vec!["s".to_owned()]));
    assert_eq!(starts(), 1);

    // Another workspace hears what it hears of a server that does not exist.
    let unknown = mcp.server(&theirs, "nobody").unwrap_err().replace("nobody", "s");
    assert_eq!(mcp.discovered(&theirs, "s").await.unwrap_err(), unknown);
    assert_eq!(obstacle(&mcp, &theirs), Some(unknown.clone()));
    assert_eq!((call(&mcp, &theirs), mcp.names(&theirs)), (Err(unknown), Vec::new()));
    assert_eq!(mcp.refusal(&theirs, "s", "another"), None);
}

#[tokio::test]
async fn connections_of_workspaces_are_apart_and_bounded() {
    let mcp = Mcp::new(BTreeMap::new(), Reach { hosts: vec!["a.example".to_owned()], private: false }, None);
    let place = |workspace: &str, token: u32| Place {
        workspace: Workspace::new(workspace).unwrap(),
        url: "https://a.example/mcp".to_owned(),
        token: Some(token.to_string()),
    };
    let address = || Address { url: Url::parse("https://a.example/mcp").unwrap(), headers: Vec::new() };
    let one = mcp.kept(place("one", 0), address());
    assert!(Arc::ptr_eq(&one, &mcp.kept(place("one", 0), address())));
    assert!(!Arc::ptr_eq(&one, &mcp.kept(place("two", 0), address())));
    for token in 1..200 {
        mcp.kept(place("two", token), address());
        mcp.kept(place("one", 0), address());
    }
    assert_eq!(mcp.others.lock().len(), MOST_KEPT);
    assert!(Arc::ptr_eq(&one, &mcp.kept(place("one", 0), address())), "what is used stays");
}
