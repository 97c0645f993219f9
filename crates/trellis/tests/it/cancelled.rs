//! `trellis run cancel`.

use crate::killed::{alone, kill_after};
use crate::{fails, json, ok, run, stderr};
use serde_json::json;
use tempfile::TempDir;

#[test]
fn a_run_that_was_left_open_is_cancelled_and_its_record_is_whole() {
    let data = TempDir::new().unwrap();
    let data = data.path();
    kill_after(alone(data, "mine", "0"), 4);
    assert_eq!(ok(data, &["run", "cancel", "mine"]), "cancelled: run mine\n");
    let listed = json(data, &["runs"]);
    assert_eq!((&listed["runs"][0]["run_id"], &listed["runs"][0]["state"]), (&json!("mine"), &json!("cancelled")));
    assert_eq!(json(data, &["verify", "mine"])["ok"], true);
    let answer = run(data, &["run", "answer", "mine"]);
    assert_eq!((answer.status.code(), stderr(&answer).as_str()), (Some(14), "run mine: the run was cancelled\n"));
    let again = json(data, &["run", "cancel", "mine"]);
    assert_eq!(again, json!({"run_id": "mine", "state": "cancelled"}));
    assert_eq!(json(data, &["resume"])["finished"], json!([]), "nothing is left to do");
}

#[test]
fn a_run_that_has_ended_or_does_not_exist_cannot_be_cancelled() {
    let data = TempDir::new().unwrap();
    let data = data.path();
    ok(data, &["ask", "What is a trellis?", "--session", "done"]);
    let (exit, message) = fails(data, &["run", "cancel", "done"]);
    assert_eq!((exit, message.contains("run done has ended already (answered)")), (2, true), "{message}");
    assert_eq!(fails(data, &["run", "cancel", "nobody"]).0, 5);
}
