//! The table as users read it.

use super::verdict::{Result, Way};
use std::fmt::Write;

const HEAD: &str = "# TrustGraph's commands

All commands of `trustgraph-cli` 2.11.1, as they were run against this program. A test runs every one of them for real and
writes this page (`UPDATE_EXPECT=1 cargo xtask test` after a change), so that nothing in it is a promise only.

`works`: the command did its work, and the test saw that in what it printed. `not here`: what it needs is not part of this
server, and the command ends with the sentence beside it. `not applicable`: it asks no server of this kind.
Many commands end with the exit code 0 even if they print an error; that is how they are.

";

pub(super) fn table(results: &[Result]) -> String {
    let count = |wanted: fn(&Way) -> bool| results.iter().filter(|result| wanted(&result.way)).count();
    let (works, missing, other) = (
        count(|way| matches!(way, Way::Works)),
        count(|way| matches!(way, Way::NotHere(_))),
        count(|way| matches!(way, Way::NotApplicable)),
    );
    let total = results.len();
    let mut page = HEAD.to_owned();
    let _ = writeln!(page, "{total} commands: {works} work, {missing} are not here, {other} are not applicable.\n");
    page.push_str("| command | result | |\n|---|---|---|\n");
    for result in results {
        let (way, said) = match &result.way {
            Way::Works => ("works", String::new()),
            Way::NotHere(words) => ("not here", format!("says: {words}")),
            Way::NotApplicable => ("not applicable", String::new()),
            Way::Bad(_) => ("fails", String::new()),
        };
        let parts: Vec<&str> = [result.note, &said].into_iter().filter(|part| !part.is_empty()).collect();
        let _ = writeln!(page, "| `{}` | {way} | {} |", result.command, parts.join("; ").replace('|', "\\|"));
    }
    page
}
