//! The services around an orchestrator, scripted, with exchanges and queues as the original declares them. And whoever asks.

use super::PATIENCE;
use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, ExchangeKind};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_orchestrator::ports::{RealWorld, World as _};
use trellis_servers::RabbitMq;

pub(super) struct Neighbours {
    connection: Connection,
    state: Arc<State>,
}

/// What outlives a connection.
#[derive(Default)]
struct State {
    config: Mutex<Config>,
    /// What services were asked.
    heard: Mutex<Vec<(String, Value)>>,
    /// Responses by the id of the request.
    responses: Mutex<Vec<(String, Value)>>,
    held: watch::Sender<Option<Held>>,
}

/// Replies of an agent that has made so many steps stop after so many pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) steps: usize,
    pub(super) pieces: usize,
}

/// Values by workspace, type and key.
#[derive(Default)]
struct Config {
    version: u64,
    /// The workspace and type that nobody is told of.
    refused: Option<(String, String)>,
    values: BTreeMap<(String, String, String), String>,
}

/// Stands for an item whose value the service has lost.
const NOTHING: &str = "(nothing)";

/// What a service says to a request.
type Script = fn(&State, &Value) -> Vec<Value>;

/// The services with their queues for requests and responses.
const SERVICES: [(&str, &str, &str, Script); 5] = [
    ("config", "request.config", "response.config", |state, asked| vec![state.config.lock().answer(asked)]),
    ("prompt", "request.prompt:default:main", "response.prompt:default:main", |_, asked| prompt(asked)),
    ("mcp-tool", "request.mcp-tool:default:main", "response.mcp-tool:default:main", |_, asked| vec![rain(asked)]),
    ("librarian", "request.librarian:default", "response.librarian:default", |_, _| vec![json!({"error": null})]),
    ("triples", "flow.triples-store:default:main", "", |_, _| Vec::new()),
];
const REQUESTS: &str = "tg.request.agent:default:main";

impl Neighbours {
    pub(super) async fn start(server: &RabbitMq) -> Self {
        let neighbours = Self { connection: connect(server).await, state: Arc::default() };
        neighbours.serve_all().await;
        neighbours.listen().await;
        neighbours
    }

    /// The services are there again after RabbitMQ was gone; whoever asks is not yet.
    pub(super) async fn come_back(&mut self, server: &RabbitMq) {
        self.connection = connect(server).await;
        self.serve_all().await;
    }

    async fn serve_all(&self) {
        for (name, request, response, script) in SERVICES {
            self.serve(name, request, response, script).await;
        }
    }

    async fn channel(&self) -> Channel {
        self.connection.create_channel().await.unwrap()
    }

    /// One more service of the flow: what it is asked is heard under its name.
    pub(super) async fn answer(&self, name: &'static str, place: &str, replies: fn(&Value) -> Vec<Value>) {
        let [request, response] = ["request", "response"].map(|class| format!("{class}.{place}"));
        self.serve(name, &request, &response, move |_: &State, asked: &Value| replies(asked)).await;
    }

    async fn serve(
        &self,
        name: &'static str,
        request: &str,
        response: &str,
        script: impl Fn(&State, &Value) -> Vec<Value> + Send + Sync + 'static,
    ) {
        let (channel, state) = (self.channel().await, Arc::clone(&self.state));
        let response = response.to_owned();
        let mut requests = subscribe(&channel, request, &format!("tg.{request}.neighbours")).await;
        tokio::spawn(async move {
            while let Some(Ok(delivery)) = requests.next().await {
                let asked: Value = serde_json::from_slice(&delivery.data).unwrap();
                state.heard.lock().push((name.to_owned(), asked.clone()));
                let steps = if name == "prompt" { steps_of(&asked) } else { None };
                for (piece, reply) in script(&state, &asked).into_iter().enumerate() {
                    state.may_send(steps, piece).await;
                    // With the connection, whoever waits for it is gone as well.
                    if publish(&channel, &response, &delivery.properties, &reply).await.is_err() {
                        return;
                    }
                }
                drop(delivery.ack(BasicAckOptions::default()).await);
            }
        });
    }

