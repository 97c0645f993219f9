//! The two trees of a graph and how they are tuned: the quads in all index orders with what is known of all of them,
//! written and read in key order, and the dictionary, read by key.
//!
//! There is no log: what is written lives in memory until there is enough of it for a table, or until somebody wants it
//! on disk. Opening replays nothing. After a crash the last batches are missing, whole ones, and what lies with the
//! quads says so: the cursor of the view, the unfinished sources of knowledge. The dictionary is always written first,
//! so that no quad on disk lacks a term.
//!
//! Tables are merged on a thread of their own, so that following the journal does not wait for it.
//!
//! Clearing the view starts a new generation in a folder of its own. Queries that are under way hold the old one and finish on
//! it; it goes with the last of them, and after a crash with the next open.

use super::ViewError;
use super::order::KEY_BYTES;
use crate::engine_log::sync_folder;
use crate::tables::catching_panics;
use crate::tree_files;
use lsm_tree::compaction::Leveled;
use lsm_tree::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy, PartitioningPolicy, RestartIntervalPolicy};
use lsm_tree::{AbstractTree, AnyTree, Cache, CompressionType, Config, IterGuardImpl, SeqNo, SequenceNumberCounter};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Part of the folder's name. A new number makes an old view empty, so that it is built anew.
const FORMAT: u32 = 2;
/// The name of the folder that loaded knowledge is in. It is never removed; another number needs an upgrade.
const ASSERTED: &str = "1";

const MB: u64 = 1024 * 1024;
const CACHE_BYTES: u64 = 16 * MB;
/// How much is held in memory before it is written as a table.
const QUADS_IN_MEMORY: u64 = 24 * MB;
const TERMS_IN_MEMORY: u64 = 8 * MB;
/// Hashed keys spread over all tables, so a flush rewrites the whole next level. Smaller tables make
/// that level smaller (measured while loading 1 M quads: a third less CPU than with 64 MB).
const TABLE_BYTES: u64 = 16 * MB;
/// A seek decodes half an interval; compression makes up for the bytes (measured: a third faster
/// than with 16, 2 % larger).
const RESTART_INTERVAL: u8 = 4;
/// Index scans read neighbours; a dictionary read wants one entry.
const QUADS_BLOCK_BYTES: u32 = 8 * 1024;

/// So many tables may wait to be merged before whoever writes them waits, too: each is looked into by every read.
const UNMERGED: usize = 8;

/// Where trees are made.
const NEW: &str = "new";
/// The folders of the trees of a generation.
const TREES: [&str; 2] = ["quads", "terms"];

/// What the trees hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holding {
    /// What can be derived again, from one place: whatever is looked for is there.
    Derived,
    /// What was loaded. Quads and terms are looked for to see whether they are new, or which collection has them.
    Asserted,
}

fn name(projection: u32, generation: u64) -> String {
    format!("{FORMAT}-{projection}-{generation}")
}

/// What is in the folder of the view, with the number of each generation of this projection.
fn entries(view: &Path, projection: u32) -> std::io::Result<Vec<(Option<u64>, PathBuf)>> {
    let prefix = format!("{FORMAT}-{projection}-");
    let generation = |name: &str| name.strip_prefix(&prefix)?.parse::<u64>().ok();
    let entries = std::fs::read_dir(view)?;
    entries.map(|entry| entry.map(|entry| (entry.file_name().to_str().and_then(generation), entry.path()))).collect()
}

/// Every file of the newest generation against its checksum: what is wrong with which. None if there is no view.
pub(super) fn damages(view: &Path, projection: u32) -> std::io::Result<Option<Vec<String>>> {
    let entries = match entries(view, projection) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Ok(Some(vec![format!("{} is not a folder", view.display())]));
        }
        entries => entries?,
    };
    let newest = entries.iter().filter(|(generation, _)| generation.is_some()).max();
    let Some((_, folder)) = newest else { return Ok(None) };
    tree_damages(folder).map(Some)
}

/// The same for loaded knowledge.
pub(super) fn asserted_damages(knowledge: &Path) -> std::io::Result<Option<Vec<String>>> {
    let folder = knowledge.join(ASSERTED);
    if folder.exists() { tree_damages(&folder).map(Some) } else { Ok(None) }
}

fn tree_damages(folder: &Path) -> std::io::Result<Vec<String>> {
    let damages = TREES.map(|tree| tree_files::damages(&folder.join(tree)));
    damages.into_iter().collect::<Result<Vec<_>, _>>().map(|damages| damages.concat())
}

