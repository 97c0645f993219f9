//! What the documentation tells people to type is typed. Whether the program takes all other command lines of it is
//! checked beside the definition of the command line.

mod pages;
#[allow(dead_code, reason = "the tests of the examples use the rest of it")]
mod reader;

use crate::served::Served;
use pages::{Line, Page};
use reader::Reader;
use std::path::Path;

/// Programs that the pages use beside ours.
const PROGRAMS: [&str; 12] =
    ["base64", "cp", "curl", "export", "jq", "less", "npm", "pip", "sha256sum", "sudo", "tar", "trellis"];

fn reader() -> Reader {
    Reader::of(Path::new(env!("CARGO_BIN_EXE_trellis")))
}

/// Why nobody can type a line, if nobody can.
fn fault(page: &Page, line: &Line, stock: &str) -> Option<String> {
    let project = pages::project();
    let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    let known = match *words {
        ["cargo", "xtask", chore, ..] => {
            let chores = std::fs::read_to_string(project.join("xtask/src/main.rs")).unwrap();
            chores.contains(&format!("Some(\"{chore}\")"))
        }
        ["cargo", "install", "--path", path, ..] => project.join(path).join("Cargo.toml").is_file(),
        ["cargo", "run" | "build", "--release", ..] => true,
        ["python3" | "node", file, ..] if line.is_whole => {
            let here = project.join(&page.name).with_file_name(file);
            here.is_file() || project.join(file).is_file()
        }
        [stock_command, ..] if stock_command.starts_with("tg-") => stock.contains(&format!("`{stock_command}`")),
        [program, ..] => !line.is_whole || PROGRAMS.contains(&program),
        [] => false,
    };
    (!known).then(|| format!("{}:{}: {} is not known", page.name, line.number, words.join(" ")))
}

