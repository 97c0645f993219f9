use super::*;
use crate::record::{FORMAT, Record};
use std::collections::HashMap;

const SAMPLES: [&str; 2] =
    [include_str!("../samples/records-format-1.txt"), include_str!("../samples/records-format-2.txt")];

/// One record of every kind, read from older formats.
fn samples() -> Vec<Record> {
    let texts = SAMPLES.into_iter().flat_map(|sample| sample.split("\n\n"));
    texts.map(|text| Record::from_bytes(text.trim().as_bytes()).unwrap()).collect()
}

fn none(hash: Hash) -> Result<Arc<str>, UnreadableRecord> {
    Err(UnreadableRecord::Stored { hash, what: "is missing" })
}

/// Makes every text that a body says longer than what may lie beside it.
fn enlarged(body: &Body) -> Body {
    fn grow(value: &mut Value) {
        match value {
            Value::Object(object) if is_document(object) => {
                let text = "long ".repeat(INLINE_BYTES / 4);
                object.insert("sha256".to_owned(), json!(Hash::of(text.as_bytes())));
                object.insert("text".to_owned(), text.into());
            }
            Value::Object(object) => object.values_mut().for_each(grow),
            Value::Array(items) => items.iter_mut().for_each(grow),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut value = serde_json::to_value(body).unwrap();
    grow(&mut value);
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_sealed_body_reads_back_as_it_was() {
    for record in samples() {
        for body in [record.body.clone(), enlarged(&record.body)] {
            let sealed = seal(&body, [7; 32]);
            let blobs: HashMap<_, _> = sealed.blobs.iter().cloned().collect();
            assert_eq!(blobs_of(&sealed.body, &sealed.texts).unwrap().len(), blobs.len());
            let mut fetch = |hash| blobs.get(&hash).cloned().map_or_else(|| none(hash), Ok);
            let read = unseal(FORMAT, &sealed.body, &sealed.texts, &mut fetch).unwrap();
            assert_eq!(read, body, "{}", record.header.name);
        }
    }
}

/// Read with little care, this number comes back as its neighbour.
#[test]
fn a_number_that_needs_every_digit_is_read_back_as_it_was() {
    let number = 1.767_393_948_544_404_4e-7;
    let body = samples().into_iter().find(|record| record.body.as_replied().is_some()).unwrap().body;
    let Body::Replied(mut replied) = body else { panic!("it is a reply") };
    let arguments = json!({ "weight": number }).as_object().unwrap().clone();
    replied.reading =
        crate::reading::Reading::Acted { tool: "scale".into(), arguments, also: Vec::new(), value: json!([number]) };
    let body = Body::Replied(replied);
    let sealed = seal(&body, [7; 32]);
    assert_eq!(unseal(FORMAT, &sealed.body, &sealed.texts, &mut none).unwrap(), body);
}

#[test]
fn nothing_that_was_said_is_in_the_proven_part() {
    // Whatever is longer than a name or an id, or has a space in it, is a text; words of the model are few and known.
    let known = ["Answer the question", "default:agent", "no such", "is not"];
    for record in samples() {
        let sealed = seal(&record.body, [7; 32]);
        let value: Value = serde_json::from_slice(&sealed.body).unwrap();
        let mut strings = Vec::new();
        collect(&value, &mut strings);
        for (key, text) in strings {
            let prose = text.contains(' ') && !known.iter().any(|known| text.contains(known));
            let from_configuration = ["source", "termination", "criteria"].contains(&key.as_str());
            assert!(!prose || from_configuration, "{}: {key} says {text:?}", record.header.name);
        }
    }
}

fn collect(value: &Value, strings: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (key, member) in object {
                if let Value::String(text) = member {
                    strings.push((key.clone(), text.clone()));
                }
                collect(member, strings);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, strings)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_same_text_has_another_hash_in_every_record() {
    let body = &samples()[0].body;
    assert_ne!(seal(body, [1; 32]).body, seal(body, [2; 32]).body);
    assert_eq!(seal(body, [1; 32]).body, seal(body, [1; 32]).body);
}

#[test]
fn a_changed_text_is_noticed() {
    for record in samples() {
        let sealed = seal(&record.body, [7; 32]);
        let texts: Vec<Value> = serde_json::from_slice(&sealed.texts).unwrap();
        for place in 0..texts.len() {
            let mut changed = texts.clone();
            changed[place][1] = "something else".into();
            let line = serde_json::to_vec(&changed).unwrap();
            unseal(FORMAT, &sealed.body, &line, &mut none).unwrap_err();
            changed.remove(place);
            let line = serde_json::to_vec(&changed).unwrap();
            unseal(FORMAT, &sealed.body, &line, &mut none).unwrap_err();
        }
    }
}

#[test]
fn an_erased_record_still_reads_and_says_nothing() {
    for record in samples() {
        let sealed = seal(&record.body, [7; 32]);
        let count = serde_json::from_slice::<Vec<Value>>(&sealed.texts).unwrap().len();
        let (texts, erased) = erase(&sealed.body, &sealed.texts, 5, &mut none, &mut |_| true).unwrap();
        assert!(erased.len() == count, "{}", record.header.name);
        let body = unseal(FORMAT, &sealed.body, &texts, &mut none).unwrap();
        let written = serde_json::to_string(&body).unwrap();
        let mut said = 0;
        for pair in serde_json::from_slice::<Vec<Value>>(&sealed.texts).unwrap() {
            let text = pair[1].as_str().unwrap();
            // Names out of the configuration are in the option sets, too, and nothing that anybody said.
            let is_option = body.as_replied().is_some_and(|replied| {
                replied.decision.iter().any(|decision| decision.options.iter().any(|option| option == text))
            });
            said += usize::from(text.len() > 12 && !is_option && written.contains(text));
        }
        assert_eq!(said, 0, "{}: {written}", record.header.name);
        // Erased twice is erased once.
        let (again, more) = erase(&sealed.body, &texts, 9, &mut none, &mut |_| true).unwrap();
        assert_eq!((again, more.len()), (texts, 0));
    }
}

#[test]
fn only_what_is_meant_is_erased() {
    let record = samples().into_iter().find(|record| record.body.as_replied().is_some()).unwrap();
    let sealed = seal(&record.body, [7; 32]);
    let raw = record.body.as_replied().unwrap().raw.text().to_owned();
    let mut goes = |text: &str| text == raw;
    let (texts, erased) = erase(&sealed.body, &sealed.texts, 5, &mut none, &mut goes).unwrap();
    // The reply, and the plain hash of what was sent.
    assert!(erased.len() <= 2, "{erased:?}");
    let body = unseal(FORMAT, &sealed.body, &texts, &mut none).unwrap();
    assert_eq!(body.as_replied().unwrap().raw.text(), ERASED);
    assert_eq!(body.as_replied().unwrap().prompt.request, record.body.as_replied().unwrap().prompt.request);
}

/// What a provider signed tells as much as what was thought.
#[test]
fn the_signature_of_a_thought_is_taken_out_like_its_text() {
    use crate::parts::ReplyPart;
    let body = samples().into_iter().find(|record| record.body.as_replied().is_some()).unwrap().body;
    let Body::Replied(mut replied) = body else { panic!("it is a reply") };
    let thought =
        |signature: Option<&str>| ReplyPart::Thought { text: "hm".into(), signature: signature.map(Into::into) };
    replied.parts = vec![thought(Some("anthropic:secret")), thought(None)];
    let body = Body::Replied(replied);
    let sealed = seal(&body, [7; 32]);
    assert!(!String::from_utf8_lossy(&sealed.body).contains("anthropic"));
    assert_eq!(unseal(FORMAT, &sealed.body, &sealed.texts, &mut none).unwrap(), body);
    let unsigned = serde_json::to_value(thought(None)).unwrap();
    assert_eq!(unsigned, json!({ "part": "thought", "text": "hm" }), "as it was before there were signatures");
}