fn open_trees(
    folder: &Path,
    numbers: &SequenceNumberCounter,
    visible: &SequenceNumberCounter,
    holding: Holding,
) -> Result<[AnyTree; 2], ViewError> {
    let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
    let [quads, terms] = TREES
        .map(|tree| Config::new(folder.join(tree), numbers.clone(), visible.clone()).use_cache(Arc::clone(&cache)));
    Ok([quads_config(quads, holding).open()?, terms_config(terms, holding).open()?])
}

/// One generation of the view, or all loaded knowledge.
pub(super) struct Trees {
    folder: PathBuf,
    holding: Holding,
    generation: u64,
    both: Arc<Both>,
    /// The number of the next batch.
    numbers: SequenceNumberCounter,
    merging: Mutex<Option<JoinHandle<Result<(), ViewError>>>>,
    replaced: AtomicBool,
}

/// What is read, and merged beside that.
struct Both {
    quads: AnyTree,
    terms: AnyTree,
    /// The number of the first batch that readers do not see yet.
    visible: SequenceNumberCounter,
    users: Mutex<Users>,
}

/// Who uses the trees at this moment.
#[derive(Default)]
struct Users {
    /// At which numbers somebody reads: older versions of a key are dropped only below all of them.
    readers: BTreeMap<SeqNo, usize>,
    /// The number of the batch that is being written. The engine takes numbers for itself when it merges, and makes them
    /// visible: without this, a reader would see half of a batch with a lower number.
    writing: Option<SeqNo>,
}

impl Both {
    /// The first number that a reader who begins now does not see.
    fn seen(&self, users: &Users) -> SeqNo {
        users.writing.unwrap_or(SeqNo::MAX).min(self.visible.get())
    }

    /// Versions below this number nobody reads.
    fn unread(&self) -> SeqNo {
        let users = self.users.lock();
        users.readers.keys().next().copied().unwrap_or_else(|| self.seen(&users)).saturating_sub(1)
    }

    /// Merges tables until there is nothing to merge.
    fn compact(&self) -> Result<(), ViewError> {
        let strategy = Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES));
        for tree in [&self.terms, &self.quads] {
            let shape = || (tree.next_table_id(), tree.level_table_count(0));
            let mut before = None;
            while before != Some(shape()) {
                before = Some(shape());
                tree.compact(Arc::clone(&strategy) as _, self.unread())?;
            }
        }
        Ok(())
    }

    fn unmerged(&self) -> usize {
        [&self.terms, &self.quads].iter().filter_map(|tree| tree.level_table_count(0)).max().unwrap_or(0)
    }
}

impl Trees {
    /// Opens the newest generation of this projection and removes whatever else is there.
    pub(super) fn open(view: &Path, projection: u32) -> Result<Self, ViewError> {
        std::fs::create_dir_all(view)?;
        let entries = entries(view, projection)?;
        let newest = entries.iter().filter_map(|(generation, _)| *generation).max();
        for (_, path) in entries.iter().filter(|(generation, _)| generation.is_none() || *generation != newest) {
            tracing::info!(path = %path.display(), "removing what an older view has left");
            if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
        }
        Self::open_generation(view, projection, newest.unwrap_or(1))
    }

    /// An empty generation after this one, which goes with its last reader.
    pub(super) fn renew(&self, view: &Path, projection: u32) -> Result<Self, ViewError> {
        let next = Self::open_generation(view, projection, self.generation + 1)?;
        self.replaced.store(true, Ordering::Relaxed);
        Ok(next)
    }

    fn open_generation(view: &Path, projection: u32, generation: u64) -> Result<Self, ViewError> {
        Self::open_in(view, &name(projection, generation), generation, Holding::Derived)
    }

    /// Opens loaded knowledge. What is there and cannot be read stays as it is.
    pub(super) fn open_asserted(knowledge: &Path) -> Result<Self, ViewError> {
        std::fs::create_dir_all(knowledge)?;
        for entry in std::fs::read_dir(knowledge)? {
            let name = entry?.file_name();
            if name != ASSERTED && name != NEW {
                let known = format!("{} is nothing that this version knows", knowledge.join(name).display());
                return Err(ViewError::Damaged(known));
            }
        }
        Self::open_in(knowledge, ASSERTED, 1, Holding::Asserted)
    }

