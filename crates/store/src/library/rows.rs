//! The rows of the library: documents, uploads, received pieces, processings; and the content, piece by piece.

use crate::request::{LibraryTable, LibraryWrite};
use crate::tables::{Reader, read_failed};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use trellis_domain::{Hash, Timestamp, Workspace};
use trellis_orchestrator::ports::{DocumentMetadata, JournalError, StoredDocument, Upload};

/// Content is stored in pieces of at most this many bytes, so that no write takes long.
pub(super) const STORED_PIECE: u64 = 1 << 20;

/// The prefixes inside the library's table.
mod prefix {
    pub(super) const CHILD: &str = "c";
    pub(super) const DOCUMENT: &str = "d";
    pub(super) const RECEIVED: &str = "r";
    pub(super) const PROCESSING: &str = "s";
    pub(super) const UPLOAD: &str = "u";
}

/// A document, and where its content lies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DocumentRow {
    pub(super) document: StoredDocument,
    /// The upload that the content came by.
    pub(super) upload: String,
    pub(super) piece: u64,
}

/// The pieces of an upload that are there, by their hashes.
pub(super) type Received = BTreeMap<u32, Hash>;

/// An upload without its pieces: each of them has a row of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct UploadRow {
    document: DocumentMetadata,
    size: u64,
    piece: u64,
    began: Timestamp,
}

fn joined(prefix: &str, parts: &[&str]) -> Vec<u8> {
    // The last part is not closed: it may be the beginning of several keys.
    format!("{prefix}{}", parts.join("\0")).into_bytes()
}

pub(super) fn documents(workspace: &Workspace) -> Vec<u8> {
    joined(prefix::DOCUMENT, &[workspace.as_str(), ""])
}

pub(super) fn document(workspace: &Workspace, id: &str) -> Vec<u8> {
    joined(prefix::DOCUMENT, &[workspace.as_str(), id])
}

pub(super) fn is_document(key: &[u8]) -> bool {
    key.starts_with(prefix::DOCUMENT.as_bytes())
}

/// The workspace in the key of a row.
pub(super) fn workspace_of(key: &[u8]) -> Result<Workspace, JournalError> {
    let name = key.get(1..).and_then(|rest| rest.split(|byte| *byte == 0).next()).unwrap_or_default();
    Workspace::new(&String::from_utf8_lossy(name)).map_err(damaged)
}

pub(super) fn children(workspace: &Workspace, parent: &str) -> Vec<u8> {
    joined(prefix::CHILD, &[workspace.as_str(), parent, ""])
}

pub(super) fn child(workspace: &Workspace, parent: &str, id: &str) -> Vec<u8> {
    joined(prefix::CHILD, &[workspace.as_str(), parent, id])
}

pub(super) fn uploads(workspace: &Workspace) -> Vec<u8> {
    joined(prefix::UPLOAD, &[workspace.as_str(), ""])
}

pub(super) fn upload(workspace: &Workspace, id: &str) -> Vec<u8> {
    joined(prefix::UPLOAD, &[workspace.as_str(), id])
}

/// The pieces of an upload that were received.
pub(super) fn all_received(workspace: &Workspace, upload: &str) -> Vec<u8> {
    joined(prefix::RECEIVED, &[workspace.as_str(), upload, ""])
}

pub(super) fn received(workspace: &Workspace, upload: &str, index: u32) -> Vec<u8> {
    let mut key = all_received(workspace, upload);
    key.extend_from_slice(&index.to_be_bytes());
    key
}

pub(super) fn processings(workspace: &Workspace) -> Vec<u8> {
    joined(prefix::PROCESSING, &[workspace.as_str(), ""])
}

pub(super) fn processing(workspace: &Workspace, id: &str) -> Vec<u8> {
    joined(prefix::PROCESSING, &[workspace.as_str(), id])
}

fn all_content(workspace: &Workspace, upload: &str) -> Vec<u8> {
    joined("", &[workspace.as_str(), upload, ""])
}

pub(super) fn content(workspace: &Workspace, upload: &str, offset: u64) -> Vec<u8> {
    let mut key = all_content(workspace, upload);
    key.extend_from_slice(&offset.to_be_bytes());
    key
}

pub(super) fn put(key: Vec<u8>, value: &impl Serialize) -> LibraryWrite {
    let value = serde_json::to_vec(value).expect("rows are always JSON");
    LibraryWrite { table: LibraryTable::Library, key, value: Some(value) }
}

pub(super) fn put_upload(workspace: &Workspace, new: &Upload) -> LibraryWrite {
    let (document, size, piece, began) = (new.document.clone(), new.size, new.piece, new.began);
    put(upload(workspace, &new.id), &UploadRow { document, size, piece, began })
}

pub(super) fn drop_row(key: Vec<u8>) -> LibraryWrite {
    LibraryWrite { table: LibraryTable::Library, key, value: None }
}

