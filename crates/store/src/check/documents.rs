//! Documents: their content against their hashes, and all rows against the tally.

use super::Checked;
use crate::library::content_hash;
use crate::request::LibraryTable;
use crate::tables::{Reader, read_failed};
use crate::tally::Tally;

pub(super) fn check(reader: &Reader<'_>, checked: &mut Checked) {
    let mut tally = Tally::default();
    for table in [LibraryTable::Library, LibraryTable::Content] {
        for row in reader.all_of(table) {
            let row = row.into_inner().map_err(read_failed);
            let Some((key, value)) = checked.read("the documents", row) else { continue };
            tally.add(table, &key, &value);
            if let Some((id, expected)) = crate::library::document_of(table, &key, &value) {
                checked.documents += 1;
                let content = content_hash(reader, &key, &value);
                let place = format!("document {id}");
                let content = checked.read(&place, content);
                checked.unless(content.is_none_or(|content| content == expected), || {
                    format!("document {id}: its content is not what its hash says")
                });
            }
        }
    }
    let kept = checked.read("the tally of documents", reader.tally());
    checked.unless(kept.is_none_or(|kept| kept == tally), || {
        "the documents are not those that were stored: a row is missing, changed or added".to_owned()
    });
}
