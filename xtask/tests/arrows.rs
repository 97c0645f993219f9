//! Which crate may see which, and that the pure ones stay pure.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod metadata;

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PURE: [&str; 3] = ["trellis-domain", "trellis-provenance", "trellis-patterns"];

/// The crates of the workspace that each crate may depend on.
fn allowed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let domain = ["trellis-domain"];
    let acts = ["trellis-domain", "trellis-provenance"];
    let core = ["trellis-domain", "trellis-patterns", "trellis-provenance"];
    let adapter = ["trellis-domain", "trellis-provenance", "trellis-patterns", "trellis-orchestrator"];
    let all = [
        "trellis-brokers",
        "trellis-confined",
        "trellis-domain",
        "trellis-patterns",
        "trellis-provenance",
        "trellis-orchestrator",
        "trellis-postgres",
        "trellis-queries",
        "trellis-store",
        "trellis-models",
        "trellis-tools",
        "trellis-gateway",
        "trellis-evaluation",
        "trellis-rdf",
        "trellis-readers",
        "trellis-search",
        "trellis-sparql",
        "trellis-tabular",
    ];
    BTreeMap::from([
        ("trellis-confined", BTreeSet::new()),
        ("trellis-domain", BTreeSet::new()),
        ("trellis-provenance", BTreeSet::from(domain)),
        ("trellis-patterns", BTreeSet::from(acts)),
        ("trellis-orchestrator", BTreeSet::from(core)),
        ("trellis-queries", BTreeSet::from(adapter)),
        ("trellis-store", adapter.into_iter().chain(["trellis-queries"]).collect()),
        ("trellis-brokers", BTreeSet::from(adapter)),
        ("trellis-servers", BTreeSet::new()),
        ("trellis-sparql", adapter.into_iter().chain(["trellis-queries"]).collect()),
        ("trellis-models", BTreeSet::from(adapter)),
        ("trellis-tools", BTreeSet::from(adapter)),
        ("trellis-rdf", BTreeSet::from(domain)),
        ("trellis-tabular", BTreeSet::from(["trellis-confined", "trellis-domain"])),
        ("trellis-gateway", adapter.into_iter().chain(["trellis-rdf", "trellis-tabular"]).collect()),
        ("trellis-evaluation", BTreeSet::from(adapter)),
        ("trellis-readers", adapter.into_iter().chain(["trellis-confined"]).collect()),
        ("trellis-search", BTreeSet::from(adapter)),
        ("trellis-postgres", adapter.into_iter().chain(["trellis-queries"]).collect()),
        ("trellis", BTreeSet::from(all)),
        ("bench", all.into_iter().chain(["trellis-servers"]).collect()),
        ("torture", BTreeSet::from(["trellis-domain", "trellis-orchestrator", "trellis-servers", "trellis-store"])),
        ("trellis-simulation", BTreeSet::from(adapter)),
        ("acceptance", BTreeSet::new()),
        ("xtask", BTreeSet::new()),
    ])
}

#[derive(Debug, Deserialize)]
struct Workspace {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `dev` or `build`; none of those that the crate itself is made with.
    kind: Option<String>,
}

fn workspace() -> Vec<Package> {
    metadata::read::<Workspace>(&["--no-deps"]).packages
}

fn normal_dependencies(package: &Package) -> impl Iterator<Item = &str> {
    let normal = package.dependencies.iter().filter(|dependency| dependency.kind.is_none());
    normal.map(|dependency| dependency.name.as_str())
}

#[test]
fn crates_depend_only_on_what_lies_below_them() {
    let (packages, allowed) = (workspace(), allowed());
    let ours: BTreeSet<String> = packages.iter().map(|package| package.name.clone()).collect();
    for package in &packages {
        let name = package.name.as_str();
        let below = allowed.get(name).unwrap_or_else(|| panic!("say in this test what {name} may depend on"));
        for dependency in normal_dependencies(package).filter(|name| ours.contains(*name)) {
            assert!(below.contains(dependency), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn the_pure_crates_have_no_runtime_clock_or_randomness_among_their_dependencies() {
    const BANNED: [&str; 8] = ["tokio", "futures", "async-trait", "rand", "getrandom", "fjall", "reqwest", "tracing"];
    for package in workspace().iter().filter(|package| PURE.contains(&package.name.as_str())) {
        for dependency in normal_dependencies(package) {
            assert!(!BANNED.contains(&dependency), "{} must not depend on {dependency}", package.name);
        }
    }
}

#[test]
fn the_pure_crates_have_no_async_clock_randomness_or_io_in_their_sources() {
    const BANNED: [&str; 11] = [
        "std::fs",
        "std::net",
        "std::time",
        "std::env",
        "std::process",
        "std::thread",
        "async fn",
        "async move",
        "SystemTime",
        "new_v4",
        "println!",
    ];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for name in ["domain", "provenance", "patterns"] {
        for file in sources(&crates.join(name).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap();
                let found = BANNED.iter().find(|banned| code.contains(**banned));
                assert!(found.is_none(), "{}:{}: {found:?} in a pure crate", file.display(), number + 1);
            }
        }
    }
}

/// Source files without tests.
fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let own = files.into_iter().filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.ends_with(".rs") && !name.ends_with("_tests.rs") && name != "fixture.rs"
    });
    own.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}
