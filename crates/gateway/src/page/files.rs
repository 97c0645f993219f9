//! The files of the page, as the build script found them.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::LazyLock;
use trellis_domain::Hash;

/// The page itself, which loads everything else.
pub(super) const INDEX: &str = "/index.html";

const BUILT: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// A file as it is sent.
pub(super) struct File {
    pub(super) kind: &'static str,
    pub(super) bytes: &'static [u8],
    /// The same packed, if that makes it smaller.
    pub(super) packed: Option<Vec<u8>>,
    /// Changes with the content.
    pub(super) tag: String,
}

/// Made when the first browser comes by.
static FILES: LazyLock<BTreeMap<&'static str, File>> = LazyLock::new(|| {
    let file = |bytes: &'static [u8], kind| File {
        kind,
        bytes,
        packed: packed(bytes).filter(|packed| packed.len() < bytes.len()),
        tag: format!("\"{}\"", Hash::of(bytes)),
    };
    BUILT.iter().map(|(path, bytes)| (*path, file(bytes, kind(path)))).collect()
});

/// The file at a path.
pub(super) fn named(path: &str) -> Option<&'static File> {
    FILES.get(if path == "/" { INDEX } else { path })
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

fn packed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes).and_then(|()| packer.finish()).ok()
}