    fn open_in(parent: &Path, name: &str, generation: u64, holding: Holding) -> Result<Self, ViewError> {
        let folder = parent.join(name);
        if !folder.exists() {
            // Made beside its place and moved there whole: a tree that is missing has been lost.
            let scratch = parent.join(NEW);
            if scratch.exists() {
                std::fs::remove_dir_all(&scratch)?;
            }
            open_trees(&scratch, &SequenceNumberCounter::default(), &SequenceNumberCounter::default(), holding)?;
            std::fs::rename(&scratch, &folder)?;
            sync_folder(parent)?;
        }
        for tree in TREES {
            tree_files::openable(&folder.join(tree))?;
        }
        let (numbers, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let [quads, terms] = open_trees(&folder, &numbers, &visible, holding)?;
        let next = [&quads, &terms].map(|tree| tree.get_highest_seqno().map_or(0, |number| number + 1));
        let next = next[0].max(next[1]);
        numbers.fetch_max(next);
        visible.fetch_max(next);
        let both = Arc::new(Both { quads, terms, visible, users: Mutex::default() });
        let (merging, replaced) = (Mutex::default(), AtomicBool::new(false));
        Ok(Self { folder, holding, generation, both, numbers, merging, replaced })
    }

    /// Everything as of now, for as long as it is held.
    pub(super) fn snapshot(self: &Arc<Self>) -> Snapshot {
        let mut users = self.both.users.lock();
        let at = self.both.seen(&users);
        *users.readers.entry(at).or_default() += 1;
        drop(users);
        Snapshot { trees: Arc::clone(self), at }
    }

    /// A number that no batch has had yet, and the next one has.
    pub(super) fn next_number(&self) -> SeqNo {
        self.numbers.get()
    }

    /// Begins a batch: readers see all of it once it is shown, or nothing.
    pub(super) fn write(&self) -> Writing<'_> {
        let mut users = self.both.users.lock();
        let number = self.numbers.next();
        users.writing = Some(number);
        Writing { trees: self, number }
    }

    /// Writes tables if there is enough in memory, and has them merged.
    pub(super) fn make_room(&self) -> Result<(), ViewError> {
        let Both { quads, terms, .. } = &*self.both;
        let full = quads.active_memtable().size() > QUADS_IN_MEMORY
            || terms.active_memtable().size() > TERMS_IN_MEMORY
            || quads.sealed_memtable_count() + terms.sealed_memtable_count() > 0;
        if full { self.flush().and_then(|()| self.merge()) } else { Ok(()) }
    }

    /// Writes everything that is in memory.
    pub(super) fn flush(&self) -> Result<(), ViewError> {
        for tree in [&self.both.terms, &self.both.quads] {
            tree.flush_active_memtable(self.both.unread())?;
        }
        Ok(())
    }

    /// Everything is on disk afterwards, and merged as time permits.
    pub(super) fn persist(&self) -> Result<(), ViewError> {
        self.flush().and_then(|()| self.merge())
    }

    /// Drops all tables that have nothing but keys which begin so. What is left of those keys is elsewhere.
    pub(super) fn drop_tables(&self, start: &[u8], end: &[u8]) -> Result<(), ViewError> {
        self.settle()?;
        for tree in [&self.both.quads, &self.both.terms] {
            tree.drop_range(start..end)?;
        }
        Ok(())
    }

    /// Begins to merge, unless that is under way and not far behind.
    fn merge(&self) -> Result<(), ViewError> {
        let mut merging = self.merging.lock();
        if merging.as_ref().is_some_and(|thread| !thread.is_finished()) && self.both.unmerged() < UNMERGED {
            return Ok(());
        }
        merged(merging.take())?;
        let both = Arc::clone(&self.both);
        *merging = Some(std::thread::Builder::new().name("view-merger".to_owned()).spawn(move || merge(&both))?);
        Ok(())
    }

    /// Waits for what is being merged.
    fn settle(&self) -> Result<(), ViewError> {
        merged(self.merging.lock().take())
    }

    /// Writes all tables anew, so that nothing is left of what was removed.
    pub(super) fn purge(&self) -> Result<(), ViewError> {
        self.flush().and_then(|()| self.settle())?;
        for tree in [&self.both.terms, &self.both.quads] {
            tree.major_compact(TABLE_BYTES, self.both.unread())?;
        }
        Ok(())
    }
}

/// The engine may panic over damaged tables.
fn merge(both: &Both) -> Result<(), ViewError> {
    let panicked = || ViewError::Damaged("its tables cannot be merged".to_owned());
    catching_panics(|| both.compact()).ok_or_else(panicked)?
}

/// What came of merging.
fn merged(thread: Option<JoinHandle<Result<(), ViewError>>>) -> Result<(), ViewError> {
    let ended = |_| ViewError::from(std::io::Error::other("the thread that merges tables has ended"));
    thread.map_or(Ok(()), |thread| thread.join().map_err(ended)?)
}

impl Drop for Trees {
    fn drop(&mut self) {
        let settled = self.settle();
        let closed = if self.replaced.load(Ordering::Relaxed) {
            std::fs::remove_dir_all(&self.folder).map_err(ViewError::from)
        } else {
            settled.and_then(|()| self.flush())
        };
        if let Err(error) = closed {
            match self.holding {
                Holding::Derived => {
                    tracing::warn!(%error, "the graph view was not closed well; it catches up when it is opened again");
                }
                Holding::Asserted => {
                    tracing::error!(%error, "knowledge was not closed well; a load that was not finished has to be repeated");
                }
            }
        }
    }
}

