//! How a record's body is stored: every text is taken out of it, and a salted hash stands in its place.
//!
//! The body then says what happened without saying a word of what was asked or answered, and its hash can be proven for
//! ever. The texts lie beside it, each with its salt. Whoever has both can check a text against its hash. Once a text is
//! erased with its salt, the hash tells nothing about it any more, and the body is as good as before.

use crate::Hash;
use crate::body::Body;
use crate::document::INLINE_BYTES;
use crate::unreadable::UnreadableRecord;
use crate::upgrade::upgrade;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What an erased text reads like.
pub const ERASED: &str = "[erased]";

/// A body as it is stored.
#[derive(Debug)]
pub struct Sealed {
    /// The body with hashes in place of texts.
    pub body: Vec<u8>,
    /// The texts with their salts, in the order of their hashes, as one line of JSON.
    pub texts: Vec<u8>,
    /// Texts too large for that line, under their hashes.
    pub blobs: Vec<(Hash, Arc<str>)>,
}

/// What a taken-out value was. The mark is the key under which its hash stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Hash,
    List,
    Map,
}

impl Shape {
    const ALL: [Self; 4] = [Self::Text, Self::Hash, Self::List, Self::Map];

    const fn mark(self) -> &'static str {
        match self {
            Self::Text => "$text",
            Self::Hash => "$hash",
            Self::List => "$list",
            Self::Map => "$map",
        }
    }

    /// What stands there once it is erased: something that still reads as what it was.
    fn erased(self) -> Value {
        match self {
            Self::Text => ERASED.into(),
            Self::Hash => String::from(Hash::ZERO).into(),
            Self::List => json!([]),
            Self::Map => json!({}),
        }
    }

    /// The value as the text that is hashed.
    fn text(self, value: Value) -> String {
        match (self, value) {
            (Self::Text | Self::Hash, Value::String(text)) => text,
            (_, value) => value.to_string(),
        }
    }

    fn value(self, text: &str) -> Result<Value, UnreadableRecord> {
        match self {
            Self::Text | Self::Hash => Ok(text.into()),
            Self::List | Self::Map => Ok(serde_json::from_str(text)?),
        }
    }
}

