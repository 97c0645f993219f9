//! RDF becomes knowledge, statement by statement.

use super::found::FoundFile;
use super::progress::Progress;
use crate::desk::{Desk, RdfFile};
use crate::failure::Failure;
use std::fs::File;
use std::io::Read;
use trellis_domain::Collection;
use trellis_domain::hash::Hashing;
use trellis_orchestrator::knowledge::Loaded;
use trellis_rdf::{Format, Origin};

const PIECE: usize = 256 << 10;

pub(super) async fn load(
    desk: &Desk,
    collection: &Collection,
    file: &FoundFile,
    format: Format,
    progress: &Progress,
) -> Result<Loaded, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", file.name));
    let path = file.path.clone();
    let hashing = tokio::task::spawn_blocking(move || content_hash(&path));
    // Its blank nodes are told from others by what the file says, wherever it lies.
    let scope = hashing.await.map_err(Failure::unexpected)?.map_err(cannot)?;
    let origin = Origin { name: file.name.clone(), scope, base: Some(file.base.clone()) };
    let reader = progress.reading(File::open(&file.path).map_err(cannot)?);
    let (shown, name) = (progress.clone(), file.name.clone());
    let rdf = RdfFile { reader: Box::new(reader), format, origin, source: file.source.clone() };
    desk.load_rdf(collection, rdf, move |loaded| shown.at(&name, loaded)).await
}

fn content_hash(path: &std::path::Path) -> std::io::Result<String> {
    let (mut file, mut hash, mut piece) = (File::open(path)?, Hashing::default(), vec![0; PIECE]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            size => hash.update(&piece[..size]),
        }
    }
    Ok(format!("sha256:{}", hash.finish()))
}