fn damaged(what: impl std::fmt::Display) -> JournalError {
    JournalError::Damaged(format!("the library cannot be read: {what}"))
}

pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JournalError> {
    serde_json::from_slice(bytes).map_err(damaged)
}

/// What stands under a key.
pub(super) fn get<T: DeserializeOwned>(reader: &Reader<'_>, key: &[u8]) -> Result<Option<T>, JournalError> {
    reader.library(key)?.map(|bytes| parse(&bytes)).transpose()
}

/// What stands under all keys that begin so.
pub(super) fn list<T: DeserializeOwned>(reader: &Reader<'_>, prefix: &[u8]) -> Result<Vec<T>, JournalError> {
    reader.library_prefix(prefix).map(|row| parse(&row.value().map_err(read_failed)?)).collect()
}

/// The ids of a document's children.
pub(super) fn child_ids(reader: &Reader<'_>, workspace: &Workspace, parent: &str) -> Result<Vec<String>, JournalError> {
    let prefix = children(workspace, parent);
    let keys = reader.library_prefix(&prefix).map(|row| row.key().map_err(read_failed));
    keys.map(|key| Ok(String::from_utf8_lossy(&key?[prefix.len()..]).into_owned())).collect()
}

/// An upload with what has been received of it.
pub(super) fn find_upload(
    reader: &Reader<'_>,
    workspace: &Workspace,
    id: &str,
) -> Result<Option<(Upload, Received)>, JournalError> {
    let Some(row) = get::<UploadRow>(reader, &upload(workspace, id))? else { return Ok(None) };
    let UploadRow { document, size, piece, began } = row;
    let prefix = all_received(workspace, id);
    let mut hashes = BTreeMap::new();
    for row in reader.library_prefix(&prefix) {
        let (key, value) = row.into_inner().map_err(read_failed)?;
        let index = key[prefix.len()..].try_into().map_err(damaged)?;
        let hash = (*value).try_into().map_err(damaged)?;
        hashes.insert(u32::from_be_bytes(index), Hash::from_bytes(hash));
    }
    let received = hashes.keys().copied().collect();
    Ok(Some((Upload { id: id.to_owned(), document, size, piece, received, began }, hashes)))
}

/// All uploads of all workspaces, or of those whose keys begin so.
pub(super) fn upload_names(reader: &Reader<'_>, prefix: &[u8]) -> Result<Vec<(Workspace, String)>, JournalError> {
    let name = |key: &[u8]| {
        let (workspace, id) = std::str::from_utf8(key.get(1..)?).ok()?.split_once('\0')?;
        Some((Workspace::new(workspace).ok()?, id.to_owned()))
    };
    let keys = reader.library_prefix(prefix).map(|row| row.key().map_err(read_failed));
    keys.map(|key| name(&key?).ok_or_else(|| damaged("the key of an upload"))).collect()
}

pub(super) const ALL_UPLOADS: &[u8] = prefix::UPLOAD.as_bytes();

/// Removes an upload's rows, and its content if no document has it now.
pub(super) fn drop_upload(
    reader: &Reader<'_>,
    workspace: &Workspace,
    id: &str,
    with_content: bool,
) -> Result<Vec<LibraryWrite>, JournalError> {
    let mut writes = vec![drop_row(upload(workspace, id))];
    for row in reader.library_prefix(&all_received(workspace, id)) {
        writes.push(drop_row(row.key().map_err(read_failed)?.to_vec()));
    }
    if with_content {
        writes.extend(drop_content(reader, workspace, id)?);
    }
    Ok(writes)
}

pub(super) fn drop_content(
    reader: &Reader<'_>,
    workspace: &Workspace,
    upload: &str,
) -> Result<Vec<LibraryWrite>, JournalError> {
    let keys = reader.content_prefix(&all_content(workspace, upload)).map(|row| row.key().map_err(read_failed));
    keys.map(|key| Ok(LibraryWrite { table: LibraryTable::Content, key: key?.to_vec(), value: None })).collect()
}

/// Hands over a range of the content of an upload, stored piece by stored piece.
pub(super) fn read_content(
    reader: &Reader<'_>,
    workspace: &Workspace,
    upload: &str,
    piece: u64,
    range: Range<u64>,
    mut take: impl FnMut(&[u8]),
) -> Result<(), JournalError> {
    let mut at = range.start;
    while at < range.end {
        let inside = at % piece;
        let start = at - inside % STORED_PIECE;
        let missing = || damaged(format!("content at byte {start} of upload {upload} is missing"));
        let bytes = reader.content(&content(workspace, upload, start))?.ok_or_else(missing)?;
        let place = |to: u64| usize::try_from(to - start).unwrap_or(usize::MAX).min(bytes.len());
        let part = &bytes[place(at)..place(range.end)];
        if part.is_empty() {
            return Err(missing());
        }
        take(part);
        at += part.len() as u64;
    }
    Ok(())
}
