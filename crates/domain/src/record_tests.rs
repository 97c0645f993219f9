//! Stored records keep loading: a sample of each format is kept beside this test.

use super::*;

const FORMAT_1: &str = include_str!("../samples/records-format-1.txt");
/// One record of every kind of event and reading that came with this format.
const FORMAT_2: &str = include_str!("../samples/records-format-2.txt");

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
        let lines = [serde_json::to_string(&record.header).unwrap(), serde_json::to_string(&record.body).unwrap()];
        assert_eq!(lines.join("\n"), text.trim());
    }
}

#[test]
fn names_of_turns_are_read_and_names_of_records_are_not() {
    let turns = [
        (Name::route(), TurnKind::Route),
        (Name::plan(0), TurnKind::Plan(0)),
        (Name::plan(2), TurnKind::Plan(2)),
        (Name::step(7), TurnKind::Step(7)),
        (Name::synthesis(), TurnKind::Synthesis),
        (Name::decompose(), TurnKind::Decompose),
        (Name::review(3), TurnKind::Review(3)),
        (Name::check(2, 5), TurnKind::Check { round: 2, index: 5 }),
        (Name::deadline(2), TurnKind::Deadline(2)),
    ];
    for (name, kind) in turns {
        assert_eq!(name.turn_kind(), Some(kind), "{name}");
        assert_eq!(name.retry().turn_kind(), None, "{name}");
        assert_eq!(name.retry().first_asking(), name);
        assert_eq!(kind.is_fan_in(), name.as_str().starts_with("fanout/"));
    }
    for name in [Name::session(), Name::end(), Name::join(1), Name::fan_out(1), Name::step_result(0)] {
        assert_eq!(name.turn_kind(), None, "{name}");
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
fn names_of_iterations_are_read_and_others_are_not() {
    assert_eq!(Name::iteration(12).as_iteration(), Some(12));
    assert_eq!(Name::observation(12).as_iteration(), None);
    assert_eq!(Name::end().as_iteration(), None);
}
