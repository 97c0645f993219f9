//! Stored records keep loading: a sample of each format is kept beside this test.

use super::*;

const FORMAT_1: &str = include_str!("../samples/records-format-1.txt");

fn sample() -> Vec<Record> {
    FORMAT_1.split("\n\n").map(|text| Record::from_bytes_checked(text.trim().as_bytes()).unwrap()).collect()
}

#[test]
fn records_of_format_1_load_and_are_written_the_same_way() {
    let records = sample();
    let names: Vec<_> = records.iter().map(|record| record.header.name.as_str()).collect();
    assert_eq!(names, ["session", "pattern-decision", "i1", "i1/observation", "i2", "end"]);
    for (record, text) in records.iter().zip(FORMAT_1.split("\n\n")) {
        assert_eq!(String::from_utf8(record.to_bytes().unwrap()).unwrap(), text.trim());
    }
}

#[test]
fn a_changed_body_is_noticed() {
    let text = FORMAT_1.split("\n\n").last().unwrap().trim().replace("It is so.", "It is not so.");
    let error = Record::from_bytes_checked(text.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("does not have the content that its hash says"), "{error}");
}

#[test]
fn a_newer_format_is_refused_with_advice() {
    let text = FORMAT_1.split("\n\n").next().unwrap().replace("\"format\":1", "\"format\":9");
    let error = Record::from_bytes(text.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("format 9") && error.to_string().contains("use a newer version"), "{error}");
}

#[test]
fn large_texts_are_taken_out_of_every_place_they_can_be_in() {
    let large = "x".repeat(crate::document::INLINE_BYTES + 1);
    for record in sample() {
        let mut body = record.body;
        for payload in body.payloads_mut() {
            *payload = large.as_str().into();
        }
        let found = body.payloads_mut().into_iter().filter_map(Payload::detach).count();
        let written = serde_json::to_string(&body).unwrap();
        assert!(!written.contains("xxxx"), "{} keeps a large text inline", record.header.name);
        assert_eq!(written.matches("\"blob\"").count(), found);
    }
}

#[test]
fn names_of_iterations_are_read_and_others_are_not() {
    assert_eq!(Name::iteration(12).as_iteration(), Some(12));
    assert_eq!(Name::observation(12).as_iteration(), None);
    assert_eq!(Name::end().as_iteration(), None);
}
