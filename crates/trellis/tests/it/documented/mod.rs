//! What the documentation tells people to type is typed. Whether the program takes all other command lines of it is
//! checked beside the definition of the command line.

mod pages;
#[allow(dead_code, reason = "the tests of the examples use the rest of it")]
mod reader;
mod untyped;

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

/// Lines of a page that name a server, each with what is typed in its place.
fn at_server(page: &str, named: &str, own: &str) -> Vec<(String, String)> {
    let blocks = Page::read(Path::new(page)).blocks();
    let lines = blocks.iter().filter(|block| block.is_shell()).flat_map(|block| block.text.lines());
    lines.filter(|line| line.contains(named)).map(|line| (line.to_owned(), line.replace(named, own))).collect()
}

/// Starts a server at a port that is free, waits until it serves, and stops it again.
fn for_a_moment(serve: &str) -> String {
    let is_up = "until grep -q '\"serving\"' serving; do kill -0 $!; sleep 0.05; done";
    format!("rm -f serving; {serve} --log-format json 2> serving & {is_up}; kill $!; wait $!")
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

#[test]
fn figures_that_are_repeated_are_those_that_were_measured() {
    let docs = pages::project().join("docs");
    let comparison = std::fs::read_to_string(docs.join("comparison.md")).unwrap();
    let (_, figures) = comparison.split_once("## Figures").unwrap();
    let rows = figures.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(".md) |"));
    let rows: Vec<_> = rows.map(|row| row.split(" | ").collect::<Vec<_>>()).collect();
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        let [_, figure, link] = row[..] else { panic!("a row has what, figure and page: {row:?}") };
        let (_, page) = link.split_once('(').unwrap();
        let measured = std::fs::read_to_string(docs.join(page).with_extension("md")).unwrap();
        assert!(measured.contains(figure), "docs/{page}.md does not say `{figure}`");
    }
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
    reader.follows("docs/terminal.md", "Asking", "", &[]);
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
    reader.follows("docs/audit.md", "Questions of an auditor", "", &[]);
    reader.follows("docs/audit.md", "One run", "", &[]);
    reader.follows("docs/audit.md", "All runs", "", &[]);
    reader.follows("docs/audit.md", "The configuration", "", &[]);
    reader.follows("docs/audit.md", "Was anything changed?", "", &instead);
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
    let own = at_server("docs/api.md", "localhost:8888", &server.address);
    let instead: Vec<_> = own.iter().map(|(line, own)| (line.as_str(), own.as_str())).collect();
    let told = reader.follows("docs/api.md", "Our own API", "", &instead);
    told.says(&["You asked: What is Company X?", "event: run.completed", "@prefix prov:"]);
    // A run that has ended is neither cancelled nor waits for anybody.
    assert_eq!(told.stdout.matches("the run has ended already: answered").count(), 2, "{told}");
}

#[test]
fn a_program_that_was_installed_answers_and_is_in_order() {
    let reader = reader();
    reader.follows("docs/install.md", "From the source", "", &[]);
    let told = reader.follows("docs/install.md", "First steps", "", &[]);
    told.says(&["## Partner risk profile: Company X", "all read, every hash is right"]);
}

#[test]
fn a_server_begins_to_serve_and_stops_when_it_is_asked_to() {
    let here = for_a_moment("trellis serve --listen 127.0.0.1:0");
    let for_others = for_a_moment("TRELLIS_TOKEN=… trellis serve --listen 0.0.0.0:0");
    let reader = reader();
    reader.follows("README.md", "The page and the API", "", &[("trellis serve", here.as_str())]);
    let instead = [("trellis serve", here.as_str()), ("TRELLIS_TOKEN=… trellis serve", for_others.as_str())];
    reader.follows("docs/operations.md", "Serve", "", &instead);
}

#[test]
fn commands_go_to_the_server_that_is_named_or_has_the_folder() {
    let reader = reader();
    let folder = reader.home().join("data");
    let server = Served::start(&folder);
    let reader = reader.set("TRELLIS_DATA", folder.to_str().unwrap());
    let own = at_server("docs/commands.md", "https://trellis.example.org/", &server.url());
    let instead: Vec<_> = own.iter().map(|(line, own)| (line.as_str(), own.as_str())).collect();
    let told = reader.follows("docs/commands.md", "At a server", "", &instead);
    told.says(&[" goes on at the server", " · answered · "]);
}

