//! No circle of imports between the modules of a crate: whoever reads one of them need not read all.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crates whose modules import each other in one direction only: all of them.
const STRAIGHT: [&str; 10] = [
    "domain",
    "gateway",
    "models",
    "orchestrator",
    "patterns",
    "provenance",
    "simulation",
    "store",
    "tools",
    "trellis",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        let is_test = name.contains("test") || name == "fixture.rs";
        if entry.is_dir() && !is_test {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") && !is_test {
            found.push(entry);
        }
    }
}

/// Which module of a crate names which other ones.
fn imports(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let (mut files, mut graph) = (Vec::new(), BTreeMap::<String, BTreeSet<String>>::new());
    sources(root, &mut files);
    for file in files {
        let inside = file.strip_prefix(root).unwrap();
        let module = inside.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned();
        if module == "lib" || module == "main" {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let named = code.flat_map(|line| line.split("crate::").skip(1)).filter_map(|rest| {
            let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_')).unwrap_or(rest.len());
            (end > 0 && !rest[end..].starts_with(|c: char| c.is_alphanumeric())).then(|| rest[..end].to_owned())
        });
        let others = named.filter(|other| *other != module).collect::<BTreeSet<_>>();
        graph.entry(module).or_default().extend(others);
    }
    graph
}

/// The modules that lie on a circle: what is left when those that name nobody, or only such, are taken away.
fn circle(mut graph: BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    loop {
        let free: Vec<_> = graph
            .iter()
            .filter(|(_, others)| !others.iter().any(|other| graph.contains_key(other)))
            .map(|(module, _)| module.clone())
            .collect();
        if free.is_empty() {
            return graph.into_keys().collect();
        }
        graph.retain(|module, _| !free.contains(module));
    }
}

#[test]
fn modules_import_each_other_in_one_direction_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
    for name in STRAIGHT {
        let left = circle(imports(&crates.join(name).join("src")));
        assert!(left.is_empty(), "{name}: these modules lie on a circle of imports, or use one: {left:?}");
    }
}

#[test]
fn a_circle_is_found() {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let graph = BTreeMap::from([
        ("a".to_owned(), names(&["b"])),
        ("b".to_owned(), names(&["c", "d"])),
        ("c".to_owned(), names(&["a"])),
        ("d".to_owned(), names(&[])),
    ]);
    assert_eq!(circle(graph), names(&["a", "b", "c"]));
}
