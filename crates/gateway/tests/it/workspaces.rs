//! A token reaches its workspaces and no others, whichever way it comes.

use crate::house::{House, Setup, Socket};
use serde_json::{Map, Value, json};
use trellis_domain::Workspace;
use trellis_gateway::{Access, Identity, Token};

const OPERATOR: &str = "Authorization: Bearer op\r\n";
const ALICE: &str = "Authorization: Bearer al\r\n";
/// What is only in the workspace that is not Alice's.
const SECRET: &str = "xyzzy-of-others";

/// Paths that have nothing to do with a workspace. All others are tried.
const OF_NO_WORKSPACE: [&str; 5] = ["/healthz", "/readyz", "/ontology", "/api/v1/auth/{what}", "/api/v1/socket"];
const OF_WORKSPACES: [&str; 6] = ["librarian", "collection-management", "config", "flow", "iam", "knowledge"];
const OF_FLOWS: [&str; 6] = ["agent", "prompt", "text-completion", "triples", "sparql", "graph-rag"];

async fn house() -> House {
    let workspaces = ["acme", "press"].map(|name| Workspace::new(name).unwrap());
    let access = Access::Tokens(vec![
        (Token::new("op"), Identity::operator()),
        (Token::new("al"), Identity::user("alice", workspaces)),
        (Token::new("bo"), Identity::user("bob", [])),
    ]);
    House::with(Setup { access, ..Setup::default() }).await
}

async fn post(house: &House, who: &str, path: &str, body: &Value) -> (u16, Value) {
    house.http("POST", path, who, body.to_string().as_bytes()).await
}

/// Something of everything in the workspace `default`, and the id of its run.
async fn furnish(house: &House) -> String {
    let items = json!({"items": [{"type": "note", "key": "secret", "value": format!("\"{SECRET}\"")}]});
    assert_eq!(post(house, OPERATOR, "/api/v1/configuration", &items).await.0, 200);
    let about = json!({"id": "doc", "title": SECRET, "kind": "text/plain"});
    let add = json!({"operation": "add-document", "document-metadata": about, "content": "eHl6enk="});
    assert!(post(house, OPERATOR, "/api/v1/librarian", &add).await.1.get("error").is_none());
    let question = json!({"question": json!({"answer": SECRET}).to_string(), "pattern": "react"});
    let (status, begun) = post(house, OPERATOR, "/api/v1/runs", &question).await;
    assert_eq!(status, 202);
    begun["run_id"].as_str().unwrap().to_owned()
}

/// Members that suit any operation of any service.
fn members() -> Map<String, Value> {
    let key = json!({"type": "note", "key": "secret"});
    let value = json!({"type": "note", "key": "secret", "value": "changed"});
    let everything = json!({
        "type": "note", "keys": [key], "values": [value], "document-id": "doc", "flow-id": "default", "query": "ASK {}",
        "workspace-id": "default", "collection": "default", "question": "{}", "id": "question", "prompt": "x",
        "document-metadata": {"id": "doc", "kind": "text/plain"}, "content": "", "total-size": 1, "upload-id": "u",
    });
    everything.as_object().unwrap().clone()
}

const OPERATIONS: [&str; 30] = [
    "get",
    "put",
    "delete",
    "list",
    "getvalues",
    "config",
    "list-documents",
    "get-document-metadata",
    "get-document-content",
    "stream-document",
    "add-document",
    "update-document",
    "remove-document",
    "begin-upload",
    "list-uploads",
    "list-processing",
    "list-collections",
    "update-collection",
    "delete-collection",
    "list-flows",
    "get-flow",
    "start-flow",
    "list-blueprints",
    "get-blueprint",
    "put-blueprint",
    "get-workspace",
    "create-workspace",
    "whoami",
    "list-workspaces",
    "list-models",
];

/// The paths under which a template is tried.
fn paths(template: &str, run: &str) -> Vec<String> {
    let filled =
        template.replace("{id}", run).replace("{type}", "note").replace("{key}", "secret").replace("{flow}", "default");
    let kinds: &[&str] = match filled.as_str() {
        "/api/v1/{kind}" => &OF_WORKSPACES,
        "/api/v1/flow/default/service/{kind}" => &OF_FLOWS,
        _ => return vec![filled],
    };
    kinds.iter().map(|kind| filled.replace("{kind}", kind)).collect()
}

