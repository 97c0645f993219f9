//! Lists the built files of the page, which are committed: they become part of the program, and no Node is needed here.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the folder"));
    let built = manifest.join("../../ui/dist");
    println!("cargo::rerun-if-changed={}", built.display());
    let mut files = Vec::new();
    collect(&built, &mut files);
    assert!(
        files.iter().any(|file| file.ends_with("index.html")),
        "{} has no index.html; `npm ci && npm run build` in the folder `ui` makes it",
        built.display()
    );
    files.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the folder"));
    let mut list = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        let path = file.strip_prefix(&built).expect("it was found in there").to_string_lossy().replace('\\', "/");
        // A copy: the page may be built anew while this program is compiled.
        let copy = format!("page_{number}");
        fs::copy(file, out.join(&copy)).expect("cargo's folder can be written to");
        writeln!(list, "    (\"/{path}\", include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{copy}\"))),")
            .expect("a text can be written to");
    }
    list.push(']');
    fs::write(out.join("page_files.rs"), list).expect("cargo's folder can be written to");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