#[test]
fn a_run_that_was_interrupted_is_listed_and_goes_on() {
    let reader = reader();
    let folder = reader.home().join("data");
    let mut ask = crate::trellis(&folder, &["ask", crate::PARTNER, "--session", "3b1e7afa", "--timeout", "1s"]);
    // Each piece of an answer takes as long as somebody waits for the whole.
    let asked = ask.env("TRELLIS_REHEARSAL_DELAY_MS", "1000").output().unwrap();
    assert_eq!(asked.status.code(), Some(130), "{}", crate::stderr(&asked));
    let reader = reader.set("TRELLIS_DATA", folder.to_str().unwrap());
    // It has ended by then, which is told.
    let cancel = ("trellis run cancel 3b1e7afa", "trellis run cancel 3b1e7afa || test $? = 2");
    let told = reader.follows("docs/terminal.md", "Stopping and going on", "", &[cancel]);
    told.says(&["interrupted", "## Partner risk profile: Company X", "open runs finished: 0"]);
    told.says(&["run 3b1e7afa has ended already (answered"]);
}

#[test]
fn knowledge_and_tables_are_loaded_asked_and_removed() {
    let reader = reader();
    let folder = reader.home().join("data");
    let reader = reader.set("TRELLIS_DATA", folder.to_str().unwrap());
    let write = |name: &str, text: &[u8]| std::fs::write(reader.project().join(name), text).unwrap();
    std::fs::create_dir_all(reader.project().join("ontology")).unwrap();
    write("people.ttl", b"@prefix : <http://example.com/> . :ada :name \"Ada\" ; :knows :grace .\n");
    write("places.nq", b"<http://example.com/p1> <http://example.com/name> \"London\" <http://example.com/map> .\n");
    write("ontology/diseases.ttl", b"@prefix : <http://example.com/> . :flu a :Infection ; :lasts \"a week\" .\n");
    // Nobody answers at that address.
    let told = reader.follows("docs/knowledge.md", "Load", "", &[("trellis load https://", "")]);
    told.says(&["loaded 2 files into default: 3 triples read, 3 new", "loaded 1 file into medicine: 2 triples read"]);
    let told = reader.follows("docs/knowledge.md", "Look and remove", "", &[]);
    told.says(&["removed 2 quads from medicine", "Ada", "London"]);

    let number = r#"{"name": "id", "type": "integer", "primary_key": true}"#;
    for (name, field) in [("sales", "amount"), ("events", "what")] {
        let text = format!(r#"{{"name": "{field}", "type": "string"}}"#);
        let schema = format!(r#"{{"name": "{name}", "description": "{name}", "fields": [{number}, {text}]}}"#);
        crate::ok(&folder, &["config", "put", "schema", name, &schema]);
    }
    write("cities.csv", b"id,name,people\n1,Oslo,709000\n2,Rome,2748000\n");
    write("2024.csv", b"id,amount\n1,ten\n");
    write("2025.csv", b"id,amount\n2,twenty\n");
    write("events.jsonl", b"{\"id\": 1, \"what\": \"opened\"}\n");
    write("old.csv", b"id,city\n5,M\xfcnchen\n");
    // Not every program reads Parquet.
    reader.follows("docs/tables.md", "Load", "", &[("trellis load orders.parquet", "")]);
    reader.follows("docs/tables.md", "Ask", "", &[]).says(&["added statistics", "added find-city"]);
    reader.follows("docs/tables.md", "GraphQL", "", &[]).says(&["Rome"]);
}

#[test]
fn tools_and_models_are_configured_before_anybody_can_be_asked() {
    let reader = reader();
    // What calls a model or a service is left out: neither is there.
    let told =
        reader.follows("docs/tools.md", "Questions to a knowledge graph", "", &[("trellis tools test people", "")]);
    told.says(&["added people", "added query"]);
    reader.follows("docs/tools.md", "Agents as tools", "", &[]).says(&["added research", "added audit"]);
    reader.follows("docs/tools.md", "Services", "", &[]).says(&["added joke"]);
    reader.follows("docs/models.md", "Set a model", "", &[("export ", ""), ("trellis ask", "")]);
}
