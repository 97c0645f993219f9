//! The services around an orchestrator, scripted, with exchanges and queues as the original declares them.

use crate::PATIENCE;
use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions,
    QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, ExchangeKind};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use trellis_orchestrator::ports::{RealWorld, World as _};
use trellis_servers::RabbitMq;

pub(super) struct Neighbours {
    connection: Connection,
    config: Arc<Mutex<Config>>,
    heard: Arc<Mutex<Vec<(String, Value)>>>,
}

/// Values by workspace, type and key.
#[derive(Default)]
struct Config {
    version: u64,
    values: BTreeMap<(String, String, String), String>,
}

/// What a service says to a request.
type Script = Arc<dyn Fn(&Value) -> Vec<Value> + Send + Sync>;

impl Neighbours {
    pub(super) async fn start(server: &RabbitMq) -> Self {
        let connection = Connection::connect(&server.address(), ConnectionProperties::default()).await.unwrap();
        let (config, heard) = (Arc::<Mutex<Config>>::default(), Arc::default());
        let neighbours = Self { connection, config: Arc::clone(&config), heard };
        neighbours
            .serve("config", "request.config", "response.config", move |asked| vec![config.lock().answer(asked)])
            .await;
        let place = |name: &str| (format!("request.{name}:default:main"), format!("response.{name}:default:main"));
        let (request, response) = place("prompt");
        neighbours.serve("prompt", &request, &response, prompt).await;
        let (request, response) = place("mcp-tool");
        let rain = |_: &Value| vec![json!({"error": null, "text": "Rain.", "object": null})];
        neighbours.serve("mcp-tool", &request, &response, rain).await;
        let saved = |_: &Value| vec![json!({"error": null})];
        neighbours.serve("librarian", "request.librarian:default", "response.librarian:default", saved).await;
        neighbours.serve("triples", "flow.triples-store:default:main", "", |_: &Value| Vec::new()).await;
        neighbours
    }

    async fn channel(&self) -> Channel {
        self.connection.create_channel().await.unwrap()
    }

    async fn serve(
        &self,
        name: &str,
        request: &str,
        response: &str,
        script: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static,
    ) {
        let (channel, script): (_, Script) = (self.channel().await, Arc::new(script));
        let mut requests = subscribe(&channel, request, &format!("tg.{request}.neighbours")).await;
        let (name, response, heard) = (name.to_owned(), response.to_owned(), Arc::clone(&self.heard));
        tokio::spawn(async move {
            while let Some(Ok(delivery)) = requests.next().await {
                let asked: Value = serde_json::from_slice(&delivery.data).unwrap();
                heard.lock().push((name.clone(), asked.clone()));
                for reply in script(&asked) {
                    publish(&channel, &response, &delivery.properties, &reply).await;
                }
                delivery.ack(BasicAckOptions::default()).await.unwrap();
            }
        });
    }

    /// Writes an item, and tells of it.
    pub(super) async fn put(&self, kind: &str, key: &str, value: &Value) {
        let version = {
            let mut config = self.config.lock();
            config.version += 1;
            config.values.insert(("default".to_owned(), kind.to_owned(), key.to_owned()), value.to_string());
            config.version
        };
        let notice = json!({"version": version, "changes": {kind: ["default"]}, "workspace_changes": null});
        let channel = self.channel().await;
        declare(&channel, "tg.notify.config").await;
        publish(&channel, "notify.config", &BasicProperties::default(), &notice).await;
    }

    /// What a service was asked.
    pub(super) fn heard(&self, name: &str) -> Vec<Value> {
        self.heard.lock().iter().filter(|(of, _)| of == name).map(|(_, value)| value.clone()).collect()
    }

