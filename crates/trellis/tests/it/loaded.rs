//! Files of RDF are loaded, asked about, removed; on the folder and through a server.

use crate::served::Served;
use crate::{fails, json, ok, run, somewhere, stderr, stdout, trellis, until};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

const PEOPLE: &str = "@prefix : <http://example.com/> .\n\
    :ada :knows :grace ; :name \"Ada\"@en ; :address [ :city \"London\" ] .\n\
    :grace :name \"Grace\" .\n";

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn rows(data: &Path, sparql: &str) -> usize {
    json(data, &["sparql", sparql])["results"]["bindings"].as_array().unwrap().len()
}

/// A file of so many triples.
fn large(folder: &Path, count: usize) -> PathBuf {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "<http://e.com/{}> <http://e.com/p{}> \"value number {n}\" .", n / 8, n % 8).unwrap();
    }
    write(folder, "large.nt", &text)
}

#[test]
fn a_file_is_loaded_asked_about_and_removed() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let people = write(files.path(), "people.ttl", PEOPLE);
    let told = ok(data.path(), &["load", people.to_str().unwrap()]);
    assert!(told.starts_with("loaded 1 file into default: 5 triples read, 5 new,"), "{told}");
    let told = ok(data.path(), &["load", people.to_str().unwrap()]);
    assert!(told.contains("5 triples read, 0 new"), "the same file changes nothing: {told}");
    let moved = write(files.path(), "elsewhere/moved.ttl", PEOPLE);
    let told = ok(data.path(), &["load", moved.to_str().unwrap()]);
    assert!(told.contains("5 triples read, 0 new"), "nor does it from another place: {told}");
    let living = "SELECT ?who ?city { ?who <http://example.com/address> [ <http://example.com/city> ?city ] }";
    assert_eq!(rows(data.path(), living), 1);
    let listed = json(data.path(), &["knowledge", "list"]);
    let found = &listed["collections"][0];
    assert_eq!((found["collection"].as_str(), found["quads"].as_u64()), (Some("default"), Some(5)));
    assert_eq!((found["sources"].as_u64(), found["unfinished"].as_array().map(Vec::len)), (Some(2), Some(0)));
    assert_eq!(found["loaded_by"][0]["surface"], "command-line", "{found}");
    ok(data.path(), &["ask", "What now?"]);
    assert_eq!(rows(data.path(), "SELECT ?q { ?s tg:query ?q }"), 1, "runs are asked about as before");
    ok(data.path(), &["graph", "rebuild"]);
    assert_eq!(rows(data.path(), living), 1, "a rebuild leaves it alone");
    assert!(ok(data.path(), &["doctor"]).contains("5 quads in 1 collection"));
    assert!(ok(data.path(), &["knowledge", "remove", "default"]).contains("removed 5 quads from default"));
    assert_eq!(rows(data.path(), living), 0);
    assert_eq!(rows(data.path(), "SELECT ?q { ?s tg:query ?q }"), 1, "what runs say stays");
    assert_eq!(fails(data.path(), &["knowledge", "remove", "default"]).0, 5);
}

#[test]
fn a_folder_is_loaded_with_all_that_is_understood_and_workspaces_are_apart() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    write(files.path(), "a.nt", "<urn:a> <urn:p> \"1\" .\n");
    write(files.path(), "deep/b.nq", "<urn:b> <urn:p> \"1\" <urn:g> .\n");
    write(files.path(), "deep/c.trig", "<urn:g> { <urn:c> <urn:p> 1 }");
    write(files.path(), "d.jsonld", "{\"@id\": \"urn:d\", \"urn:p\": \"1\"}");
    let rdf = "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'";
    let xml = format!(
        "<rdf:RDF {rdf} xmlns:u='urn:'><rdf:Description rdf:about='urn:e'><u:p>1</u:p></rdf:Description></rdf:RDF>"
    );
    write(files.path(), "e.rdf", &xml);
    write(files.path(), "photo.jpg", "not understood");
    let folder = files.path().to_str().unwrap();
    let told = ok(data.path(), &["load", folder, "--collection", "all"]);
    assert!(told.starts_with("loaded 5 files into all: 5 triples read, 5 new"), "{told}");
    let everything = "SELECT ?s { ?s <urn:p> ?o }";
    assert_eq!(rows(data.path(), everything), 5);
    let elsewhere = run(data.path(), &["sparql", everything, "--workspace", "other", "--output", "json"]);
    let elsewhere = stdout(&elsewhere);
    assert!(!elsewhere.contains("urn:a"), "{elsewhere}");
    let refused = run(data.path(), &["load", files.path().join("photo.jpg").to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("Understood: RDF as turtle (.ttl)"), "{}", stderr(&refused));
}

