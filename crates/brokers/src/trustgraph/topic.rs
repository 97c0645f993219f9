//! Names of queues as TrustGraph's configuration has them, and what they are on RabbitMQ.

use std::fmt;

/// How messages of a topic are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Work that survives the broker.
    Flow,
    /// Work that does not.
    Request,
    /// Every subscriber gets everything.
    Response,
    Notify,
}

/// `class:space:topic`; the topic may have more colons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) class: Class,
    space: String,
    name: String,
}

/// Why a name of a queue is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no queue; write class:space:topic with the class flow, request, response or notify")]
pub struct NotATopic(String);

impl Topic {
    pub(crate) fn parse(identifier: &str) -> Result<Self, NotATopic> {
        let wrong = || NotATopic(identifier.to_owned());
        if !identifier.contains(':') && !identifier.is_empty() {
            return Ok(Self { class: Class::Flow, space: "tg".to_owned(), name: identifier.to_owned() });
        }
        let mut parts = identifier.splitn(3, ':');
        let (Some(class), Some(space), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong());
        };
        let class = match class {
            "flow" => Class::Flow,
            "request" => Class::Request,
            "response" => Class::Response,
            "notify" => Class::Notify,
            _ => return Err(wrong()),
        };
        // What looks like an address of Pulsar is none of these.
        if space.is_empty() || name.is_empty() || name.starts_with("//") {
            return Err(wrong());
        }
        Ok(Self { class, space: space.to_owned(), name: name.to_owned() })
    }

    /// A fanout exchange, durable for every class.
    pub(crate) fn exchange(&self) -> String {
        format!("{}.{}.{}", self.space, self.class, self.name)
    }

    /// The queue that everybody with this subscription shares.
    pub(crate) fn queue(&self, subscription: &str) -> String {
        format!("{}.{subscription}", self.exchange())
    }

    /// Whether its shared queues and their messages survive the broker.
    pub(crate) fn is_durable(&self) -> bool {
        self.class == Class::Flow
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flow => "flow",
            Self::Request => "request",
            Self::Response => "response",
            Self::Notify => "notify",
        })
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.class, self.space, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_original() {
        let topic = Topic::parse("request:tg:agent:default:default").unwrap();
        assert_eq!(topic.exchange(), "tg.request.agent:default:default");
        let subscription = "agent-manager--default--default--request";
        let queue = "tg.request.agent:default:default.agent-manager--default--default--request";
        assert_eq!(topic.queue(subscription), queue);
        assert!(!topic.is_durable() && Topic::parse("flow:tg:triples-store:a:b").unwrap().is_durable());
        assert_eq!(Topic::parse("plain").unwrap().exchange(), "tg.flow.plain");
        assert_eq!(topic.to_string(), "request:tg:agent:default:default");
    }

    #[test]
    fn what_names_no_queue_says_how_one_is_named() {
        for wrong in ["", "request:tg", "question:tg:agent", "request::agent", "non-persistent://tg/request/joke"] {
            let error = Topic::parse(wrong).expect_err(wrong);
            assert!(error.to_string().contains("class:space:topic"), "{error}");
        }
    }
}
