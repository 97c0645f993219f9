use super::*;
use crate::memory::scripted::ScriptedTools;
use crate::ports::{BoxFuture, Discovered, LeftOutTool, RealWorld, ToolList, ToolServers};
use serde_json::json;
use std::sync::Arc;
use trellis_domain::config::ToolEffect;
use trellis_domain::limits::Limits;
use trellis_domain::{Scope, Workspace};

fn item(key: &str, value: &Value) -> StoredItem {
    StoredItem { kind: KIND.to_owned(), key: key.to_owned(), value: value.to_string() }
}

fn settings() -> Arc<Settings> {
    let pay = json!({ "type": "http", "url": "https://a.example/pay", "method": "POST" });
    Arc::new(Settings::take(1, [item("ask", &json!({ "type": "text-completion" })), item("pay", &pay)]).0)
}

async fn tried(name: &str, may_be_unsafe: bool) -> Result<TrialOutcome, TrialError> {
    let tools = ScriptedTools::new(|call| match call.arguments.get("fail") {
        Some(_) => Err("it is broken".to_owned()),
        None => Ok(format!("{} was called", call.tool.name)),
    });
    let arguments = if name == "ask" { json!({ "fail": true }) } else { json!({}) };
    let arguments = arguments.as_object().unwrap().clone();
    let limits = Limits::default();
    let trial =
        Trial { scope: Scope::default(), settings: settings(), name, arguments, may_be_unsafe, limits: &limits };
    try_tool(&tools, &RealWorld, trial).await
}

#[tokio::test]
async fn an_unsafe_tool_is_only_called_if_that_is_said() {
    let refused = tried("pay", false).await.unwrap_err();
    assert_eq!(refused, TrialError::Unsafe("pay".to_owned()));
    assert_eq!(tried("pay", true).await.unwrap().observation, "pay was called");
    let failed = tried("ask", false).await.unwrap();
    assert_eq!((failed.failed, failed.observation.as_str()), (true, "Error: it is broken"));
    assert_eq!(tried("nothing", true).await.unwrap_err(), TrialError::Unknown("nothing".to_owned()));
}

#[test]
fn an_item_is_found_by_its_key_before_its_name() {
    let items = [item("a", &json!({ "name": "b" })), item("b", &json!({ "name": "c" })), item("x", &json!("no tool"))];
    let found = |name: &str| find_item(&items, name).map(|item| item.key.as_str());
    assert_eq!((found("a"), found("b"), found("c"), found("d")), (Some("a"), Some("b"), Some("b"), None));
}

#[derive(Debug)]
struct TwoServers;

impl ToolServers for TwoServers {
    fn names(&self, _: &Workspace) -> Vec<String> {
        vec!["files".to_owned(), "gone".to_owned()]
    }

    fn discover<'a>(&'a self, _: &'a Workspace, server: &'a str) -> BoxFuture<'a, Result<ToolList, String>> {
        let tool = |name: &str| Discovered {
            server: server.to_owned(),
            name: name.to_owned(),
            description: String::new(),
            effect: ToolEffect::Read,
            arguments: Vec::new(),
        };
        let found = if server == "gone" {
            Err("it does not answer".to_owned())
        } else {
            let (name, reason) = ("torn".to_owned(), "it has no schema".to_owned());
            let left_out = vec![LeftOutTool { server: server.to_owned(), name, reason }];
            Ok(ToolList { tools: ["read", "write", "read"].map(tool).to_vec(), left_out })
        };
        Box::pin(std::future::ready(found))
    }
}

#[tokio::test]
async fn servers_are_asked_and_what_they_have_becomes_items() {
    let workspace = Workspace::default();
    let ask = async |server, only: &[&str]| {
        let only: Vec<_> = only.iter().map(|name| (*name).to_owned()).collect();
        discover(Some(&TwoServers), &workspace, server, &only).await
    };
    let all = ask(None, &[]).await.unwrap();
    assert_eq!((all.tools.len(), all.failed), (3, vec![("gone".to_owned(), "it does not answer".to_owned())]));
    let new = new_tools(&all.tools, &[item("read", &json!({ "type": "http", "name": "read" }))]);
    let keys: Vec<_> = new.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!((keys, new.twice.len(), new.refused.len()), (vec!["files_read", "write"], 1, 0));
    let mut odd = all.tools.clone();
    odd[0].arguments = vec![json!({ "name": "" })];
    let rest = new_tools(&odd, &[]);
    let keys: Vec<_> = rest.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["write", "read"], "one that can be none keeps nobody from the others, nor from its name");
    let (server, name, problem) = &rest.refused[0];
    assert_eq!((server.as_str(), name.as_str()), ("files", "read"));
    assert!(problem.to_string().contains("entry 1 has no name"), "{problem}");
    let one = ask(Some("files"), &["write"]).await.unwrap();
    assert_eq!((one.tools.len(), one.left_out.len(), all.left_out.len()), (1, 0, 1));
    let torn = ask(Some("files"), &["torn"]).await.unwrap();
    assert_eq!((torn.tools.len(), torn.left_out[0].reason.as_str()), (0, "it has no schema"));
    let unknown = ask(Some("other"), &[]).await.unwrap_err().to_string();
    assert_eq!(unknown, "there is no MCP server `other`; there are files, gone");
    assert_eq!(ask(Some("files"), &["erase"]).await, Err(DiscoverError::UnknownTool("erase".to_owned())));
    assert_eq!(discover(None, &workspace, None, &[]).await, Err(DiscoverError::NoServers));
}
