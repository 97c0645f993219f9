//! An append-only Merkle tree, hashed as RFC 6962 says, so that other people's tools can check it.
//!
//! Node `(level, index)` covers the leaves from `index << level` on, `1 << level` of them. Only whole nodes are stored;
//! each is complete with its last leaf, and [`Frontier::append`] gives it back then. From stored nodes the root of any
//! size, and proofs between any two sizes, take a logarithmic number of look-ups.

use crate::Hash;
use crate::hash::Hashing;

/// The hash of a leaf's bytes, handed over in parts.
pub fn leaf<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Hash {
    let mut hashing = Hashing::default();
    hashing.update(&[0]);
    parts.into_iter().for_each(|part| hashing.update(part));
    hashing.finish()
}

fn node(left: Hash, right: Hash) -> Hash {
    Hash::of_joined([[1].as_slice(), left.as_bytes(), right.as_bytes()])
}

/// The tree's right edge: all that is needed to append to it.
///
/// ```
/// use trellis_domain::merkle::{Frontier, leaf};
///
/// let mut tree = Frontier::default();
/// tree.append(leaf([b"first".as_slice()]));
/// let before = tree.root();
/// tree.append(leaf([b"second".as_slice()]));
/// assert_eq!(tree.size(), 2);
/// assert_ne!(tree.root(), before);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// The largest whole nodes, from left to right.
    peaks: Vec<Hash>,
}

impl Frontier {
    /// The edge of a tree of this size, from its stored nodes.
    pub fn at<E>(size: u64, mut stored: impl FnMut(u8, u64) -> Result<Hash, E>) -> Result<Self, E> {
        let peaks = spans(0, size).into_iter().map(|(level, index)| stored(level, index)).collect::<Result<_, _>>()?;
        Ok(Self { size, peaks })
    }

    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf. Gives back the nodes that are whole with it, from the leaf upwards.
    pub fn append(&mut self, leaf: Hash) -> Vec<Hash> {
        let mut whole = vec![leaf];
        let mut newest = leaf;
        for _ in 0..self.size.trailing_ones() {
            let left = self.peaks.pop().expect("there is a peak for every set bit of the size");
            newest = node(left, newest);
            whole.push(newest);
        }
        self.peaks.push(newest);
        self.size += 1;
        whole
    }

    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev().copied();
        peaks.next().map_or_else(|| Hash::of([]), |smallest| peaks.fold(smallest, |right, left| node(left, right)))
    }
}

/// The whole nodes that cover the leaves from `start` up to `end`, from left to right.
///
/// As in the RFC, `start` is a multiple of the largest power of two below `end - start`.
fn spans(start: u64, end: u64) -> Vec<(u8, u64)> {
    let mut spans = Vec::new();
    let mut at = start;
    while at < end {
        let level = (end - at).ilog2();
        spans.push((u8::try_from(level).expect("a number has 64 bits"), at >> level));
        at += 1 << level;
    }
    spans
}

/// The hash over the leaves from `start` up to `end`.
fn range<E>(start: u64, end: u64, stored: &mut impl FnMut(u8, u64) -> Result<Hash, E>) -> Result<Hash, E> {
    let hashes = spans(start, end).into_iter().map(|(level, index)| stored(level, index));
    let hashes = hashes.collect::<Result<Vec<_>, _>>()?;
    let mut hashes = hashes.into_iter().rev();
    let smallest = hashes.next().unwrap_or_else(|| Hash::of([]));
    Ok(hashes.fold(smallest, |right, left| node(left, right)))
}

/// The root of the tree when it had this size.
pub fn root<E>(size: u64, mut stored: impl FnMut(u8, u64) -> Result<Hash, E>) -> Result<Hash, E> {
    range(0, size, &mut stored)
}

/// The largest power of two below a number above 1.
const fn split(size: u64) -> u64 {
    1 << (size - 1).ilog2()
}

/// What proves that the leaf with this number is in the tree of this size.
pub fn inclusion<E>(leaf: u64, size: u64, mut stored: impl FnMut(u8, u64) -> Result<Hash, E>) -> Result<Vec<Hash>, E> {
    let (mut start, mut end, mut proof) = (0, size, Vec::new());
    while end - start > 1 {
        let middle = start + split(end - start);
        if leaf < middle {
            proof.push(range(middle, end, &mut stored)?);
            end = middle;
        } else {
            proof.push(range(start, middle, &mut stored)?);
            start = middle;
        }
    }
    proof.reverse();
    Ok(proof)
}

/// Whether a proof of inclusion holds.
pub fn includes(leaf: u64, hash: Hash, size: u64, root: Hash, proof: &[Hash]) -> bool {
    if leaf >= size {
        return false;
    }
    let (mut index, mut last, mut hash) = (leaf, size - 1, hash);
    for sibling in proof {
        if last == 0 {
            return false;
        }
        if index % 2 == 1 || index == last {
            hash = node(*sibling, hash);
            while index % 2 == 0 && index != 0 {
                index >>= 1;
                last >>= 1;
            }
        } else {
            hash = node(hash, *sibling);
        }
        index >>= 1;
        last >>= 1;
    }
    last == 0 && hash == root
}

/// What proves that the tree of the smaller size is the beginning of the larger one.
pub fn consistency<E>(
    smaller: u64,
    larger: u64,
    mut stored: impl FnMut(u8, u64) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    let (mut start, mut end, mut proof) = (0, larger, Vec::new());
    if smaller == 0 || smaller >= larger {
        return Ok(proof);
    }
    while end != smaller {
        let middle = start + split(end - start);
        if smaller <= middle {
            proof.push(range(middle, end, &mut stored)?);
            end = middle;
        } else {
            proof.push(range(start, middle, &mut stored)?);
            start = middle;
        }
    }
    // The smaller tree's own root needs no proof.
    if start != 0 {
        proof.push(range(start, end, &mut stored)?);
    }
    proof.reverse();
    Ok(proof)
}

/// Whether a proof of consistency holds: the smaller tree is the beginning of the larger one.
pub fn continues(smaller: (u64, Hash), larger: (u64, Hash), proof: &[Hash]) -> bool {
    let ((old, old_root), (new, new_root)) = (smaller, larger);
    if old == 0 || old >= new {
        return proof.is_empty() && (old == 0 || (old == new && old_root == new_root));
    }
    let (mut index, mut last) = (old - 1, new - 1);
    while index % 2 == 1 {
        index >>= 1;
        last >>= 1;
    }
    let mut proof = proof.iter().copied();
    // A smaller tree that is one whole node is its own beginning.
    let Some(first) = (if index == 0 { Some(old_root) } else { proof.next() }) else { return false };
    let (mut before, mut after) = (first, first);
    for sibling in proof {
        if last == 0 {
            return false;
        }
        if index % 2 == 1 || index == last {
            before = node(sibling, before);
            after = node(sibling, after);
            while index % 2 == 0 && index != 0 {
                index >>= 1;
                last >>= 1;
            }
        } else {
            after = node(after, sibling);
        }
        index >>= 1;
        last >>= 1;
    }
    last == 0 && before == old_root && after == new_root
}

#[cfg(test)]
#[path = "merkle_tests.rs"]
mod tests;