/// A batch that is being written.
pub(super) struct Writing<'a> {
    trees: &'a Trees,
    number: SeqNo,
}

impl Writing<'_> {
    pub(super) fn put_quad(&self, key: &[u8], value: &[u8]) {
        self.trees.both.quads.insert(key, value, self.number);
    }

    pub(super) fn remove_quad(&self, key: &[u8]) {
        self.trees.both.quads.remove(key, self.number);
    }

    pub(super) fn put_term(&self, key: &[u8], value: &[u8]) {
        self.trees.both.terms.insert(key, value, self.number);
    }

    pub(super) fn remove_term(&self, key: &[u8]) {
        self.trees.both.terms.remove(key, self.number);
    }

    /// The batch is whole.
    pub(super) fn show(self) {
        let mut users = self.trees.both.users.lock();
        self.trees.both.visible.fetch_max(self.number + 1);
        users.writing = None;
    }
}

/// Keys in order.
pub(super) type Keys = Box<dyn DoubleEndedIterator<Item = IterGuardImpl> + Send>;

/// Both trees at one moment.
pub(super) struct Snapshot {
    trees: Arc<Trees>,
    at: SeqNo,
}

impl Snapshot {
    pub(super) fn quads_from(&self, start: &[u8]) -> Keys {
        self.trees.both.quads.range(start.., self.at, None)
    }

    /// Those that begin so. Unlike an open end, this does not look behind the last of them, where thousands may be that
    /// were just removed.
    pub(super) fn quads_within(&self, prefix: &[u8]) -> Keys {
        let mut end = prefix.to_vec();
        end.resize(KEY_BYTES, 0xff);
        self.trees.both.quads.range(prefix.to_vec()..=end, self.at, None)
    }

    pub(super) fn all_quads(&self) -> Keys {
        self.trees.both.quads.range::<&[u8], _>(.., self.at, None)
    }

    pub(super) fn all_terms(&self) -> Keys {
        self.trees.both.terms.range::<&[u8], _>(.., self.at, None)
    }

    pub(super) fn has_quad(&self, key: &[u8]) -> Result<bool, ViewError> {
        Ok(self.trees.both.quads.contains_key(key, self.at)?)
    }

    pub(super) fn terms_from(&self, start: &[u8]) -> Keys {
        self.trees.both.terms.range(start.., self.at, None)
    }

    pub(super) fn quads_value(&self, key: &[u8]) -> Result<Option<lsm_tree::UserValue>, ViewError> {
        Ok(self.trees.both.quads.get(key, self.at)?)
    }

    pub(super) fn term(&self, key: &[u8]) -> Result<Option<lsm_tree::UserValue>, ViewError> {
        Ok(self.trees.both.terms.get(key, self.at)?)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut users = self.trees.both.users.lock();
        if let Some(count) = users.readers.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                users.readers.remove(&self.at);
            }
        }
    }
}

/// Large tables need block indexes in parts: whole ones are a megabyte, kept in memory while a table
/// is new but, once reopened, fetched for every single read (measured: 20 times slower).
fn common_config(config: Config) -> Config {
    config
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(RESTART_INTERVAL))
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
}

fn quads_config(config: Config, holding: Holding) -> Config {
    let config = common_config(config).data_block_size_policy(BlockSizePolicy::all(QUADS_BLOCK_BYTES));
    match holding {
        // Scans cannot use filters.
        Holding::Derived => config.filter_policy(FilterPolicy::disabled()),
        Holding::Asserted => config,
    }
}

fn terms_config(config: Config, holding: Holding) -> Config {
    // An id comes from a quad, so its term is there, if there is only one place to look.
    common_config(config).expect_point_read_hits(holding == Holding::Derived)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_seen_whole_or_not_at_all_while_tables_are_merged() {
        let folder = tempfile::TempDir::new().unwrap();
        let trees = Arc::new(Trees::open(folder.path(), 1).unwrap());
        let put = |keys: [&[u8]; 2]| {
            let writing = trees.write();
            for key in keys {
                writing.put_quad(key, b"");
            }
            writing.show();
        };
        // Enough tables that there is something to merge.
        for n in 0..8_u8 {
            put([&[n], &[n, 0]]);
            trees.flush().unwrap();
        }
        let before = trees.snapshot().all_quads().count();
        let writing = trees.write();
        writing.put_quad(b"half", b"");
        merge(&trees.both).unwrap();
        assert_eq!(trees.snapshot().all_quads().count(), before, "it is not whole yet");
        writing.put_quad(b"whole", b"");
        writing.show();
        assert_eq!(trees.snapshot().all_quads().count(), before + 2);
    }
}
