//! Folders that earlier programs made open, verify, go on and look as before: folder format 1 with records of format 2,
//! and records of format 3.

use crate::{ok, run, stdout};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

#[test]
fn a_folder_of_an_earlier_program_is_as_good_as_a_new_one() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/folders");
    let folder = TempDir::new().unwrap();
    let unpacked =
        Command::new("tar").arg("xzf").arg(place.join("format-2.tar.gz")).arg("-C").arg(folder.path()).status();
    assert!(unpacked.unwrap().success());
    let data = folder.path().join("format-2");
    assert!(ok(&data, &["doctor"]).contains("8 runs, 102 records"));
    for session in ["s-react", "s-plan", "s-team", "s-large"] {
        let told = ok(&data, &["verify", session]);
        assert!(told.starts_with("ok: ") && told.contains("\nnot replayed: it has records of format 2"), "{told}");
        for (command, kept) in [("show", "show"), ("answer", "answer")] {
            let expected =
                std::fs::read_to_string(place.join(format!("format-2-expected/{session}.{kept}.txt"))).unwrap();
            assert_eq!(stdout(&run(&data, &["run", command, session, "--color", "never"])), expected, "{session}");
        }
    }
    // What was open when its process was killed goes on and is answered, however long ago that was.
    let checkpoint = folder.path().join("kept");
    std::fs::write(&checkpoint, ok(&data, &["log", "checkpoint"])).unwrap();
    assert!(stdout(&run(&data, &["resume"])).contains("open runs finished: 3"));
    let checkpoint = checkpoint.display().to_string();
    for session in ["s-open", "s-half", "s-middle"] {
        let told = ok(&data, &["run", "show", session, "--color", "never"]);
        assert!(told.contains("✓ Synthesis  subagents-complete"), "{told}");
        assert!(told.contains("nobody served it for "), "{told}");
        assert!(ok(&data, &["verify", session, "--anchor", &checkpoint]).starts_with("ok: "), "{session}");
    }
    // Its texts can be erased, and everything still holds.
    ok(&data, &["erase", "s-team", "--reason", "asked to"]);
    assert!(ok(&data, &["run", "show", "s-team"]).contains("[erased]"));
    assert!(ok(&data, &["verify", "s-team", "--anchor", &checkpoint]).starts_with("ok: "));
    ok(&data, &["doctor"]);
}

/// The folder of format 3 comes with what the program that made it said of it, and with a checkpoint.
#[test]
fn records_of_format_3_say_the_same_as_ever() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/folders");
    let folder = TempDir::new().unwrap();
    let unpacked =
        Command::new("tar").arg("xzf").arg(place.join("format-3.tar.gz")).arg("-C").arg(folder.path()).status();
    assert!(unpacked.unwrap().success());
    let (data, kept) = (folder.path().join("format-3"), folder.path().join("format-3-expected"));
    let checkpoint = folder.path().join("format-3.checkpoint").display().to_string();
    assert!(ok(&data, &["doctor"]).contains("8 runs, 190 records"));
    for session in ["s-react", "s-plan", "s-silent", "s-team", "s-erased"] {
        assert!(ok(&data, &["verify", session, "--anchor", &checkpoint]).starts_with("ok: "), "{session}");
        let told = [
            (vec!["run", "show", session, "--color", "never"], "show.txt"),
            (vec!["run", "show", session, "--output", "json"], "show.json"),
            (vec!["run", "answer", session, "--color", "never"], "answer.txt"),
            (vec!["run", "export", session], "ttl"),
            (vec!["run", "watch", session, "--output", "ndjson"], "events.ndjson"),
        ];
        for (command, name) in told {
            let Ok(expected) = std::fs::read_to_string(kept.join(format!("{session}.{name}"))) else {
                assert_eq!((session, name), ("s-erased", "events.ndjson"));
                continue;
            };
            let told = stdout(&run(&data, &command));
            if name == "events.ndjson" {
                let events = |text: &str| -> Vec<serde_json::Value> {
                    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
                };
                assert_eq!(events(&told), events(&expected), "{session}");
            } else {
                assert_eq!(told, expected, "{session} {name}");
            }
        }
    }
    // What was open when its process was killed goes on in the new format, behind records of the old one.
    assert!(stdout(&run(&data, &["resume"])).contains("open runs finished: 3"));
    for session in ["s-open", "s-half", "s-step"] {
        assert!(ok(&data, &["verify", session, "--anchor", &checkpoint]).starts_with("ok: "), "{session}");
    }
    ok(&data, &["erase", "s-plan", "--reason", "asked to"]);
    assert!(ok(&data, &["run", "show", "s-plan"]).contains("[erased]"));
    assert!(ok(&data, &["verify", "s-plan", "--anchor", &checkpoint]).starts_with("ok: "));
    ok(&data, &["doctor"]);
}
