//! Vectors of values, all of which are compared.

use super::catalogue::{self, Entry};
use super::database::{Database, commit, damaged};
use super::finding::Wanted;
use crate::tables::read_failed;
use fjall::Readable;
use std::collections::HashSet;
use trellis_domain::Hash;
use trellis_orchestrator::documents::normalised;
use trellis_orchestrator::ports::{
    JournalError, NearValue, NearValues, TablePlace, TablesError, ValueQuery, ValueVector, Vectorless,
};
use trellis_orchestrator::tables::{MOST_FOUND, MOST_VECTORS, check_vectors};

/// Where the vectors of a model lie, and of one field.
fn prefix(entry: &Entry, model: &str) -> Vec<u8> {
    [&entry.id.to_be_bytes()[..], &Hash::of(model).as_bytes()[..8]].concat()
}

fn key(entry: &Entry, model: &str, field: &str, text: &str) -> Vec<u8> {
    let value = Hash::of_parts([field.as_bytes(), text.as_bytes()]);
    [&prefix(entry, model)[..], &value.as_bytes()[..16]].concat()
}

/// Field and text with their lengths in front, and numbers.
fn to_bytes(value: &ValueVector) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + value.field.len() + value.text.len() + 4 * value.vector.len());
    for text in [&value.field, &value.text] {
        bytes.extend(u32::try_from(text.len()).expect("checked before").to_be_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes.extend(normalised(&value.vector).iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

fn from_bytes(bytes: &[u8]) -> Option<(&str, &str, &[u8])> {
    fn text(bytes: &[u8]) -> Option<(&str, &[u8])> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        Some((str::from_utf8(text).ok()?, rest))
    }
    let (field, rest) = text(bytes)?;
    let (value, numbers) = text(rest)?;
    Some((field, value, numbers))
}

impl Database {
    pub(super) fn without_vectors(
        &self,
        place: &TablePlace,
        model: &str,
        values: Vec<(String, String)>,
    ) -> Result<Vectorless, TablesError> {
        let snapshot = self.read();
        let Some(entry) = catalogue::entry(self, &snapshot, place)? else {
            return Ok(Vectorless::within(values, MOST_VECTORS));
        };
        let mut unknown = Vec::new();
        for (field, text) in values {
            let is_known = snapshot.contains_key(&self.vectors, key(&entry, model, &field, &text));
            if !is_known.map_err(read_failed)? {
                unknown.push((field, text));
            }
        }
        let known = entry.vectors.get(model).copied().unwrap_or_default();
        Ok(Vectorless::within(unknown, MOST_VECTORS.saturating_sub(known)))
    }

    pub(super) fn put_vectors(
        &self,
        place: &TablePlace,
        model: &str,
        vectors: &[ValueVector],
    ) -> Result<u64, TablesError> {
        check_vectors(vectors)?;
        self.wait_for_room();
        let _alone = self.alone();
        let snapshot = self.read();
        let Some(mut entry) = catalogue::entry(self, &snapshot, place)? else { return Ok(0) };
        let mut batch = self.batch();
        let (mut new, mut no_room) = (HashSet::new(), 0);
        let known = entry.vectors.get(model).copied().unwrap_or_default();
        for value in vectors {
            let key = key(&entry, model, &value.field, &value.text);
            let is_new = !snapshot.contains_key(&self.vectors, &key).map_err(read_failed)? && !new.contains(&key);
            if is_new && known + new.len() as u64 >= MOST_VECTORS {
                no_room += 1;
                continue;
            }
            if is_new {
                new.insert(key.clone());
            }
            batch.insert(&self.vectors, key, to_bytes(value));
        }
        entry.vectors.insert(model.to_owned(), known + new.len() as u64);
        batch.insert(&self.catalogue, catalogue::key(place), entry.to_bytes());
        commit(batch)?;
        Ok(no_room)
    }

    pub(super) fn near(
        &self,
        place: &TablePlace,
        query: &ValueQuery,
        wanted: &Wanted,
    ) -> Result<NearValues, TablesError> {
        let snapshot = self.read();
        let Some(entry) = catalogue::entry(self, &snapshot, place)? else { return Ok(NearValues::default()) };
        let aim = normalised(&query.vector);
        let limit = query.limit.clamp(1, MOST_FOUND);
        let (mut best, mut compared): (Vec<NearValue>, _) = (Vec::new(), 0);
        for row in snapshot.prefix(&self.vectors, prefix(&entry, &query.model)) {
            wanted.check()?;
            let bytes = row.value().map_err(read_failed)?;
            let (field, text, numbers) = from_bytes(&bytes).ok_or_else(|| damaged("a vector"))?;
            let is_asked = query.field.as_ref().is_none_or(|wanted| wanted == field);
            if !is_asked || numbers.len() != 4 * aim.len() {
                continue;
            }
            compared += 1;
            let numbers = numbers.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number));
            let score = numbers.zip(&aim).map(|(one, other)| f64::from(one * other)).sum();
            best.push(NearValue { field: field.to_owned(), text: text.to_owned(), score });
            if best.len() >= 2 * limit {
                keep(&mut best, limit);
            }
        }
        keep(&mut best, limit);
        Ok(NearValues { values: best, compared })
    }

    /// How many vectors lie there, by model, for those who count.
    pub(super) fn count_vectors(&self, entry: &Entry, model: &str) -> Result<u64, JournalError> {
        let rows = self.read().prefix(&self.vectors, prefix(entry, model));
        rows.map(|row| row.key().map_err(read_failed)).try_fold(0, |sum, key| key.map(|_| sum + 1))
    }
}

fn keep(best: &mut Vec<NearValue>, limit: usize) {
    best.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| (&one.field, &one.text).cmp(&(&other.field, &other.text)))
    });
    best.truncate(limit);
}
