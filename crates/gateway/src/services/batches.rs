//! Long lists: how much of them is asked for, and how they travel.

use crate::bounds;
use crate::error::{ServiceError, StreamError};
use crate::members::Members;
use crate::outbox::Outbox;
use serde::Serialize;
use serde_json::Value;

/// Most items that one request may ask for: they are in memory until they are sent.
const MOST: u64 = 100_000;
const USUAL: u64 = 10_000;
/// Most items of one reply in a stream. Larger wishes get smaller batches: nothing is lost by it.
const LARGEST_BATCH: u64 = 1_000;
const USUAL_BATCH: u64 = 20;
/// Bytes after which a batch ends. One item more fits in a frame, or in none.
const FULL: usize = bounds::FRAME / 4;

/// How much of a list is wanted, and in which portions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portions {
    pub(crate) limit: usize,
    pub(crate) streaming: bool,
    batch: usize,
}

impl Portions {
    pub(crate) fn read(members: Members<'_>) -> Result<Self, ServiceError> {
        let limit = members.count("limit")?.unwrap_or(USUAL);
        if limit > MOST {
            return Err(ServiceError::request(format!(
                "the member `limit` is {limit}; at most {MOST} can be asked for"
            )));
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(Self { limit, streaming: members.flag("streaming")?, batch: Self::batch(members)? })
    }

    /// The same for a client that asks for more than there can be because it wants all: it gets all, or is told.
    pub(crate) fn of_all(members: Members<'_>) -> Result<Self, ServiceError> {
        match members.count("limit")? {
            Some(limit) if limit > MOST => {
                let limit = usize::try_from(MOST).unwrap_or(usize::MAX).saturating_add(1);
                Ok(Self { limit, streaming: members.flag("streaming")?, batch: Self::batch(members)? })
            }
            _ => Self::read(members),
        }
    }

    /// Refuses more than can be given at once: nobody is to take a part for the whole.
    pub(crate) fn check(found: usize) -> Result<(), ServiceError> {
        if found as u64 > MOST {
            let why =
                format!("there are more than {MOST}, which is all that can be given at once; ask for a part of it");
            return Err(ServiceError::request(why));
        }
        Ok(())
    }

    fn batch(members: Members<'_>) -> Result<usize, ServiceError> {
        let batch = members.count("batch-size")?.unwrap_or(USUAL_BATCH);
        if batch == 0 {
            return Err(ServiceError::request("the member `batch-size` is 0; it must be at least 1"));
        }
        Ok(usize::try_from(batch.min(LARGEST_BATCH)).unwrap_or(usize::MAX))
    }

    /// Sends a list as one stream of replies, at least one. The last is marked as such.
    pub(crate) async fn send(
        self,
        items: &[impl Serialize],
        reply: impl Fn(Vec<Value>, Place) -> Value,
        outbox: &Outbox,
    ) -> Result<(), StreamError> {
        let mut batch = Batch::default();
        for item in items {
            if batch.is_full(self.batch) {
                outbox.more(&reply(batch.take(), Place::Before)).await?;
            }
            batch.push(item);
        }
        Ok(outbox.last(&reply(batch.take(), Place::Last)).await?)
    }
}

/// Where in the stream a reply stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Before,
    Last,
}

#[derive(Debug, Default)]
struct Batch {
    items: Vec<Value>,
    bytes: usize,
}

impl Batch {
    fn is_full(&self, most: usize) -> bool {
        self.items.len() >= most || self.bytes >= FULL
    }

    fn push(&mut self, item: &impl Serialize) {
        let item = serde_json::to_value(item).expect("terms are always JSON");
        self.bytes += item.to_string().len();
        self.items.push(item);
    }

    fn take(&mut self) -> Vec<Value> {
        std::mem::take(self).items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::Replies;
    use serde_json::json;

    fn read(request: &Value) -> Result<Portions, ServiceError> {
        Portions::read(Members::new(request.as_object().unwrap()))
    }

    async fn sent(portions: Portions, items: &[Value]) -> Vec<Value> {
        let (to, mut replies) = Replies::new(crate::unread::Unread::new());
        let outbox = Outbox::new(Some(json!("1")), to);
        let sending = async move { portions.send(items, |items, _| json!(items), &outbox).await.unwrap() };
        let reading = async {
            let mut frames = Vec::new();
            while let Some(reply) = replies.recv().await {
                assert!(reply.text.len() <= bounds::FRAME);
                frames.push(serde_json::from_str(&reply.text).unwrap());
            }
            frames
        };
        tokio::join!(sending, reading).1
    }

    #[test]
    fn what_is_not_said_is_as_usual_and_what_is_wrong_is_named() {
        assert_eq!(read(&json!({})).unwrap(), Portions { limit: 10_000, streaming: false, batch: 20 });
        let all = json!({"limit": 0, "streaming": true, "batch-size": 5_000_000});
        assert_eq!(read(&all).unwrap(), Portions { limit: 0, streaming: true, batch: 1_000 });
        for (name, wrong) in [
            ("limit", json!(100_001)),
            ("limit", json!(-1)),
            ("limit", json!(1.5)),
            ("limit", json!("10")),
            ("batch-size", json!(0)),
            ("batch-size", json!([20])),
            ("streaming", json!("yes")),
        ] {
            let refused = read(&json!({name: wrong})).unwrap_err();
            assert!(refused.message.contains(&format!("`{name}`")), "{wrong}: {refused}");
        }
    }

    #[test]
    fn whoever_wants_all_gets_all_or_is_told() {
        let all = |request: Value| Portions::of_all(Members::new(request.as_object().unwrap()));
        let wanted = all(json!({"limit": 1_000_000, "batch-size": 100})).unwrap();
        assert_eq!(wanted, Portions { limit: 100_001, streaming: false, batch: 100 });
        assert!(Portions::check(100_000).is_ok());
        assert!(Portions::check(100_001).unwrap_err().message.contains("more than 100000"));
        assert_eq!(all(json!({"limit": 7})).unwrap().limit, 7, "a wish is a wish");
        assert!(all(json!({"limit": 1_000_000, "batch-size": 0})).is_err());
    }

    #[tokio::test]
    async fn a_list_travels_in_batches_and_only_the_last_is_complete() {
        let portions = Portions { limit: 0, streaming: true, batch: 2 };
        for (count, sizes) in [(0, vec![0]), (1, vec![1]), (2, vec![2]), (3, vec![2, 1]), (4, vec![2, 2])] {
            let frames = sent(portions, &vec![json!("x"); count]).await;
            let found: Vec<_> = frames.iter().map(|frame| frame["response"].as_array().unwrap().len()).collect();
            assert_eq!(found, sizes);
            let complete: Vec<_> = frames.iter().map(|frame| frame["complete"] == true).collect();
            assert_eq!(complete.iter().filter(|complete| **complete).count(), 1);
            assert_eq!(complete.last(), Some(&true));
        }
    }

    #[tokio::test]
    async fn no_frame_is_larger_than_the_stock_client_takes() {
        let portions = Portions { limit: 0, streaming: true, batch: 1_000 };
        let frames = sent(portions, &vec![json!("x".repeat(60_000)); 100]).await;
        assert!(frames.len() > 5);
        assert_eq!(frames.iter().map(|frame| frame["response"].as_array().unwrap().len()).sum::<usize>(), 100);
    }
}
