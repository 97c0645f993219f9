use super::*;
use std::fs;

/// Answers one list and ends, as a server that dies between two calls.
const SERVER: &str = r#"
echo x >> "$STARTS"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"what?\"}}" ;;
    *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}" ;;
    *'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"one\",\"inputSchema\":{}}]}}"; $AFTER ;;
  esac
done"#;

/// A server, and how often it was started.
fn server(folder: &std::path::Path, after: &str) -> (Mcp, impl Fn() -> usize + use<>) {
    let starts = folder.join("starts");
    let variables = serde_json::json!({ "STARTS": starts.to_str().unwrap(), "AFTER": after });
    let program = serde_json::json!({ "command": "sh", "args": ["-c", SERVER], "env": variables });
    let file = serde_json::json!({ "mcpServers": { "s": program } }).to_string();
    let servers = read_servers(&file, &|_| None).unwrap();
    (Mcp::new(servers, Reach::default()), move || fs::read_to_string(&starts).unwrap_or_default().lines().count())
}

#[tokio::test]
async fn a_connection_is_kept_and_shared() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, starts) = server(folder.path(), ":");
    let (one, other) = tokio::join!(mcp.discover("s"), mcp.discover("s"));
    assert_eq!((one.unwrap()[0].name.as_str(), other.unwrap().len()), ("one", 1));
    mcp.discover("s").await.unwrap();
    assert_eq!(starts(), 1);
}

#[tokio::test]
async fn a_server_that_died_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, starts) = server(folder.path(), "exit 0");
    mcp.discover("s").await.unwrap();
    let line = Arc::clone(mcp.server("s").unwrap());
    // That it has gone away is heard of a moment later.
    tokio::time::timeout(Duration::from_secs(20), async {
        while line.open().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    mcp.discover("s").await.unwrap();
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
