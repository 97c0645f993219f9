use super::*;
use std::fs;
use std::time::Duration;

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
    *'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"one\",\"inputSchema\":{}}]$MORE}}"; $AFTER ;;
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
    (Mcp::new(servers, Reach::default()), move || fs::read_to_string(&starts).unwrap_or_default().lines().count())
}

#[tokio::test]
async fn a_connection_is_kept_and_shared() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, starts) = server(folder.path(), &[]);
    let (one, other) = tokio::join!(mcp.discover("s"), mcp.discover("s"));
    assert_eq!((one.unwrap()[0].name.as_str(), other.unwrap().len()), ("one", 1));
    mcp.discover("s").await.unwrap();
    assert_eq!(starts(), 1);
}

#[tokio::test]
async fn a_server_that_died_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, starts) = server(folder.path(), &[("AFTER", "exit 0")]);
    mcp.discover("s").await.unwrap();
    // That it has gone away is heard of a moment later.
    until_closed(&mcp).await;
    mcp.discover("s").await.unwrap();
    assert_eq!(starts(), 2);
}

async fn until_closed(mcp: &Mcp) {
    let client = Arc::clone(mcp.server("s").unwrap());
    let closed = async {
        while client.open().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), closed).await.unwrap();
}

async fn call(mcp: &Mcp) -> Result<String, String> {
    let client = mcp.server("s").unwrap();
    client.call(CallToolRequestParams::new("one"), Duration::from_secs(1)).await.and_then(content::told)
}

#[tokio::test]
async fn a_server_that_hangs_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let once = "[ -e \"$STARTS.hung\" ] || { touch \"$STARTS.hung\"; sleep 100; }";
    let (mcp, starts) = server(folder.path(), &[("CALL", once)]);
    assert!(call(&mcp).await.unwrap_err().contains("no answer within 1 s"));
    until_closed(&mcp).await;
    assert_eq!(call(&mcp).await, Ok(String::new()));
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
async fn a_list_without_end_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, _) = server(folder.path(), &[("MORE", ",\"nextCursor\":\"again\"")]);
    assert_eq!(mcp.discover("s").await, Err("its list of tools has no end".to_owned()));
}

#[tokio::test]
async fn a_program_that_begins_slowly_is_found_by_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, starts) = server(folder.path(), &[("SLOW", "1")]);
    let first = tokio::time::timeout(Duration::from_millis(300), call(&mcp)).await;
    assert!(first.is_err(), "it has not begun yet");
    assert_eq!(call(&mcp).await, Ok(String::new()));
    assert_eq!(starts(), 1);
}

/// As one that is installed with its first start.
#[tokio::test]
async fn a_program_that_answers_after_ten_seconds_is_begun_with_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, starts) = server(folder.path(), &[("SLOW", "11"), ("ONCE", "yes")]);
    assert_eq!(mcp.discover("s").await.unwrap().len(), 1);
    assert_eq!(starts(), 2);
}

#[tokio::test]
async fn connections_of_workspaces_are_apart_and_bounded() {
    let mcp = Mcp::new(BTreeMap::new(), Reach { hosts: vec!["a.example".to_owned()], private: false });
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
