//! A folder that an earlier program made (folder format 1, records of format 2) opens, verifies, goes on and looks as before.

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
        assert!(ok(&data, &["verify", session]).starts_with("ok: "), "{session}");
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
