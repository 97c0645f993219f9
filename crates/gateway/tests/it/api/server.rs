//! A server for one test, and a client that believes nothing but the API's document.

use crate::house::{House, Setup};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpStream;
use trellis_domain::RunId;
use trellis_gateway::Phase;

pub(super) struct Api {
    pub(super) house: House,
    document: Value,
}

impl Api {
    pub(super) async fn open() -> Self {
        Self::with(Setup::default()).await
    }

    pub(super) async fn with(setup: Setup) -> Self {
        let mut api = Self { house: House::with(setup).await, document: Value::Null };
        api.document = api.raw("GET", "/api/openapi.json", "", "").await.json();
        api
    }

    /// Says that the server is about to stop. What is served already goes on for a while.
    pub(super) fn say_closing(&self) {
        self.house.close.send_replace(Phase::Closed);
    }

    async fn connect(&self, method: &str, path: &str, headers: &str, body: &str) -> BufReader<TcpStream> {
        BufReader::new(self.house.request(method, path, headers, body.as_bytes()).await)
    }

    async fn raw(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let mut reader = self.connect(method, path, headers, body).await;
        let mut reply = Reply::head(&mut reader).await;
        let mut body = Vec::new();
        drop(reader.read_to_end(&mut body).await);
        reply.body = String::from_utf8(body).unwrap();
        reply
    }

    /// One request, whose reply is as the document says.
    pub(super) async fn call(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let reply = self.raw(method, path, headers, body).await;
        self.hold_against_document(method, path, &reply);
        reply
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, "", "").await
    }

    pub(super) async fn post(&self, path: &str, headers: &str, body: &Value) -> Reply {
        self.call("POST", path, headers, &body.to_string()).await
    }

    /// A run for this question.
    pub(super) async fn begin(&self, body: &Value) -> RunId {
        let reply = self.post("/api/v1/runs", "", body).await;
        assert_eq!(reply.status, 202, "{}", reply.body);
        RunId::new(reply.json()["run_id"].as_str().unwrap()).unwrap()
    }

    /// A run that was followed to its end.
    pub(super) async fn finish(&self, body: &Value) -> RunId {
        let run = self.begin(body).await;
        self.events(&format!("/api/v1/runs/{run}/events"), "").await.rest().await;
        run
    }

    pub(super) async fn events(&self, path: &str, headers: &str) -> Events {
        let mut reader = self.connect("GET", path, headers, "").await;
        let reply = Reply::head(&mut reader).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")), "{reply:?}");
        self.hold_against_document("GET", path, &reply);
        let shape = json!({"components": self.document["components"], "$ref": "#/components/schemas/RunEvent"});
        let shape = jsonschema::validator_for(&shape).unwrap();
        Events { reader, unread: String::new(), comments: 0, shape }
    }

    fn operation(&self, method: &str, path: &str) -> &Value {
        let wanted: Vec<_> = path.split('?').next().unwrap().split('/').collect();
        let fits = |template: &&String| {
            let parts: Vec<_> = template.split('/').collect();
            let same = |(part, wanted): (&&str, &&str)| part.starts_with('{') || part == wanted;
            parts.len() == wanted.len() && parts.iter().zip(&wanted).all(same)
        };
        let paths = self.document["paths"].as_object().unwrap();
        let method = method.to_lowercase();
        // A path without variables goes before one with, if it has the method.
        let fitting = paths.keys().filter(fits);
        let template = fitting.min_by_key(|path| (paths[*path].get(&method).is_none(), path.matches('{').count()));
        let template = template.unwrap_or_else(|| panic!("{path} is not in the document"));
        &paths[template][method]
    }

    fn hold_against_document(&self, method: &str, path: &str, reply: &Reply) {
        let told = &self.operation(method, path)["responses"][reply.status.to_string()];
        assert!(told.is_object(), "{method} {path}: the document does not know {}: {}", reply.status, reply.body);
        let kind = reply.header("content-type").map(|kind| kind.split(';').next().unwrap());
        let Some(kind) = kind else {
            assert!(told.get("content").is_none(), "{method} {path}: a body was promised for {}", reply.status);
            return;
        };
        let schema = &told["content"][kind]["schema"];
        assert!(schema.is_object(), "{method} {path}: the document does not know {kind} for {}", reply.status);
        if kind == "application/json" {
            let schema = json!({"components": self.document["components"], "allOf": [schema]});
            let faults = jsonschema::validator_for(&schema).unwrap();
            let faults: Vec<_> = faults.iter_errors(&reply.json()).map(|fault| fault.to_string()).collect();
            assert!(faults.is_empty(), "{method} {path}: {faults:?}: {}", reply.body);
        }
    }

    pub(super) async fn page(&self) -> String {
        let page = self.raw("GET", "/api/docs", "", "").await;
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        page.body
    }

    pub(super) fn document(&self) -> &Value {
        &self.document
    }
}

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Reply {
    async fn head(reader: &mut BufReader<TcpStream>) -> Self {
        let (mut line, mut headers) = (String::new(), Vec::new());
        reader.read_line(&mut line).await.unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no reply: {line:?}")).parse().unwrap();
        loop {
            line.clear();
            reader.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        Self { status, headers, body: String::new() }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{:?} is no JSON", self.body))
    }

    /// What a refusal says.
    pub(super) fn refusal(&self) -> (u16, String) {
        (self.status, self.json()["error"]["message"].as_str().unwrap().to_owned())
    }
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    pub(super) id: Option<u64>,
    pub(super) event: String,
    pub(super) data: Value,
}

/// A stream of server-sent events. Dropping it cuts the connection.
pub(super) struct Events {
    reader: BufReader<TcpStream>,
    unread: String,
    pub(super) comments: usize,
    /// What the document says of events.
    shape: jsonschema::Validator,
}

impl Events {
    /// The next event; none once the stream is over.
    pub(super) async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.unread = rest;
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let Some(data) = field("data:") else {
                    self.comments += 1;
                    continue;
                };
                let id = field("id:").map(|id| id.parse().unwrap());
                let event = field("event:").unwrap_or_default().to_owned();
                let data: Value = serde_json::from_str(data).unwrap();
                if event != "record" {
                    let faults: Vec<_> = self.shape.iter_errors(&data).map(|fault| fault.to_string()).collect();
                    assert!(faults.is_empty() && data["type"] == event, "{faults:?}: {data}");
                }
                return Some(Told { id, event, data });
            }
            let chunk = tokio::time::timeout(Duration::from_secs(30), self.chunk()).await.expect("the stream goes on");
            self.unread.push_str(&chunk?);
        }
    }

    /// One chunk of the body; none at its end.
    async fn chunk(&mut self) -> Option<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.ok()?;
        let length = usize::from_str_radix(line.trim_end(), 16).ok().filter(|length| *length > 0)?;
        let mut bytes = vec![0; length + 2];
        self.reader.read_exact(&mut bytes).await.ok()?;
        bytes.truncate(length);
        Some(String::from_utf8(bytes).unwrap())
    }

    pub(super) async fn rest(mut self) -> Vec<Told> {
        let mut all = Vec::new();
        while let Some(told) = self.next().await {
            all.push(told);
        }
        all
    }
}

/// Those events that last.
pub(super) fn durable(told: &[Told]) -> Vec<Told> {
    told.iter().filter(|told| told.id.is_some()).cloned().collect()
}
