//! What may enter the build: licences, sources, and a few crates that may not. None of it needs the network.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod metadata;

use serde::Deserialize;
use spdx::{Expression, ParseMode};
use std::collections::{HashMap, HashSet};

const LICENCES: [&str; 11] = [
    "Apache-2.0",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Unicode-3.0",
    "Zlib",
    "0BSD",
    "Unlicense",
    "BSL-1.0",
    "ISC", // ring and rustls
];

/// Other licences, each for one crate.
const EXCEPTIONS: [(&str, &str); 3] = [
    // Root certificates as data, for platforms without a store of their own.
    ("webpki-root-certs", "CDLA-Permissive-2.0"),
    ("webpki-roots", "CDLA-Permissive-2.0"),
    // Public domain; only while building, below the reader of Parquet.
    ("tiny-keccak", "CC0-1.0"),
];

struct Ban {
    name: &'static str,
    why: &'static str,
    /// Who may need it all the same.
    except_below: &'static [&'static str],
}

const BANS: [Ban; 3] = [
    Ban { name: "aws-lc-rs", why: "one TLS provider is enough: ring", except_below: &[] },
    Ban { name: "openssl-sys", why: "no system libraries beyond a C compiler", except_below: &[] },
    Ban {
        name: "async-trait",
        why: "ports return boxed futures by hand",
        except_below: &[
            "async-rs",
            "deadpool-postgres",
            "hickory-net",
            "lapin",
            "pulsar",
            "rmcp",
            "tantivy-common",
            "tokio-postgres",
        ],
    },
];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: HashSet<String>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

fn everything() -> Metadata {
    metadata::read(&["--all-features"])
}

fn foreign(metadata: &Metadata) -> impl Iterator<Item = &Package> {
    metadata.packages.iter().filter(|package| !metadata.workspace_members.contains(&package.id))
}

/// Whether a crate of this name may be used under this licence, as its author writes it: older ones put `/` for `OR`.
fn is_allowed(name: &str, licence: &str) -> Result<bool, String> {
    let expression = Expression::parse_mode(licence, ParseMode::LAX).map_err(|error| error.to_string())?;
    Ok(expression.evaluate(|wanted| {
        let id = wanted.license.id().map_or("", |id| id.name);
        wanted.addition.is_none() && (LICENCES.contains(&id) || EXCEPTIONS.contains(&(name, id)))
    }))
}

#[test]
fn every_licence_is_one_that_we_take() {
    let metadata = everything();
    for package in foreign(&metadata) {
        let licence = package.license.as_deref().unwrap_or_else(|| panic!("{} names no licence", package.name));
        assert_eq!(is_allowed(&package.name, licence), Ok(true), "{} is under {licence}", package.name);
    }
}

#[test]
fn licences_are_read_as_they_are_meant() {
    for (licence, allowed) in [
        ("MIT OR GPL-3.0-only", true),
        ("MIT/GPL-3.0", true),
        ("MIT AND GPL-3.0-only", false),
        ("GPL-2.0-only", false),
        ("Apache-2.0 WITH LLVM-exception", false),
        ("CC0-1.0", false),
    ] {
        assert_eq!(is_allowed("any", licence), Ok(allowed), "{licence}");
    }
    assert_eq!(is_allowed("tiny-keccak", "CC0-1.0"), Ok(true));
    assert!(is_allowed("any", "whatever I like").is_err());
}

#[test]
fn every_crate_comes_from_the_registry() {
    for package in foreign(&everything()) {
        let source = package.source.as_deref().unwrap_or("here");
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        assert!(source.starts_with(registry), "{} comes from {source}", package.name);
    }
}

#[test]
fn nothing_needs_a_crate_that_is_banned() {
    let metadata = everything();
    let names: HashMap<&str, &str> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package.name.as_str())).collect();
    for node in &metadata.resolve.nodes {
        for needed in &node.dependencies {
            let (user, needed) = (names[node.id.as_str()], names[needed.as_str()]);
            if let Some(ban) = BANS.iter().find(|ban| ban.name == needed) {
                assert!(ban.except_below.contains(&user), "{user} needs {needed}: {}", ban.why);
            }
        }
    }
}
