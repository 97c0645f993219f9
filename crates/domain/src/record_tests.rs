//! Stored records keep loading: a sample of each format is kept beside this test.

use super::*;
use crate::sealed::{erase, seal};

const FORMAT_1: &str = include_str!("../samples/records-format-1.txt");
/// One record of every kind of event and reading that came with this format.
const FORMAT_2: &str = include_str!("../samples/records-format-2.txt");
/// The same records as in both, with their texts beside them.
const FORMAT_3: &str = include_str!("../samples/records-format-3.txt");

fn read(sample: &str) -> Vec<Record> {
    sample.split("\n\n").map(|text| Record::from_bytes_checked(text.trim().as_bytes()).unwrap()).collect()
}

fn names(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.header.name.as_str()).collect()
}

#[test]
fn records_of_every_format_load_and_are_written_the_same_way() {
    assert_eq!(names(&read(FORMAT_1)), ["session", "pattern-decision", "i1", "i1/observation", "i2", "end"]);
    let newer = [
        "session",
        "pattern-decision",
        "decompose",
        "fanout/1",
        "i1",
        "end",
        "plan",
        "step/0",
        "step/0/result",
        "plan/1",
        "fanout/1/join",
        "review/1",
        "i2",
    ];
    assert_eq!(names(&read(FORMAT_2)), newer);
    for text in [FORMAT_1, FORMAT_2].into_iter().flat_map(|sample| sample.split("\n\n")) {
        let record = Record::from_bytes_checked(text.trim().as_bytes()).unwrap();
        // What came of a reply is described in other words since format 4.
        if record.body.as_replied().is_none() {
            let lines = [serde_json::to_string(&record.header).unwrap(), serde_json::to_string(&record.body).unwrap()];
            assert_eq!(lines.join("\n"), text.trim());
        }
    }
    let bodies = |records: Vec<Record>| records.into_iter().map(|record| record.body).collect::<Vec<_>>();
    assert_eq!(bodies(read(FORMAT_3)), bodies([read(FORMAT_1), read(FORMAT_2)].concat()));
}

#[test]
fn readings_of_older_formats_are_described_in_neutral_words() {
    let described = |record: Record| {
        let replied = record.body.as_replied()?;
        Some(format!(
            "{} {} {}",
            record.header.name,
            serde_json::to_string(&replied.reading).unwrap(),
            replied.repairs.len()
        ))
    };
    let all: Vec<_> = read(FORMAT_3).into_iter().filter_map(described).collect();
    expect_test::expect![[r#"
        i1 {"kind":"acted","tool":"search","arguments":{"question":"a"}} 0
        i2 {"kind":"answered","text":"It is so."} 0
        decompose {"kind":"decided","value":{"goals":[{"goal":"{\"plan\":[{\"say\":\"zero\",\"tool\":true,\"fail\":true},{\"say\":\"one\",\"needs\":[0]}],\"revisions\":[[{\"say\":\"two\"}]]}","pattern":"plan-then-execute","context":"a part"},{"goal":"{\"answer\":\"b\"}","pattern":"react","context":"a part"}]}} 0
        i1 {"kind":"answered","text":"b"} 0
        plan {"kind":"decided","value":{"steps":[{"goal":"{\"say\":\"zero\",\"tool\":true,\"fail\":true}","tool_hint":"search"},{"goal":"{\"say\":\"one\",\"needs\":[0]}","tool_hint":"search","depends_on":[0]}]}} 0
        step/0 {"kind":"acted","tool":"search","arguments":{"question":"zero","fail":true}} 0
        plan/1 {"kind":"decided","value":{"steps":[{"goal":"{\"say\":\"two\"}","tool_hint":"search"}]}} 0
        review/1 {"kind":"decided","value":{"goals":[{"goal":"{\"answer\":\"c\"}","pattern":"react","context":"a part"}]}} 0
        i2 {"kind":"acted","tool":"search","arguments":{"question":"moss"}} 1"#]].assert_eq(&all.join("\n"));
}

#[test]
fn names_of_the_core_are_read_and_those_of_patterns_are_left_to_them() {
    let core = [
        (Name::session(), Core::Session),
        (Name::route(), Core::Route),
        (Name::route_task_type(), Core::RouteTaskType),
        (Name::route_pattern(), Core::RoutePattern),
        (Name::pattern_decision(), Core::PatternDecision),
        (Name::fan_out(2), Core::FanOut(2)),
        (Name::join(2), Core::Join(2)),
        (Name::check(2, 5), Core::Check { round: 2, index: 5 }),
        (Name::deadline(2), Core::Deadline(2)),
        (Name::end(), Core::End),
    ];
    for (name, kind) in core {
        assert_eq!(name.core(), Some(kind), "{name}");
        assert_eq!(name.retry().core(), None, "{name}");
        assert_eq!(name.retry().first_asking(), name);
        let is_turn_of_fan_in = ["fanout/2/check/5", "fanout/2/deadline"].contains(&name.as_str());
        assert_eq!(kind.is_fan_in(), is_turn_of_fan_in);
    }
    for own in ["i3", "i3/observation", "plan", "step/0/result", "fanout", "fanout/x", "fanout/1/check", "end/1"] {
        assert_eq!(Name::new(own).core(), None, "{own}");
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
fn a_stored_record_has_three_lines_of_which_two_are_proven() {
    let record = read(FORMAT_1).remove(0);
    let sealed = seal(&record.body, [7; 32]);
    let mut none = |hash| Err(UnreadableRecord::Stored { hash, what: "is missing" });
    let mut header = record.header.clone();
    (header.format, header.content) = (FORMAT, Hash::of(&sealed.body));
    let bytes = Record::stored(&header, &sealed);
    let read = Record::from_bytes_checked(&bytes).unwrap();
    assert_eq!((&read.header, &read.body), (&header, &record.body));
    let lines = Lines::of(&bytes).unwrap();
    let (texts, _) = erase(lines.body, lines.texts.unwrap(), 5, &mut none, &mut |_| true).unwrap();
    let erased = lines.with_texts(&texts);
    assert_eq!(Lines::of(&erased).unwrap().proven, lines.proven);
    Record::from_bytes_checked(&erased).unwrap();
}
