//! Whether the files of an index are as they were written.

use crate::collection::has_segments;
use crate::folders::{is_removed, read_names};
use crate::live_rows::rows;
use crate::schema::Fields;
use crate::vectors::Space;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use tantivy::index::SegmentComponent;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Index, SegmentReader, TERMINATED};
use trellis_orchestrator::documents::MOST_DIMENSIONS;
use trellis_orchestrator::ports::IndexedDocument;

/// What every segment has.
const PARTS: [SegmentComponent; 6] = [
    SegmentComponent::Postings,
    SegmentComponent::Positions,
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
    SegmentComponent::Terms,
    SegmentComponent::Store,
];

/// What was looked at, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedSearch {
    pub collections: usize,
    pub faults: Vec<String>,
}

/// Reads all files of all collections below a folder and holds them against their sums.
pub fn check(folder: &Path) -> CheckedSearch {
    let mut checked = CheckedSearch::default();
    match collections(folder) {
        Ok(collections) => {
            for collection in collections {
                checked.collections += 1;
                checked.faults.extend(faults(&collection));
            }
        }
        Err(error) => checked.faults.push(format!("{} cannot be read: {error}", folder.display())),
    }
    checked
}

fn collections(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut collections = Vec::new();
    for workspace in folders(folder)? {
        collections.extend(folders(&workspace)?.into_iter().filter(|path| !is_removed(path)));
    }
    Ok(collections)
}

/// The folders in a folder; none if there is no such folder.
fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn faults(collection: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    if let Err(why) = read_names(collection) {
        faults.push(why);
    }
    // One that was only begun has nothing yet.
    if !collection.join("meta.json").exists() && !has_segments(collection) {
        return faults;
    }
    match damaged(collection) {
        Ok(files) if files.is_empty() => match vectors(collection) {
            Ok(wrong) => faults.extend(wrong),
            Err(error) => faults.push(format!("the vectors in {} cannot be looked at: {error}", collection.display())),
        },
        Ok(files) => faults.extend(files.iter().map(|file| {
            let path = collection.join(file);
            let what = if path.exists() { "is not what was written" } else { "is missing" };
            format!("{} {what}", path.display())
        })),
        Err(error) => faults.push(format!("{} cannot be opened: {error}", collection.display())),
    }
    faults
}

fn damaged(collection: &Path) -> tantivy::Result<BTreeSet<PathBuf>> {
    let index = Index::open_in_dir(collection)?;
    let mut damaged = BTreeSet::new();
    for segment in index.searchable_segment_metas()? {
        let deletions = segment.has_deletes().then_some(SegmentComponent::Delete);
        let files = PARTS.into_iter().chain(deletions).map(|part| segment.relative_path(part));
        damaged.extend(files.filter(|file| !collection.join(file).exists()));
    }
    if damaged.is_empty() {
        damaged.extend(index.validate_checksum()?);
    }
    Ok(damaged)
}

/// What is wrong with the files of vectors: each has to reach to the last row that the index names. What the vectors are
/// nobody knows but they themselves.
fn vectors(collection: &Path) -> tantivy::Result<Vec<String>> {
    let index = Index::open_in_dir(collection)?;
    let (_, fields) = Fields::schema();
    let (mut last, mut models) = (BTreeMap::new(), BTreeSet::new());
    for segment in index.searchable_segments()? {
        let reader = SegmentReader::open(&segment)?;
        for (row, space, _) in rows(&reader)? {
            let last = last.entry(space).or_insert(row);
            *last = row.max(*last);
        }
        let heads = reader.inverted_index(fields.head)?;
        let store = reader.get_store_reader(1)?;
        let mut ids = heads.terms().stream()?;
        while ids.advance() {
            let mut entries = heads.read_postings_from_terminfo(ids.value(), IndexRecordOption::Basic)?;
            while entries.doc() != TERMINATED {
                if !reader.is_deleted(entries.doc()) {
                    let head = fields.stored::<IndexedDocument>(&store.get(entries.doc())?);
                    models.extend(head.ok().and_then(|head| head.model));
                }
                entries.advance();
            }
        }
    }
    let mut faults = Vec::new();
    for (id, row) in last {
        let lengths = models.iter().flat_map(|model| (1..=MOST_DIMENSIONS).map(move |length| (model, length)));
        let mut spaces = lengths.map(|(model, length)| Space::new(collection, model, length));
        let unknown = || format!("passages in {} have vectors of a model that is not named", collection.display());
        faults.extend(match spaces.find(|space| space.id == id) {
            Some(space) => space.fault(row)?,
            None => Some(unknown()),
        });
    }
    Ok(faults)
}
