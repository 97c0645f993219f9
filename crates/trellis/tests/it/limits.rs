//! Limits by request, flag, environment and file.

use crate::{PARTNER, fails, json, run, stderr, trellis};
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

const REACT: [&str; 4] = ["ask", PARTNER, "--pattern", "react"];

fn with(data: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    trellis(data, &[&REACT[..], arguments].concat()).envs(variables.iter().copied()).output().unwrap()
}

/// How many iterations the newest run had, its last one included.
fn iterations(data: &Path) -> usize {
    crate::steps_of(&json(data, &["run", "show", "last"])["sessions"][0], "analysis").len()
}

#[test]
fn a_limit_ends_a_run_with_its_own_exit_code() {
    let data = TempDir::new().unwrap();
    let output = with(data.path(), &["--limit", "max-iterations=1"], &[]);
    assert_eq!(output.status.code(), Some(12), "{}", stderr(&output));
    assert_eq!(json(data.path(), &["run", "show", "last"])["state"], "limit");
    crate::ok(data.path(), &["verify", "last"]);
}

#[test]
fn request_environment_and_file_count_in_this_order_and_never_above_the_maximum() {
    let data = TempDir::new().unwrap();
    let file = data.path().join("trellis.toml");
    let settings = file.to_str().unwrap();
    std::fs::write(&file, "[limits]\nmax-iterations = 1\n").unwrap();
    let one = with(data.path(), &["--settings", settings], &[]);
    assert_eq!((one.status.code(), iterations(data.path())), (Some(12), 1), "{}", stderr(&one));
    let two = with(data.path(), &[], &[("TRELLIS_SETTINGS", settings), ("TRELLIS_LIMIT_MAX_ITERATIONS", "2")]);
    assert_eq!((two.status.code(), iterations(data.path())), (Some(12), 2), "the environment beats the file");
    let many = [("TRELLIS_SETTINGS", settings), ("TRELLIS_LIMIT_MAX_ITERATIONS", "2")];
    let all = with(data.path(), &["--limit", "max-iterations=9"], &many);
    assert_eq!((all.status.code(), iterations(data.path())), (Some(0), 3), "the request beats both");
    let held = with(data.path(), &["--limit", "max-iterations=9"], &[("TRELLIS_LIMIT_MAXIMUM_MAX_ITERATIONS", "2")]);
    assert_eq!((held.status.code(), iterations(data.path())), (Some(12), 2), "the operator's maximum holds");
    assert!(stderr(&held).contains("max-iterations is held to 2, the operator's maximum"), "{}", stderr(&held));

    let home = data.path().join("config");
    std::fs::create_dir_all(home.join("trellis")).unwrap();
    std::fs::write(home.join("trellis/trellis.toml"), "[limits.maximum]\nmax-iterations = 1\n").unwrap();
    let found = with(data.path(), &[], &[("XDG_CONFIG_HOME", home.to_str().unwrap())]);
    assert_eq!((found.status.code(), iterations(data.path())), (Some(12), 1), "the user's own file is found");
}

#[test]
fn wrong_limits_are_refused_and_nothing_is_asked() {
    let data = TempDir::new().unwrap();
    let refused = |output: &Output, expected: &str| {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
        assert!(stderr(output).contains(expected), "{expected} is missing in {}", stderr(output));
    };
    let flag = |limit: &str| with(data.path(), &["--limit", limit], &[]);
    refused(&flag("speed=3"), "there is no limit `speed`; choose one of max-iterations, max-plan-steps, max-replans");
    refused(&flag("max-rounds=many"), "the limit max-rounds is \"many\"; write a whole number");
    refused(&flag("max-rounds=0"), "the limit max-rounds is 0; write at least 1");
    refused(&flag("max-rounds"), "write NAME=VALUE");
    let variable = with(data.path(), &[], &[("TRELLIS_LIMIT_SPEED", "3")]);
    refused(&variable, "TRELLIS_LIMIT_SPEED: there is no limit `speed`");
    let file = data.path().join("wrong.toml");
    let settings = file.to_str().unwrap();
    for (text, expected) in [
        ("[limits]\n\nmax-iteration = 3\n", "wrong.toml: line 3, limits.max-iteration: there is no limit"),
        ("[limits.maximum]\nmax-rounds = \"3\"\n", "wrong.toml: line 2, limits.maximum.max-rounds: the limit"),
        ("[limit]\n", "wrong.toml: line 1: there is no setting `limit`"),
        ("[limits\n", "wrong.toml: line 1: "),
    ] {
        std::fs::write(&file, text).unwrap();
        refused(&with(data.path(), &["--settings", settings], &[]), expected);
        refused(&run(data.path(), &["resume", "--settings", settings]), expected);
    }
    refused(&with(data.path(), &["--settings", "/nowhere.toml"], &[]), "cannot read the settings file /nowhere.toml");
    assert_eq!(fails(data.path(), &["runs"]).0, 5, "not even a data folder was made");
}

#[test]
fn the_doctor_tells_the_limits_in_force() {
    let data = TempDir::new().unwrap();
    crate::ok(data.path(), &["ask", "One?"]);
    assert!(crate::ok(data.path(), &["doctor"]).contains("limits         as built in"));
    let file = data.path().join("trellis.toml");
    let settings = file.to_str().unwrap();
    std::fs::write(&file, "[limits]\nmax-depth = 2\n[limits.maximum]\nmax-rounds = 1\n").unwrap();
    let report = crate::ok(data.path(), &["doctor", "--settings", settings]);
    assert!(report.contains("limits         max-depth 2, max-rounds 1; at most max-rounds 1"), "{report}");
    std::fs::write(&file, "[limits]\nmax-dept = 2\n").unwrap();
    let output = run(data.path(), &["doctor", "--settings", settings]);
    assert_eq!(output.status.code(), Some(6), "{}", crate::stdout(&output));
    assert!(
        crate::stdout(&output).contains("line 2, limits.max-dept: there is no limit"),
        "{}",
        crate::stdout(&output)
    );
}

#[test]
fn resume_takes_the_operators_limits_as_flags() {
    let data = TempDir::new().unwrap();
    let (code, message) = fails(data.path(), &["resume", "--limit", "speed=3"]);
    assert_eq!((code, message.contains("there is no limit `speed`")), (2, true), "{message}");
    run(data.path(), &REACT);
    crate::ok(data.path(), &["resume", "--limit", "max-iterations=2"]);
}