/// Which members of a body hold what somebody said, or a hash that would confirm a guess of it. `within` is the member
/// that the object is, or is an item of.
fn shape(within: &str, object: &Map<String, Value>, key: &str, value: &Value) -> Option<Shape> {
    let said = match key {
        "question" | "framing" | "state" | "raw" | "answer" | "text" | "error" | "reply" | "goal" | "context"
        | "told" | "idempotency_key" | "history" | "earlier" | "arguments" | "mended" | "signals" | "left_out"
        | "trace" | "forms" | "content" => true,
        "signature" => within == "parts",
        "reason" => matches!(within, "reading" | "failures"),
        "chosen" | "options" => object.get("kind").is_some_and(|kind| kind == "goals"),
        "request" | "sent" | "said" | "received" => return value.is_string().then_some(Shape::Hash),
        _ => false,
    };
    match value {
        Value::String(text) if said && !text.is_empty() => Some(Shape::Text),
        Value::Array(items) if said && !items.is_empty() => Some(Shape::List),
        Value::Object(members) if matches!(key, "arguments" | "content") && !members.is_empty() => Some(Shape::Map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What a pattern decided: nobody else knows which of its members are texts, so all of them are taken for such.
const DECIDED: &str = "reading/value";

/// The member that the members of `key` are in.
fn inside<'k>(within: &'k str, key: &'k str) -> &'k str {
    if within == DECIDED || within == "reading" && key == "value" { DECIDED } else { key }
}

/// What the operator set for a model is not looked into.
const OPAQUE: &str = "parameters";

/// A document's plain hash follows from its text and would outlive it.
fn is_document(object: &Map<String, Value>) -> bool {
    object.contains_key("text") && object.contains_key("sha256")
}

/// The hash that stands for a text.
pub fn commitment(salt: &[u8], text: &str) -> Hash {
    Hash::of_joined([salt, text.as_bytes()])
}

struct Sealer {
    seed: [u8; 32],
    texts: Vec<Value>,
    /// About as many bytes as the texts have as JSON.
    bytes: usize,
    blobs: Vec<(Hash, Arc<str>)>,
}

/// The salt of a text, and what JSON writes around both.
const AROUND: usize = 48;
/// As many bytes as bodies without their texts usually have.
const USUAL_BODY: usize = 2_048;

impl Sealer {
    fn walk(&mut self, within: &str, value: &mut Value) {
        match value {
            Value::String(text) if within == DECIDED && !text.is_empty() => {
                *value = self.take(Shape::Text, value.take());
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(within, item)),
            Value::Object(object) => {
                let shapes: Vec<_> = object.iter().map(|(key, value)| shape(within, object, key, value)).collect();
                if is_document(object) {
                    object.insert("sha256".to_owned(), Value::Null);
                }
                for ((key, member), shape) in object.iter_mut().zip(shapes) {
                    match shape {
                        Some(shape) => *member = self.take(shape, member.take()),
                        None if key == OPAQUE => {}
                        None => self.walk(inside(within, key), member),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn take(&mut self, shape: Shape, value: Value) -> Value {
        let text = shape.text(value);
        self.bytes += text.len().min(INLINE_BYTES) + AROUND;
        let number = u32::try_from(self.texts.len()).expect("a record has few texts");
        let drawn = Hash::of_joined([self.seed.as_slice(), &number.to_be_bytes()]);
        let hash = commitment(&drawn.as_bytes()[..16], &text);
        let salt = &drawn.to_string()[..32];
        if text.len() > INLINE_BYTES {
            self.texts.push(json!([salt, {"blob": text.len()}]));
            self.blobs.push((hash, text.into()));
        } else {
            self.texts.push(json!([salt, text]));
        }
        json!({ shape.mark(): hash })
    }
}

/// Takes the texts out of a body. The seed is random, one for each record, and kept nowhere.
pub fn seal(body: &Body, seed: [u8; 32]) -> Sealed {
    let mut value = serde_json::to_value(body).expect("record bodies are always JSON");
    let mut sealer = Sealer { seed, texts: Vec::new(), bytes: 0, blobs: Vec::new() };
    sealer.walk("", &mut value);
    let body = line(&value, USUAL_BODY);
    Sealed { body, texts: line(&Value::Array(sealer.texts), sealer.bytes), blobs: sealer.blobs }
}

/// A value as one line that has about so many bytes.
fn line(value: &Value, bytes: usize) -> Vec<u8> {
    let mut line = Vec::with_capacity(bytes);
    serde_json::to_writer(&mut line, value).expect("a value is always JSON");
    line
}

/// Fetches a text that is stored under its hash.
pub type Fetch<'a> = dyn FnMut(Hash) -> Result<Arc<str>, UnreadableRecord> + 'a;

/// Puts the texts back into a body of that format, each checked against its hash.
pub fn unseal(format: u16, body: &[u8], texts: &[u8], fetch: &mut Fetch<'_>) -> Result<Body, UnreadableRecord> {
    let mut value: Value = serde_json::from_slice(body)?;
    let texts: Vec<Value> = serde_json::from_slice(texts)?;
    let mut texts = texts.iter();
    put_back(&mut value, &mut texts, fetch)?;
    if texts.next().is_some() {
        return Err(UnreadableRecord::Texts("there are more texts than hashes"));
    }
    upgrade(format, &mut value);
    Ok(serde_json::from_value(value)?)
}

fn put_back(
    value: &mut Value,
    texts: &mut std::slice::Iter<'_, Value>,
    fetch: &mut Fetch<'_>,
) -> Result<(), UnreadableRecord> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| put_back(item, texts, fetch)),
        Value::Object(object) => {
            if let Some((shape, hash)) = taken_out(object) {
                *value = original(shape, hash, texts.next(), fetch)?;
                return Ok(());
            }
            for (key, member) in object.iter_mut() {
                if key != OPAQUE {
                    put_back(member, texts, fetch)?;
                }
            }
            if is_document(object) {
                let hash = object["text"].as_str().map(|text| Hash::of(text.as_bytes()));
                object.insert("sha256".to_owned(), json!(hash));
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// What stands in the place of a text.
fn taken_out(object: &Map<String, Value>) -> Option<(Shape, Hash)> {
    let (key, value) = object.iter().next().filter(|_| object.len() == 1)?;
    let shape = Shape::ALL.into_iter().find(|shape| shape.mark() == key)?;
    Some((shape, value.as_str()?.parse().ok()?))
}

fn original(shape: Shape, hash: Hash, text: Option<&Value>, fetch: &mut Fetch<'_>) -> Result<Value, UnreadableRecord> {
    match text.ok_or(UnreadableRecord::Texts("there are fewer texts than hashes"))? {
        Value::Array(pair) => {
            let [Value::String(salt), stored] = pair.as_slice() else { return Err(wrong()) };
            let salt = hex::decode(salt).map_err(|_| wrong())?;
            let text = if let Some(text) = stored.as_str() { text.into() } else { fetch(hash)? };
            if commitment(&salt, &text) != hash {
                return Err(UnreadableRecord::Texts("a text is not what its hash says"));
            }
            shape.value(&text)
        }
        Value::Object(object) if object.contains_key("erased") => Ok(shape.erased()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => Err(wrong()),
    }
}

fn wrong() -> UnreadableRecord {
    UnreadableRecord::Texts("its texts are not written as texts are")
}

/// The line of texts without those that are to go, and the hashes of those. `number` names the entry in the log that
/// tells of the erasure.
pub fn erase(
    body: &[u8],
    texts: &[u8],
    number: u64,
    fetch: &mut Fetch<'_>,
    goes: &mut dyn FnMut(&str) -> bool,
) -> Result<(Vec<u8>, Vec<Hash>), UnreadableRecord> {
    let body: Value = serde_json::from_slice(body)?;
    let mut texts: Vec<Value> = serde_json::from_slice(texts)?;
    let mut hashes = Vec::new();
    hashes_in(&body, &mut hashes);
    let mut erased = Vec::new();
    for (text, (shape, hash)) in texts.iter_mut().zip(&hashes) {
        let Some(stored) = text.as_array().and_then(|pair| pair.get(1)) else { continue };
        let said = if let Some(text) = stored.as_str() { text.into() } else { fetch(*hash)? };
        if *shape != Shape::Hash && goes(&said) {
            *text = json!({ "erased": number });
            erased.push(*hash);
        }
    }
    if !erased.is_empty() {
        // A plain hash over what was said would confirm a guess.
        for (text, (_, hash)) in texts.iter_mut().zip(&hashes).filter(|(_, (shape, _))| *shape == Shape::Hash) {
            if text.is_array() {
                *text = json!({ "erased": number });
                erased.push(*hash);
            }
        }
    }
    Ok((serde_json::to_vec(&texts)?, erased))
}

/// The same for a body of an older format, which has its texts in it. The hashes are those of texts stored apart.
pub fn erase_older(
    body: &[u8],
    fetch: &mut Fetch<'_>,
    goes: &mut dyn FnMut(&str) -> bool,
) -> Result<(Vec<u8>, Vec<Hash>), UnreadableRecord> {
    let (mut value, mut apart) = (serde_json::from_slice(body)?, Vec::new());
    erase_in("", &mut value, &mut apart, fetch, goes)?;
    Ok((serde_json::to_vec(&value)?, apart))
}

fn erase_in(
    within: &str,
    value: &mut Value,
    apart: &mut Vec<Hash>,
    fetch: &mut Fetch<'_>,
    goes: &mut dyn FnMut(&str) -> bool,
) -> Result<(), UnreadableRecord> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| erase_in(within, item, apart, fetch, goes)),
        Value::Object(object) => {
            if let Some(hash) = object.get("blob").and_then(Value::as_str).and_then(|hash| hash.parse().ok()) {
                if goes(&fetch(hash)?) {
                    apart.push(hash);
                    *value = ERASED.into();
                }
                return Ok(());
            }
            let shapes: Vec<_> = object.iter().map(|(key, value)| shape(within, object, key, value)).collect();
            for ((key, member), shape) in object.iter_mut().zip(shapes) {
                match shape {
                    Some(shape) if goes(&shape.text(member.clone())) => *member = shape.erased(),
                    Some(_) => {}
                    None if key == OPAQUE => {}
                    None => erase_in(key, member, apart, fetch, goes)?,
                }
            }
            if is_document(object) && object["text"] == ERASED {
                object.insert("sha256".to_owned(), json!(Hash::of(ERASED)));
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// What stands in a stored body in the place of texts, in order.
fn hashes_in(value: &Value, hashes: &mut Vec<(Shape, Hash)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| hashes_in(item, hashes)),
        Value::Object(object) => match taken_out(object) {
            Some(taken) => hashes.push(taken),
            None => {
                for (key, member) in object {
                    if key != OPAQUE {
                        hashes_in(member, hashes);
                    }
                }
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The hashes of those texts of a stored body that lie apart, under their hashes.
pub fn blobs_of(body: &[u8], texts: &[u8]) -> Result<Vec<Hash>, UnreadableRecord> {
    hashes_of(body, texts, |text| text.get(1).is_some_and(Value::is_object))
}

/// The hashes of those texts of a stored body that were erased.
pub fn erased_in(body: &[u8], texts: &[u8]) -> Result<Vec<Hash>, UnreadableRecord> {
    hashes_of(body, texts, |text| text.get("erased").is_some())
}

/// The hashes of those texts that are stored so.
fn hashes_of(body: &[u8], texts: &[u8], so: impl Fn(&Value) -> bool) -> Result<Vec<Hash>, UnreadableRecord> {
    let body: Value = serde_json::from_slice(body)?;
    let texts: Vec<Value> = serde_json::from_slice(texts)?;
    let mut hashes = Vec::new();
    hashes_in(&body, &mut hashes);
    Ok(hashes.into_iter().zip(&texts).filter(|(_, text)| so(text)).map(|((_, hash), _)| hash).collect())
}

#[cfg(test)]
#[path = "sealed_tests.rs"]
mod tests;