#[test]
fn mistakes_are_told_with_file_line_and_column() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let wrong = write(files.path(), "a-wrong.ttl", "<urn:s> <urn:p> 1 .\n<urn:s> <urn:p> .\n");
    write(files.path(), "right.nt", "<urn:a> <urn:p> \"1\" .\n");
    write(files.path(), "z-forged.nt", "<urn:trustgraph:agent:S/end> <urn:p> \"1\" .\n");
    let refused = run(data.path(), &["load", files.path().to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    let told = stderr(&refused);
    assert!(told.contains(&format!("{}:2:17:", wrong.display())), "{told}");
    let listed = json(data.path(), &["knowledge", "list"]);
    assert_eq!(listed["collections"][0]["unfinished"].as_array().map(Vec::len), Some(1), "{listed}");
    let going_on = run(data.path(), &["load", files.path().to_str().unwrap(), "--keep-going"]);
    assert_eq!(going_on.status.code(), Some(11));
    let told = stderr(&going_on);
    assert!(told.contains("a-wrong.ttl:2:17:") && told.contains("is a node of a run"), "{told}");
    assert_eq!(rows(data.path(), "SELECT * { <urn:a> ?p ?o }"), 1, "what is right is there");
    assert_eq!(rows(data.path(), "SELECT * { <urn:trustgraph:agent:S/end> ?p ?o }"), 0, "nobody forges a run");
    std::fs::write(&wrong, "<urn:s> <urn:p> 1 .\n<urn:s> <urn:p> 2 .\n").unwrap();
    ok(data.path(), &["load", wrong.to_str().unwrap()]);
    let listed = json(data.path(), &["knowledge", "list"]);
    assert_eq!(listed["collections"][0]["unfinished"].as_array().map(Vec::len), Some(0), "{listed}");
}

/// Killed in the middle of a load, the folder has some first part of the file and says so; loading again completes it.
#[test]
fn killed_in_the_middle_of_a_load_it_is_completed_by_loading_again() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let count = 120_000;
    let file = large(files.path(), count);
    let knowledge = data.path().join("knowledge/1/quads");
    for kill in 0..2 {
        let mut child = trellis(data.path(), &["load", file.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Once tables are written, a part of the load is on disk.
        let tables = || std::fs::read_dir(knowledge.join("tables")).map_or(0, Iterator::count);
        let before = if kill == 0 { 0 } else { tables() };
        until("a part is on disk", || child.try_wait().unwrap().is_some() || tables() > before);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(stdout(&run(data.path(), &["doctor"])).contains("knowledge"), "it can be opened");
        let checked = run(data.path(), &["doctor", "--output", "json"]);
        assert!(checked.status.success(), "what is there is whole: {}", stdout(&checked));
    }
    let told = ok(data.path(), &["load", file.to_str().unwrap()]);
    assert!(told.contains(&format!("{count} triples read")), "{told}");
    let listed = json(data.path(), &["knowledge", "list"]);
    let found = &listed["collections"][0];
    assert_eq!((found["quads"].as_u64(), found["unfinished"].as_array().map(Vec::len)), (Some(count as u64), Some(0)));
    assert!(ok(data.path(), &["doctor"]).contains(&format!("{count} quads in 1 collection")));
}

/// As much memory as the program has without a file, and little more.
#[cfg(target_os = "linux")]
#[test]
fn a_large_file_takes_little_memory() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = large(files.path(), 100_000);
    let mut child = trellis(data.path(), &["load", file.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    until("it is loaded", || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak = line.and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok()).unwrap_or(0).max(peak);
        child.try_wait().unwrap().is_some()
    });
    assert!(child.wait().unwrap().success());
    assert!(peak > 0 && peak < 400 << 10, "{peak} kB");
}

#[test]
fn a_server_takes_files_of_any_size_and_tells_what_is_wrong() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let served = Served::start(data.path());
    // Larger than any other request may be.
    let long = "x".repeat(100_000);
    let texts = (0..450).fold(String::new(), |text, n| text + &format!("<urn:s{n}> <urn:p> \"{long}\" .\n"));
    let file = write(files.path(), "texts.nt", &texts);
    let told = ok(data.path(), &["load", file.to_str().unwrap(), "--collection", "texts"]);
    assert!(told.contains("450 triples read, 450 new"), "{told}");
    let cut = write(files.path(), "cut.nt", &texts[..texts.len() / 2]);
    let refused = run(data.path(), &["load", cut.to_str().unwrap(), "--collection", "texts"]);
    assert_eq!(refused.status.code(), Some(2), "a line is cut in the middle");
    assert!(stderr(&refused).contains(&format!("{}:", cut.display())), "{}", stderr(&refused));
    let early = write(files.path(), "early.nt", &format!("nonsense\n{texts}"));
    let refused = run(data.path(), &["load", early.to_str().unwrap(), "--collection", "other"]);
    assert!(stderr(&refused).contains(&format!("{}:1:1:", early.display())), "{}", stderr(&refused));
    let people = write(files.path(), "people.ttl", PEOPLE);
    let told = ok(data.path(), &["load", people.to_str().unwrap()]);
    assert!(told.contains("5 triples read, 5 new"), "{told}");
    let url = served.url();
    let again = somewhere(data.path(), &["load", people.to_str().unwrap(), "--url", &url]).output().unwrap();
    assert!(stdout(&again).contains("5 triples read, 0 new"), "{}", stderr(&again));
    let listed = json(data.path(), &["knowledge", "list"]);
    assert_eq!(listed["collections"][0]["quads"].as_u64(), Some(5), "{listed}");
    assert_eq!(listed["collections"][1]["unfinished"].as_array().map(Vec::len), Some(1), "{listed}");
    assert!(ok(data.path(), &["knowledge", "remove", "texts"]).starts_with("removed 450 quads"));
    assert_eq!(fails(data.path(), &["knowledge", "remove", "texts"]).0, 5);
    let (status, reply) = served.reply("POST", "/api/v1/collections/x/knowledge?format=word", "a");
    assert!(status == 400 && reply.to_string().contains("n-quads (.nq)"), "{status} {reply}");
    let (status, reply) = served.reply("POST", "/api/v1/collections/x/knowledge?format=turtle", "<urn:s> <urn:p> .");
    assert!(status == 422 && reply.to_string().contains("an upload:1:17"), "{status} {reply}");
}
