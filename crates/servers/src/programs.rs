//! Where the programs of servers are: those that `cargo xtask servers` has fetched, or those of the machine.

use std::path::{Path, PathBuf};

/// The folders that may hold `usr/…`.
fn roots() -> [PathBuf; 2] {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/root");
    [fetched, PathBuf::from("/")]
}

/// A file or folder below one of the roots. A part of the path that ends with `*` is the newest entry that begins so.
pub(crate) fn find(server: &str, path: &str) -> PathBuf {
    let found = roots().iter().find_map(|root| resolve(root, path));
    found.unwrap_or_else(|| panic!("{server} is not here: `cargo xtask servers` gets it"))
}

/// The folder with libraries that came with a program, for those that the machine has not.
pub(crate) fn libraries() -> Vec<PathBuf> {
    let roots = roots();
    let folders = ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"].map(|folder| roots[0].join(folder));
    folders.into_iter().filter(|folder| folder.is_dir()).collect()
}

fn resolve(root: &Path, path: &str) -> Option<PathBuf> {
    let mut found = root.to_owned();
    for part in path.split('/') {
        found = match part.strip_suffix('*') {
            None => found.join(part),
            Some(begin) => newest(&found, begin)?,
        };
    }
    found.canonicalize().ok()
}

fn newest(folder: &Path, begin: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let named = entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin)));
    named.max_by_key(|path| numbers(&path.to_string_lossy()))
}

/// The numbers in a name, so that 10 is newer than 9.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{numbers, resolve};

    #[test]
    fn the_newest_of_several_versions_is_found() {
        let folder = tempfile::TempDir::new().unwrap();
        for version in ["9.6", "15", "2"] {
            std::fs::create_dir_all(folder.path().join("lib").join(version).join("bin")).unwrap();
        }
        let found = resolve(folder.path(), "lib/*/bin").unwrap();
        assert!(found.ends_with("lib/15/bin"), "{}", found.display());
        assert_eq!(resolve(folder.path(), "lib/*/sbin"), None);
        assert!(numbers("erts-13.1.5") > numbers("erts-9.3.3"));
    }
}
