//! What is said to a broker of Pulsar, and what it says: the commands of its protocol.

use pulsar::message::proto::base_command::Type;
use pulsar::message::proto::command_ack::AckType;
use pulsar::message::proto::command_subscribe::{InitialPosition, SubType};
use pulsar::message::proto::{self, BaseCommand, MessageIdData};
use pulsar::message::{Message, Metadata, Payload};

/// The version of the protocol that has all of these commands: the first in which acknowledgements are answered, of Pulsar 2.8.
const PROTOCOL: i32 = 17;

/// How a process listens to a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listening {
    /// Together with others, each message goes to one of them; it stays until it is acknowledged.
    Shared,
    /// For itself, as long as it is there.
    Own,
}

fn command(kind: Type, fill: impl FnOnce(&mut BaseCommand)) -> Message {
    let mut command = BaseCommand { r#type: kind as i32, ..BaseCommand::default() };
    fill(&mut command);
    Message { command, payload: None }
}

/// Who connects, and to which broker behind a proxy.
pub(crate) fn connect(credentials: Option<(&str, Vec<u8>)>, behind: Option<String>) -> Message {
    let (method, data) = credentials.map(|(method, data)| (method.to_owned(), data)).unzip();
    command(Type::Connect, |command| {
        command.connect = Some(proto::CommandConnect {
            client_version: "trellis".to_owned(),
            auth_method_name: method,
            auth_data: data,
            protocol_version: Some(PROTOCOL),
            proxy_to_broker_url: behind,
            ..proto::CommandConnect::default()
        });
    })
}

pub(crate) fn ping() -> Message {
    command(Type::Ping, |command| command.ping = Some(proto::CommandPing {}))
}

pub(crate) fn pong() -> Message {
    command(Type::Pong, |command| command.pong = Some(proto::CommandPong {}))
}

pub(crate) fn look_up(request: u64, topic: &str, authoritative: bool) -> Message {
    command(Type::Lookup, |command| {
        command.lookup_topic = Some(proto::CommandLookupTopic {
            topic: topic.to_owned(),
            request_id: request,
            authoritative: Some(authoritative),
            ..proto::CommandLookupTopic::default()
        });
    })
}

pub(crate) fn produce(request: u64, producer: u64, topic: &str) -> Message {
    command(Type::Producer, |command| {
        command.producer = Some(proto::CommandProducer {
            topic: topic.to_owned(),
            producer_id: producer,
            request_id: request,
            ..proto::CommandProducer::default()
        });
    })
}

/// Nothing comes before it is asked for with [`flow`].
pub(crate) fn subscribe(request: u64, consumer: u64, topic: &str, name: &str, how: Listening) -> Message {
    let kind = match how {
        Listening::Shared => SubType::Shared,
        Listening::Own => SubType::Exclusive,
    };
    command(Type::Subscribe, |command| {
        command.subscribe = Some(proto::CommandSubscribe {
            topic: topic.to_owned(),
            subscription: name.to_owned(),
            sub_type: kind as i32,
            consumer_id: consumer,
            request_id: request,
            durable: Some(how == Listening::Shared),
            // What was published before somebody deleted the subscription is wanted.
            initial_position: Some(InitialPosition::Earliest as i32),
            ..proto::CommandSubscribe::default()
        });
    })
}

pub(crate) fn flow(consumer: u64, messages: u32) -> Message {
    command(Type::Flow, |command| {
        command.flow = Some(proto::CommandFlow { consumer_id: consumer, message_permits: messages });
    })
}

pub(crate) fn close_consumer(request: u64, consumer: u64) -> Message {
    command(Type::CloseConsumer, |command| {
        let close = proto::CommandCloseConsumer { consumer_id: consumer, request_id: request };
        command.close_consumer = Some(close);
    })
}

pub(crate) fn statistics(request: u64, consumer: u64) -> Message {
    command(Type::ConsumerStats, |command| {
        let statistics = proto::CommandConsumerStats { request_id: request, consumer_id: consumer };
        command.consumer_stats = Some(statistics);
    })
}

/// It is answered because it has the number of a request.
pub(crate) fn acknowledge(request: u64, consumer: u64, message: MessageIdData) -> Message {
    command(Type::Ack, |command| {
        command.ack = Some(proto::CommandAck {
            consumer_id: consumer,
            ack_type: AckType::Individual as i32,
            message_id: vec![message],
            request_id: Some(request),
            ..proto::CommandAck::default()
        });
    })
}

/// The broker hands it out again.
pub(crate) fn redeliver(consumer: u64, message: MessageIdData) -> Message {
    command(Type::RedeliverUnacknowledgedMessages, |command| {
        let again = proto::CommandRedeliverUnacknowledgedMessages {
            consumer_id: consumer,
            message_ids: vec![message],
            ..proto::CommandRedeliverUnacknowledgedMessages::default()
        };
        command.redeliver_unacknowledged_messages = Some(again);
    })
}

pub(crate) fn send(producer: u64, name: &str, sequence: u64, now_ms: u64, data: Vec<u8>) -> Message {
    let mut message = command(Type::Send, |command| {
        command.send = Some(proto::CommandSend {
            producer_id: producer,
            sequence_id: sequence,
            num_messages: Some(1),
            ..proto::CommandSend::default()
        });
    });
    let metadata =
        Metadata { producer_name: name.to_owned(), sequence_id: sequence, publish_time: now_ms, ..Metadata::default() };
    message.payload = Some(Payload { metadata, data });
    message
}

/// Which request a command answers.
pub(crate) fn answered(command: &BaseCommand) -> Option<u64> {
    let success = command.success.as_ref().map(|answer| answer.request_id);
    let success = success.or_else(|| command.producer_success.as_ref().map(|answer| answer.request_id));
    let success = success.or_else(|| command.lookup_topic_response.as_ref().map(|answer| answer.request_id));
    let success = success.or_else(|| command.consumer_stats_response.as_ref().map(|answer| answer.request_id));
    let success = success.or_else(|| command.ack_response.as_ref().and_then(|answer| answer.request_id));
    success.or_else(|| command.error.as_ref().map(|answer| answer.request_id))
}

/// Whether the broker knows all of these commands. It names the version that both sides have.
pub(crate) fn is_new_enough(connected: &proto::CommandConnected) -> bool {
    connected.protocol_version.unwrap_or_default() >= PROTOCOL
}

/// Why a request was refused.
pub(crate) fn refusal(command: &BaseCommand) -> Option<String> {
    if let Some(error) = &command.error {
        return Some(error.message.clone());
    }
    let told = |code: Option<i32>, message: &Option<String>| {
        code.map(|code| message.clone().unwrap_or_else(|| format!("error {code}")))
    };
    if let Some(answer) = &command.ack_response {
        return told(answer.error, &answer.message);
    }
    if let Some(answer) = &command.consumer_stats_response {
        return told(answer.error_code, &answer.error_message);
    }
    command.lookup_topic_response.as_ref().and_then(|answer| told(answer.error, &answer.message))
}