#[tokio::test]
async fn every_path_refuses_the_workspace_of_others() {
    let house = house().await;
    let run = furnish(&house).await;
    let (_, document) = house.http("GET", "/api/openapi.json", "", b"").await;
    let mut tried = 0;
    for (template, item) in document["paths"].as_object().unwrap() {
        if OF_NO_WORKSPACE.contains(&template.as_str()) {
            continue;
        }
        for (method, path) in item
            .as_object()
            .unwrap()
            .keys()
            .flat_map(|method| paths(template, &run).into_iter().map(move |path| (method, path)))
        {
            for name in ["default", "nowhere", "no name at all /"] {
                let named = name.replace(' ', "%20").replace('/', "%2F");
                let more = if path.ends_with("document-stream") { "&document-id=doc" } else { "" };
                let address = format!("{path}?workspace={named}{more}");
                // Services of the original name it in the body, our own paths in the address.
                let mut body = members();
                body.insert("workspace".to_owned(), json!(name));
                body.insert("operation".to_owned(), json!("get"));
                let ours = ["/api/v1/runs", "/api/v1/configuration", "/api/v1/sparql"]
                    .iter()
                    .any(|root| path.starts_with(root));
                let body = if ours { json!({"question": "{}", "query": "ASK {}", "items": []}) } else { json!(body) };
                let reply = house.http(&method.to_uppercase(), &address, ALICE, body.to_string().as_bytes()).await;
                assert_eq!(reply.0, 403, "{method} {address}: {}", reply.1);
                assert!(!reply.1.to_string().contains(SECRET), "{method} {address}");
                tried += 1;
            }
        }
    }
    assert!(tried > 50, "{tried}");
    let (_, kept) = house.http("GET", "/api/v1/configuration/note/secret/history", OPERATOR, b"").await;
    assert_eq!(kept["versions"].as_array().unwrap().len(), 1, "nothing was changed");
}

#[tokio::test]
async fn every_operation_refuses_the_workspace_of_others_on_a_socket_too() {
    let house = house().await;
    furnish(&house).await;
    let mut socket = Socket::connect(&house.address, &[]).await.unwrap();
    socket.send(json!({"type": "auth", "token": "al"})).await;
    assert_eq!(socket.next().await, json!({"type": "auth-ok", "default_workspace": "acme"}));
    let denied = json!({"message": "access denied", "type": "access-denied"});
    for (flow, services) in [(Value::Null, OF_WORKSPACES), (json!("default"), OF_FLOWS)] {
        for (service, operation) in services.iter().flat_map(|service| OPERATIONS.map(|operation| (service, operation)))
        {
            let mut request = members();
            request.insert("operation".to_owned(), json!(operation));
            let frame =
                json!({"id": "1", "workspace": "default", "service": service, "flow": flow, "request": request});
            socket.send(frame).await;
            assert_eq!(
                socket.next().await,
                json!({"id": "1", "error": denied, "complete": true}),
                "{service} {operation}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_told_without_a_name_is_the_callers_own() {
    let house = house().await;
    let run = furnish(&house).await;
    let ask = async |service: &str, operation: &str| {
        let mut request = members();
        request.insert("operation".to_owned(), json!(operation));
        post(&house, ALICE, &format!("/api/v1/{service}"), &Value::Object(request)).await.1
    };
    let names = |reply: &Value, member: &str, name: &str| -> Vec<String> {
        let list = reply[member].as_array().unwrap_or_else(|| panic!("{reply}"));
        list.iter().map(|entry| entry[name].as_str().unwrap().to_owned()).collect()
    };
    for operation in ["list-workspaces", "list-my-workspaces"] {
        assert_eq!(names(&ask("iam", operation).await, "workspaces", "id"), ["acme", "press"]);
    }
    assert_eq!(ask("iam", "whoami").await["user"]["roles"], json!(["writer"]));
    for operation in ["get-workspace", "create-workspace"] {
        assert_eq!(ask("iam", operation).await["error"]["type"], "access-denied", "{operation}");
    }
    assert_eq!(ask("config", "getvalues-all-ws").await["values"], json!([]));
    let everywhere = json!({"operation": "getvalues-all-ws", "type": "note"});
    let (_, all) = post(&house, OPERATOR, "/api/v1/config", &everywhere).await;
    assert_eq!(names(&all, "values", "workspace"), ["default"], "the operator sees all");
    for path in [format!("/api/v1/runs/{run}"), "/api/v1/document-stream?document-id=doc".to_owned()] {
        assert_eq!(house.http("GET", &path, ALICE, b"").await.0, 404, "{path}");
    }
    let (_, runs) = house.http("GET", "/api/v1/runs", ALICE, b"").await;
    assert_eq!(runs["runs"], json!([]));
    assert_eq!(house.http("GET", "/api/metrics", ALICE, b"").await.0, 403, "it counts the runs of all");
    assert_eq!(house.http("GET", "/api/metrics", OPERATOR, b"").await.0, 200);
    assert_eq!(house.http("GET", "/readyz", ALICE, b"").await, (200, json!({"status": "ready"})));
}

#[tokio::test]
async fn a_workspace_that_was_given_to_somebody_exists_when_it_is_used() {
    let house = house().await;
    let question = json!({"question": json!({"answer": "a"}).to_string(), "pattern": "react"});
    let asked = post(&house, ALICE, "/api/v1/runs?workspace=press", &question).await;
    assert_eq!(asked.0, 202, "{}", asked.1);
    assert_eq!(post(&house, OPERATOR, "/api/v1/runs?workspace=acme", &question).await.0, 404, "nobody has used it yet");
    assert_eq!(house.http("GET", "/api/v1/runs", ALICE, b"").await.0, 200);
    assert_eq!(post(&house, OPERATOR, "/api/v1/runs?workspace=acme", &question).await.0, 202);
    let bob = "Authorization: Bearer bo\r\n";
    assert_eq!(house.http("GET", "/api/v1/runs?workspace=acme", bob, b"").await.0, 403);
    assert_eq!(house.http("GET", "/api/v1/runs", bob, b"").await.0, 200, "a line without workspaces means `default`");
}
