//! The table as users read it.

use super::verdict::{Result, Way};

const HEAD: &str = "# TrustGraph's commands

All commands of `trustgraph-cli` 2.11.1, as they were run against this program. A test runs every one of them for real and
writes this page (`UPDATE_EXPECT=1 cargo xtask test` after a change), so that nothing in it is a promise only.

`works`: the command did its work, and the test saw that in what it printed; of those that print nothing, that they ended well.
`not here`: what it needs is not part of this server, and the command ends with the sentence beside it. `not applicable`: it
asks no server of this kind. Many commands end with the exit code 0 even if they print an error; that is how they are.

";

const FOOT: &str = "
## What to know

`tg-export-workspace` and `tg-import-workspace` carry items, documents and loaded knowledge. Make the workspace first
(`tg-create-workspace`), and import with `--overwrite` if it is to be the same. Runs and their records stay where they are, and so do
tables and what documents were loaded to be searched (`--process` loads them again). The commands themselves leave something behind: quads with blank nodes or quoted
triples are counted as skipped, all graphs of a collection become one, values that are no JSON become JSON texts, and IRIs in
what is said of documents become texts. A collection of more than 100,000 quads, or a document of more than 24 MiB, ends an
export with a sentence; `trellis load` takes files of any size.

`tg-invoke-decision-scoring` takes questions of three types: `choice` with `options` (names, or an object from names to
descriptions), `score` with `criteria` (levels, the lowest first) and `noul` (how likely something is). The model answers under a schema that allows
nothing but the options; `enforcement` says whether the provider held it to that (`decoding`) or whether its reply was
checked (`validated`). A reply outside of the options is an error. The shares are the model's own estimates.
Nothing of it belongs to a run, so nothing is recorded: a decision that has to be proven later is one of an agent.
";

pub(super) fn table(results: &[Result]) -> String {
    let count = |wanted: fn(&Way) -> bool| results.iter().filter(|result| wanted(&result.way)).count();
    let (total, fine) = (results.len(), count(|way| matches!(way, Way::Works)));
    let missing = count(|way| matches!(way, Way::NotHere(_)));
    let other = count(|way| matches!(way, Way::NotApplicable));
    let counted = format!("{total} commands: {fine} work, {missing} are not here, {other} are not applicable.\n\n");
    let rows: Vec<String> = results.iter().map(row).collect();
    [HEAD, &counted, "| command | result | |\n|---|---|---|\n", &rows.concat(), FOOT].concat()
}

fn row(result: &Result) -> String {
    let (way, said) = match &result.way {
        Way::Works => ("works", String::new()),
        Way::NotHere(words) => ("not here", format!("says: {words}")),
        Way::NotApplicable => ("not applicable", String::new()),
        Way::Bad(_) => ("fails", String::new()),
    };
    let parts: Vec<&str> = [result.note, &said].into_iter().filter(|part| !part.is_empty()).collect();
    let about = parts.join("; ").replace('|', "\\|");
    format!("| `{}` | {way} | {about} |\n", result.command)
}
