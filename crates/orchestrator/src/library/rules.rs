//! The rules of the library that do not depend on where it keeps things.

use crate::ports::{DocumentMetadata, LibraryError, Listing, MetadataChanges, Processing, StoredDocument, Upload};
use std::ops::Range;
use trellis_domain::Timestamp;

/// Most bytes of a document.
pub const LARGEST_DOCUMENT: u64 = 1 << 30;
/// Most bytes of a piece as it is sent.
pub const LARGEST_PIECE: u64 = 16 << 20;
/// Most pieces of an upload: smaller ones are wished for than this allows, larger ones are used.
pub const MOST_PIECES: u64 = 4096;
/// Open uploads of one workspace.
pub const MOST_UPLOADS: usize = 32;
/// An upload that was begun this long ago is over.
pub const UPLOAD_AGE_MS: u64 = 24 * 60 * 60 * 1000;
/// Most bytes of what is said about a document.
const LARGEST_METADATA: u64 = 256 << 10;

/// Ids become parts of keys.
pub fn check_id(what: &'static str, id: &str) -> Result<(), LibraryError> {
    if id.is_empty() || id.len() > 1000 || id.chars().any(char::is_control) {
        let id = id.chars().take(100).collect();
        return Err(LibraryError::BadId { what, id });
    }
    Ok(())
}

impl DocumentMetadata {
    /// Whether it can be kept as it is.
    pub fn check(&self) -> Result<(), LibraryError> {
        check_id("document id", &self.id)?;
        if let Some(parent) = &self.parent {
            check_id("parent id", parent)?;
        }
        if self.kind.is_empty() {
            return Err(LibraryError::NoKind);
        }
        let size = serde_json::to_vec(self).map_or(0, |bytes| bytes.len() as u64);
        at_most("what is said about the document", size, LARGEST_METADATA)
    }
}

fn at_most(what: &'static str, size: u64, most: u64) -> Result<(), LibraryError> {
    if size > most { Err(LibraryError::TooLarge { what, size, most }) } else { Ok(()) }
}

impl Processing {
    pub fn check(&self) -> Result<(), LibraryError> {
        check_id("processing id", &self.id)?;
        let size = serde_json::to_vec(self).map_or(0, |bytes| bytes.len() as u64);
        at_most("the processing record", size, LARGEST_METADATA)
    }
}

impl MetadataChanges {
    /// The document as it is afterwards.
    pub fn apply(self, mut document: StoredDocument) -> Result<StoredDocument, LibraryError> {
        let Self { time, title, comments, metadata, tags } = self;
        let about = &mut document.metadata;
        about.time = time.unwrap_or(about.time);
        about.title = title.unwrap_or_else(|| std::mem::take(&mut about.title));
        about.comments = comments.unwrap_or_else(|| std::mem::take(&mut about.comments));
        about.metadata = metadata.unwrap_or_else(|| std::mem::take(&mut about.metadata));
        about.tags = tags.unwrap_or_else(|| std::mem::take(&mut about.tags));
        about.check()?;
        Ok(document)
    }
}

impl Listing {
    pub fn contains(&self, document: &DocumentMetadata) -> bool {
        match self {
            Self::TopLevel => document.parent.is_none() && document.document_type != "answer",
            Self::All => true,
            Self::ChildrenOf(parent) => document.parent.as_ref() == Some(parent),
        }
    }
}

impl Upload {
    /// An upload of nothing so far. The wish for a size of pieces is bent to what is allowed.
    pub fn new(
        id: String,
        document: DocumentMetadata,
        size: u64,
        piece: u64,
        began: Timestamp,
    ) -> Result<Self, LibraryError> {
        document.check()?;
        at_most("the document", size, LARGEST_DOCUMENT)?;
        let piece = piece.clamp(size.div_ceil(MOST_PIECES).max(1), LARGEST_PIECE);
        Ok(Self { id, document, size, piece, received: std::collections::BTreeSet::new(), began })
    }

    pub fn pieces(&self) -> u32 {
        u32::try_from(self.size.div_ceil(self.piece)).expect("an upload has few pieces")
    }

    /// Where a piece lies in the content, if there is such a piece.
    pub fn place(&self, index: u64) -> Option<(u32, Range<u64>)> {
        let number = u32::try_from(index).ok().filter(|number| *number < self.pieces())?;
        let start = index * self.piece;
        Some((number, start..(start + self.piece).min(self.size)))
    }

    /// Where a piece belongs, if it fits there.
    pub fn fit(&self, index: u64, found: u64) -> Result<(u32, Range<u64>), LibraryError> {
        let last = u64::from(self.pieces().saturating_sub(1));
        let (number, place) = self.place(index).ok_or(LibraryError::NoSuchPiece { index, last })?;
        let expected = place.end - place.start;
        if found != expected {
            return Err(LibraryError::PieceLength { index: number, found, expected });
        }
        Ok((number, place))
    }

    pub fn missing(&self) -> Vec<u32> {
        (0..self.pieces()).filter(|index| !self.received.contains(index)).collect()
    }

    pub fn received_bytes(&self) -> u64 {
        let places = self.received.iter().filter_map(|index| self.place(u64::from(*index)));
        places.map(|(_, place)| place.end - place.start).sum()
    }

    pub fn is_over(&self, now: Timestamp) -> bool {
        now.ms_since(self.began) >= UPLOAD_AGE_MS
    }
}

/// The part of some bytes that a range names, cut off at their end.
pub(crate) fn cut<'a>(bytes: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let (start, end) = (place(range.start), place(range.end));
    &bytes[start..end.max(start)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> DocumentMetadata {
        DocumentMetadata {
            id: "d".into(),
            kind: "text/plain".into(),
            document_type: "source".into(),
            parent: None,
            time: Timestamp::from_micros(0),
            title: String::new(),
            comments: String::new(),
            metadata: Vec::new(),
            tags: Vec::new(),
        }
    }

    fn upload(size: u64, piece: u64) -> Upload {
        Upload::new("u".into(), document(), size, piece, Timestamp::from_micros(0)).unwrap()
    }

    #[test]
    fn pieces_are_as_large_as_wished_within_bounds() {
        assert_eq!((upload(10, 3).pieces(), upload(9, 3).pieces(), upload(0, 3).pieces()), (4, 3, 0));
        assert_eq!(upload(10, 0).piece, 1);
        assert_eq!(upload(LARGEST_DOCUMENT, 1).pieces(), 4096, "not more pieces than can be kept track of");
        assert_eq!(upload(LARGEST_DOCUMENT, u64::MAX).piece, LARGEST_PIECE);
        assert_eq!(upload(10, 3).place(3), Some((3, 9..10)));
    }

    #[test]
    fn a_range_is_cut_off_at_the_end() {
        for (range, found) in [(0..2, "ab"), (1..9, "bc"), (3..9, ""), (7..9, ""), (0..u64::MAX, "abc")] {
            assert_eq!(cut(b"abc", &range), found.as_bytes());
        }
    }
}