    /// Waits until a service has heard something.
    pub(super) async fn until(&self, name: &str, is_it: impl Fn(&Value) -> bool) {
        let waiting = async {
            while !self.heard(name).iter().any(&is_it) {
                RealWorld.sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{name}: {:?}", self.heard(name));
    }

    /// Asks an agent as the gateway does: the responses up to the end of the dialog.
    pub(super) async fn ask(&self, request: &Value) -> Vec<Value> {
        let channel = self.channel().await;
        let mut responses = subscribe(&channel, "response.agent:default:main", "").await;
        declare(&channel, "tg.request.agent:default:main").await;
        let id = RealWorld.fresh_id();
        let mut headers = FieldTable::default();
        headers.insert("id".into(), AMQPValue::LongString(id.as_str().into()));
        let properties = BasicProperties::default().with_headers(headers);
        // As soon as somebody has a queue for it.
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let (exchange, body) = ("tg.request.agent:default:main", request.to_string());
        loop {
            let properties = properties.clone();
            let published =
                channel.basic_publish(exchange.into(), "".into(), options, body.as_bytes(), properties).await;
            if let Confirmation::Ack(None) = published.unwrap().await.unwrap() {
                break;
            }
            RealWorld.sleep(Duration::from_millis(50)).await;
        }
        let mut heard: Vec<Value> = Vec::new();
        let listening = async {
            while heard.last().is_none_or(|last| last["end_of_dialog"] != true) {
                let delivery = responses.next().await.unwrap().unwrap();
                let header = delivery.properties.headers().as_ref().and_then(|headers| headers.inner().get("id"));
                if header == Some(&AMQPValue::LongString(id.as_str().into())) {
                    heard.push(serde_json::from_slice(&delivery.data).unwrap());
                }
            }
        };
        let ended = tokio::time::timeout(PATIENCE, listening).await;
        assert!(ended.is_ok(), "the dialog did not end: {heard:?}");
        heard
    }
}

impl Config {
    fn answer(&self, asked: &Value) -> Value {
        let (workspace, kind) = (asked["workspace"].as_str(), asked["type"].as_str());
        let of_kind = self.values.iter().filter(|((_, of, _), _)| Some(of.as_str()) == kind);
        let values: Vec<_> = match asked["operation"].as_str() {
            Some("getkeys-all-ws") => of_kind
                .map(|((workspace, kind, key), _)| {
                    json!({"type": kind, "key": key, "value": "", "workspace": workspace})
                })
                .collect(),
            _ => of_kind
                .filter(|((of, _, _), _)| Some(of.as_str()) == workspace)
                .map(|((_, kind, key), value)| json!({"type": kind, "key": key, "value": value, "workspace": ""}))
                .collect(),
        };
        json!({"version": self.version, "values": values, "directory": [], "config": {}, "error": null})
    }
}

/// Asks for the rain first, then answers.
fn prompt(asked: &Value) -> Vec<Value> {
    let term = |name: &str| serde_json::from_str::<Value>(asked["terms"][name].as_str().unwrap()).unwrap();
    let history = term("history");
    let text = match history.as_array().and_then(|steps| steps.last()) {
        None => "Thought: I look\nAction: weather\nArgs: {\"city\": \"Paris\"}".to_owned(),
        Some(step) => format!("Thought: I know\nFinal Answer: It says: {}", step["observation"].as_str().unwrap()),
    };
    let piece = |text: &str, last: bool| json!({"error": null, "text": text, "object": null, "end_of_stream": last});
    assert_eq!(asked["streaming"], true, "texts are streamed");
    let (first, second) = text.split_at(12);
    vec![piece(first, false), piece(second, false), piece("", true)]
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

async fn publish(channel: &Channel, exchange: &str, properties: &BasicProperties, body: &Value) {
    let (exchange, options) = (format!("tg.{exchange}"), BasicPublishOptions::default());
    let (body, properties) = (body.to_string(), properties.clone());
    let published = channel.basic_publish(exchange.as_str().into(), "".into(), options, body.as_bytes(), properties);
    published.await.unwrap().await.unwrap();
}

async fn declare(channel: &Channel, exchange: &str) {
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let declared = channel.exchange_declare(exchange.into(), ExchangeKind::Fanout, durable, FieldTable::default());
    declared.await.unwrap();
}