#[test]
fn whatever_else_is_to_be_typed_is_there() {
    let stock = std::fs::read_to_string(pages::project().join("docs/trustgraph-commands.md")).unwrap();
    let pages = pages::all();
    let wrong = pages.iter().flat_map(|page| page.lines().into_iter().filter_map(|line| fault(page, &line, &stock)));
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Two of them by tests of this crate, `deploy` as far as it can be; the others where their packages are installed
/// (`acceptance/tests/it/examples.rs`).
#[test]
fn every_example_is_run_by_a_test_and_listed() {
    let list = std::fs::read_to_string(pages::project().join("examples/README.md")).unwrap();
    let entries = std::fs::read_dir(pages::project().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let folders =
        entries.filter(|path| path.is_dir()).map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let mut folders: Vec<_> = folders.collect();
    folders.sort();
    assert_eq!(folders, ["deploy", "http-tool", "lighthouses", "mcp-server", "openai", "python"]);
    let missing: Vec<_> = folders.iter().filter(|name| !list.contains(&format!("| [{name}]({name}) |"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_readme_is_followed_from_the_first_question_to_a_tool_of_ones_own() {
    let reader = reader();
    let told = reader.follows("README.md", "Ask", "", &[]);
    told.says(&["◆ task     ● risk-assessment ○ general ○ research ○ summarisation (by model)"]);
    told.says(&["◆ pattern  ● supervisor ○ plan-then-execute ○ react (by model)", "≡ split    4 agents at once"]);
    told.says(&["✓ join     all have ended: 4 of 4 findings", "## Partner risk profile: Company X"]);
    told.says(&[" · answered · ", " · rehearsal", "ok: run "]);
    // What a reader brings: an item as the page on tools has it, and a server.
    let tools = Page::read(Path::new("docs/tools.md")).blocks();
    let weather = tools.iter().find(|block| block.text.starts_with('{') && block.text.contains("\"http\"")).unwrap();
    std::fs::write(reader.project().join("weather.json"), &weather.text).unwrap();
    std::fs::create_dir_all(reader.home().join(".config")).unwrap();
    std::fs::write(reader.home().join(".config/mcp.json"), crate::mcp::file()).unwrap();
    let told = reader.follows("README.md", "Your own tool", "", &[]);
    told.says(&["added 4 tools", "Robert Stevenson built the tower", "(p1) Lighthouses › Bell Rock"]);
}

#[test]
fn the_lighthouses_are_loaded_asked_and_queried() {
    let reader = reader();
    let told = reader.follows("examples/README.md", "Lighthouses", "", &[]);
    told.says(&["Robert Stevenson built the tower", "(p1)", "lighthouses", "builder"]);
    // Without harm once more, as the pages say.
    let told = reader.follows("docs/documents.md", "Ask", "", &[("trellis tools add handbook", "")]);
    told.says(&["Robert Stevenson built the tower there between 1807 and 1810, with John Rennie as chief engineer;"]);
}

#[test]
fn commands_for_scripts_limits_and_repairs_do_what_their_pages_say() {
    let reader = reader();
    let folder = reader.home().join("data");
    let reader = reader.set("TRELLIS_DATA", folder.to_str().unwrap());
    reader.follows("docs/commands.md", "Commands", "", &[]);
    reader.follows("docs/patterns.md", "Patterns", "", &[]);
    let told = reader.follows("docs/patterns.md", "Three scenarios", "", &[]);
    told.says(&["≡ plan     4 steps", "≡ plan     revised: 2 steps", "the archive is closed (scripted)"]);
    told.says(&["! join     the deadline has come: 2 of 3 findings", "◆ review   answers now, 1 missing"]);
    told.says(&["answered without finding 2"]);
    reader.follows("docs/operations.md", "Limits", "", &[]);
    reader.follows("docs/operations.md", "When it stops", "", &[]);
    reader.follows("docs/operations.md", "Backup", "", &[]);
    reader.follows("docs/operations.md", "Doctor", "", &[]);
    let shells = reader.home().join(".local/share/bash-completion/completions");
    std::fs::create_dir_all(&shells).unwrap();
    reader.follows("docs/terminal.md", "Shells", "", &[]);
    assert!(std::fs::read_to_string(shells.join("trellis")).unwrap().contains("complete"));
}

#[test]
fn the_questions_of_an_auditor_are_answered_one_after_the_other() {
    let reader = reader();
    // The other program needs a package; it is run where that is installed.
    let instead = [("python3 clients/python/verify_log.py", "test -s log.jsonl")];
    for heading in ["Questions of an auditor", "One run", "All runs", "The configuration", "Was anything changed?"] {
        reader.follows("docs/audit.md", heading, "", &instead);
    }
}

#[test]
fn a_tool_that_needs_agreement_waits_for_it() {
    // Nobody is there to answer while it asks, and a script that ends with the first failure would end here.
    let ask = "trellis ask \"Assess the risk profile of Company X as a potential partner\"";
    let waiting = format!("{ask} || test $? = 130");
    let told = reader().follows("docs/tools.md", "Ask before it is done", "", &[(ask, &waiting)]);
    told.says(&["waits for an answer", "decided: approve in run ", " · answered · ", "open runs finished: 1"]);
}

#[test]
fn the_requests_of_the_page_on_the_api_are_answered() {
    let reader = reader();
    let server = Served::start(&reader.home().join("data"));
    let page = Page::read(Path::new("docs/api.md")).blocks();
    let typed = page.iter().find(|block| block.heading == "Our own API" && block.is_shell()).unwrap();
    let own: Vec<_> = typed.text.lines().map(|line| (line, line.replace("localhost:8888", &server.address))).collect();
    let instead: Vec<_> = own.iter().map(|(line, own)| (*line, own.as_str())).collect();
    let told = reader.follows("docs/api.md", "Our own API", "", &instead);
    told.says(&["You asked: What is Company X?", "event: run.completed", "@prefix prov:"]);
    // A run that has ended is neither cancelled nor waits for anybody.
    assert_eq!(told.stdout.matches("the run has ended already: answered").count(), 2, "{told}");
}