    /// Writes an item, and tells of it.
    pub(super) async fn put(&self, kind: &str, key: &str, value: &Value) {
        self.note_item("default", kind, key, Some(value));
        self.tell_of(kind).await;
    }

    /// Removes an item, and tells of it.
    pub(super) async fn remove(&self, kind: &str, key: &str) {
        self.state.config.lock().values.remove(&("default".to_owned(), kind.to_owned(), key.to_owned()));
        self.tell_of(kind).await;
    }

    async fn tell_of(&self, kind: &str) {
        let version = {
            let mut config = self.state.config.lock();
            config.version += 1;
            config.version
        };
        self.notify(&json!({"version": version, "changes": {kind: ["default"]}, "workspace_changes": null})).await;
    }

    /// Tells everybody something of the configuration.
    pub(super) async fn notify(&self, notice: &Value) {
        let channel = self.channel().await;
        declare(&channel, "tg.notify.config").await;
        publish(&channel, "notify.config", &BasicProperties::default(), notice).await.unwrap();
    }

    /// Waits until the queue of requests is there without anybody who takes what is in it.
    pub(super) async fn until_nobody_takes_requests(&self) {
        let queue = format!("{REQUESTS}.agent-manager--default--main--request");
        let is_left = async {
            loop {
                let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
                let channel = self.channel().await;
                let found = channel.queue_declare(queue.as_str().into(), passive, FieldTable::default()).await;
                if found.expect("the queue is there").consumer_count() == 0 {
                    return;
                }
                RealWorld.sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, is_left).await.expect("nobody takes requests any more");
    }

    /// Replies stop there, until they may go on.
    pub(super) fn hold(&self, held: Option<Held>) {
        self.state.held.send_replace(held);
    }

    /// What a service was asked.
    pub(super) fn heard(&self, name: &str) -> Vec<Value> {
        self.state.heard.lock().iter().filter(|(of, _)| of == name).map(|(_, value)| value.clone()).collect()
    }

    /// Waits until a service has heard something.
    pub(super) async fn until(&self, name: &str, is_it: impl Fn(&Value) -> bool) {
        let heard = || self.heard(name).iter().any(&is_it);
        assert!(so_in_time(heard).await, "{name}: {:?}", self.heard(name));
    }

    /// Waits until a service has been asked more often than that.
    pub(super) async fn until_more(&self, name: &str, before: usize) {
        assert!(so_in_time(|| self.heard(name).len() > before).await, "{name} is not asked again");
    }

    /// Hears the responses from now on, as the gateway does.
    pub(super) async fn listen(&self) {
        let mut responses = subscribe(&self.channel().await, "response.agent:default:main", "").await;
        let state = Arc::clone(&self.state);
        tokio::spawn(async move {
            while let Some(Ok(delivery)) = responses.next().await {
                let headers = delivery.properties.headers().as_ref();
                let Some(AMQPValue::LongString(id)) = headers.and_then(|headers| headers.inner().get("id")) else {
                    continue;
                };
                let response = serde_json::from_slice(&delivery.data).unwrap();
                state.responses.lock().push((id.to_string(), response));
            }
        });
    }

    /// Asks an agent: the id of the request.
    pub(super) async fn begin(&self, request: &Value) -> String {
        let channel = self.channel().await;
        declare(&channel, REQUESTS).await;
        let id = RealWorld.fresh_id();
        let mut headers = FieldTable::default();
        headers.insert("id".into(), AMQPValue::LongString(id.as_str().into()));
        let properties = BasicProperties::default().with_headers(headers);
        // As soon as somebody has a queue for it.
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let body = request.to_string();
        loop {
            let properties = properties.clone();
            let published =
                channel.basic_publish(REQUESTS.into(), "".into(), options, body.as_bytes(), properties).await;
            if let Confirmation::Ack(None) = published.unwrap().await.unwrap() {
                return id;
            }
            RealWorld.sleep(Duration::from_millis(50)).await;
        }
    }

    /// Joins the pool: the first message that comes is taken.
    pub(super) async fn take_one(&self) -> Value {
        let (channel, id) = (self.channel().await, "agent-manager--default--main--request");
        channel.basic_qos(1, BasicQosOptions::default()).await.unwrap();
        let queue = format!("{REQUESTS}.{id}");
        let mut requests = subscribe(&channel, REQUESTS.strip_prefix("tg.").unwrap(), &queue).await;
        let taken = tokio::time::timeout(PATIENCE, requests.next()).await.expect("a message comes");
        let delivery = taken.unwrap().unwrap();
        delivery.ack(BasicAckOptions::default()).await.unwrap();
        serde_json::from_slice(&delivery.data).unwrap()
    }

    /// A service fails for these workspace and type of the configuration from now on.
    pub(super) fn refuse(&self, workspace: &str, kind: &str) {
        self.state.config.lock().refused = Some((workspace.to_owned(), kind.to_owned()));
    }

    /// An item of another workspace, or one without a value.
    pub(super) fn note_item(&self, workspace: &str, kind: &str, key: &str, value: Option<&Value>) {
        let of = (workspace.to_owned(), kind.to_owned(), key.to_owned());
        let text = value.map_or_else(|| NOTHING.to_owned(), Value::to_string);
        self.state.config.lock().values.insert(of, text);
    }

    /// What was answered so far.
    pub(super) fn responses(&self, id: &str) -> Vec<Value> {
        self.state.responses.lock().iter().filter(|(of, _)| of == id).map(|(_, value)| value.clone()).collect()
    }

    /// Waits until something was answered.
    pub(super) async fn until_told(&self, id: &str, is_it: impl Fn(&Value) -> bool) {
        let told = || self.responses(id).iter().any(&is_it);
        assert!(so_in_time(told).await, "{:?}", self.responses(id));
    }

    /// The responses up to the end of the dialog.
    pub(super) async fn end_of(&self, id: &str) -> Vec<Value> {
        self.until_told(id, |response| response["end_of_dialog"] == true).await;
        self.responses(id)
    }

    /// Asks an agent, and waits until the dialog is over.
    pub(super) async fn ask(&self, request: &Value) -> Vec<Value> {
        self.end_of(&self.begin(request).await).await
    }
}

impl State {
    async fn may_send(&self, steps: Option<usize>, piece: usize) {
        let mut held = self.held.subscribe();
        let may = |held: &Option<Held>| held.is_none_or(|held| Some(held.steps) != steps || piece < held.pieces);
        drop(held.wait_for(may).await);
    }
}

impl Config {
    fn answer(&self, asked: &Value) -> Value {
        let (workspace, kind) = (asked["workspace"].as_str(), asked["type"].as_str());
        let is_refused =
            |(of, refused): &(String, String)| Some(of.as_str()) == workspace && Some(refused.as_str()) == kind;
        if self.refused.as_ref().is_some_and(is_refused) {
            return json!({"error": {"type": "permission-denied", "message": "you may not see this"}});
        }
        let of_kind = self.values.iter().filter(|((_, of, _), _)| Some(of.as_str()) == kind);
        let values: Vec<_> = match asked["operation"].as_str() {
            Some("getkeys-all-ws") => of_kind
                .map(|((workspace, kind, key), _)| {
                    json!({"type": kind, "key": key, "value": "", "workspace": workspace})
                })
                .collect(),
            _ => of_kind
                .filter(|((of, _, _), _)| Some(of.as_str()) == workspace)
                .map(|((_, kind, key), value)| {
                    let value = Some(value).filter(|value| *value != NOTHING);
                    json!({"type": kind, "key": key, "value": value, "workspace": ""})
                })
                .collect(),
        };
        json!({"version": self.version, "values": values, "directory": [], "config": {}, "error": null})
    }
}

/// A flow without most services, as nobody has to have them all, and with these topics in addition.
pub(super) fn definition(more: &[(&str, &str)]) -> Value {
    let topics = [
        ("request", "request:tg:agent:default:main"),
        ("next", "request:tg:agent:default:main"),
        ("response", "response:tg:agent:default:main"),
        ("prompt-request", "request:tg:prompt:default:main"),
        ("prompt-response", "response:tg:prompt:default:main"),
        ("mcp-tool-request", "request:tg:mcp-tool:default:main"),
        ("mcp-tool-response", "response:tg:mcp-tool:default:main"),
        ("librarian-request", "request:tg:librarian:default"),
        ("librarian-response", "response:tg:librarian:default"),
        ("explainability", "flow:tg:triples-store:default:main"),
    ];
    let topics: Value = topics.iter().chain(more).map(|(name, topic)| ((*name).to_owned(), json!(topic))).collect();
    json!({"topics": topics, "parameters": {}})
}

/// A flow, and what its agents need.
pub(super) async fn configure(neighbours: &Neighbours) {
    neighbours.put("tool", "weather", &tool("weather")).await;
    let text = json!({"prompt": "p", "response-type": "text"});
    for id in ["agent-react", "plan-synthesise", "supervisor-synthesise"] {
        neighbours.put("prompt", &format!("template.{id}"), &text).await;
    }
    for id in ["plan-create", "plan-step-execute", "supervisor-decompose"] {
        let list = json!({"prompt": "p", "response-type": "json"});
        neighbours.put("prompt", &format!("template.{id}"), &list).await;
    }
    neighbours.put("processor:agent-manager", "main", &definition(&[])).await;
}

/// A tool of the MCP service that only reads.
pub(super) fn tool(name: &str) -> Value {
    let arguments = json!([{"name": "city", "type": "string", "description": "Where"}]);
    json!({
        "name": name, "description": "d", "type": "mcp-tool", "mcp-tool": format!("get_{name}"), "effect": "read",
        "arguments": arguments,
    })
}

/// All texts of this kind, joined as stock clients do.
pub(super) fn text(responses: &[Value], kind: &str) -> String {
    let of_kind = responses.iter().filter(|response| response["message_type"] == kind);
    of_kind.filter_map(|response| response["content"].as_str()).collect()
}

/// How often the dialog was ended.
pub(super) fn ends(responses: &[Value]) -> usize {
    responses.iter().filter(|response| response["end_of_dialog"] == true).count()
}

fn term(asked: &Value, name: &str) -> Value {
    asked["terms"][name].as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

/// How many steps the agent has made that asks.
fn steps_of(asked: &Value) -> Option<usize> {
    (asked["id"] == "agent-react").then(|| term(asked, "history").as_array().unwrap().len())
}

/// Weather looks like rain, everything else is what was asked for.
fn rain(asked: &Value) -> Value {
    match asked["name"].as_str().unwrap() {
        "get_weather" => json!({"error": null, "text": "Rain.", "object": null}),
        "get_table" => json!({"error": null, "text": null, "object": "{\"mm\": 3}"}),
        "get_broken" => {
            json!({"error": {"type": "tool-error", "message": "it is broken"}, "text": null, "object": null})
        }
        name => json!({"error": null, "text": format!("{name}!"), "object": null}),
    }
}

fn prompt(asked: &Value) -> Vec<Value> {
    let results = |name: &str| -> Vec<String> {
        let results = term(asked, name);
        let results = results.as_array().unwrap().iter();
        results.map(|result| result["result"].as_str().unwrap().to_owned()).collect()
    };
    let step = |goal: &str, after: &[usize]| json!({"goal": goal, "tool_hint": "weather", "depends_on": after});
    match asked["id"].as_str().unwrap() {
        "agent-react" => streamed(asked, &react(asked)),
        "plan-create" => whole(&json!([step("Look", &[]), step("Look again", &[0])])),
        "plan-step-execute" => whole(&json!({"tool": "weather", "arguments": {"city": "Oslo"}})),
        "plan-synthesise" => streamed(asked, &format!("Planned: {}", results("steps").join(" "))),
        "supervisor-decompose" => whole(&json!(["rain in Paris?", "rain in Oslo?"])),
        "supervisor-synthesise" => streamed(asked, &format!("Found: {}", results("results").join(" "))),
        other => panic!("nobody here has the prompt {other}"),
    }
}

/// Asks the tool first that the question names, then answers.
fn react(asked: &Value) -> String {
    let (question, tools) = (term(asked, "question"), term(asked, "tools"));
    let is_named = |tool: &&Value| question.as_str().unwrap().contains(tool["name"].as_str().unwrap());
    let tool = tools.as_array().unwrap().iter().find(is_named);
    let named = tool.map_or("weather", |tool| tool["name"].as_str().unwrap());
    let argument = tool.and_then(|tool| tool["arguments"][0]["name"].as_str()).unwrap_or("city");
    match term(asked, "history").as_array().unwrap().last() {
        None => format!("Thought: I look\nAction: {named}\nArgs: {{\"{argument}\": \"Paris\"}}"),
        Some(step) => format!("Thought: I know\nFinal Answer: It says: {}", step["observation"].as_str().unwrap()),
    }
}

fn whole(value: &Value) -> Vec<Value> {
    vec![json!({"error": null, "text": null, "object": value.to_string(), "end_of_stream": true})]
}

fn streamed(asked: &Value, text: &str) -> Vec<Value> {
    assert_eq!(asked["streaming"], true, "texts are streamed");
    let piece = |text: &str, last: bool| json!({"error": null, "text": text, "object": null, "end_of_stream": last});
    let pieces = text.as_bytes().chunks(12).map(|bytes| piece(std::str::from_utf8(bytes).unwrap(), false));
    pieces.chain([piece("", true)]).collect()
}

async fn so_in_time(is_so: impl Fn() -> bool) -> bool {
    let waiting = async {
        while !is_so() {
            RealWorld.sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.is_ok()
}

async fn connect(server: &RabbitMq) -> Connection {
    Connection::connect(&server.address(), ConnectionProperties::default()).await.unwrap()
}

async fn subscribe(channel: &Channel, exchange: &str, queue: &str) -> Consumer {
    let exchange = format!("tg.{exchange}");
    declare(channel, &exchange).await;
    let own = queue.is_empty();
    let options = QueueDeclareOptions {
        exclusive: own,
        auto_delete: own,
        durable: exchange.starts_with("tg.flow."),
        ..QueueDeclareOptions::default()
    };
    let queue = channel.queue_declare(queue.into(), options, FieldTable::default()).await.unwrap();
    let name = queue.name().clone();
    let bind = QueueBindOptions::default();
    channel.queue_bind(name.clone(), exchange.as_str().into(), "".into(), bind, FieldTable::default()).await.unwrap();
    let options = BasicConsumeOptions { no_ack: own, ..BasicConsumeOptions::default() };
    channel.basic_consume(name, "".into(), options, FieldTable::default()).await.unwrap()
}

async fn publish(
    channel: &Channel,
    exchange: &str,
    properties: &BasicProperties,
    body: &Value,
) -> Result<(), lapin::Error> {
    let (exchange, options) = (format!("tg.{exchange}"), BasicPublishOptions::default());
    let (body, properties) = (body.to_string(), properties.clone());
    let published = channel.basic_publish(exchange.as_str().into(), "".into(), options, body.as_bytes(), properties);
    published.await?.await.map(drop)
}

async fn declare(channel: &Channel, exchange: &str) {
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let declared = channel.exchange_declare(exchange.into(), ExchangeKind::Fanout, durable, FieldTable::default());
    declared.await.unwrap();
}
