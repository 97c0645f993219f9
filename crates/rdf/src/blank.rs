//! Names of blank nodes that follow from where they were read.
//!
//! A blank node means something only in its own file. So its name is made of what the file is called by whoever loads it
//! and of the label there: two files never mean the same node, and a file that is read again means the same ones. Nodes
//! without a label have random ones from the parser; they are numbered as they come, which is the same every time.

use oxrdf::BlankNodeRef;
use std::collections::HashMap;
use trellis_domain::Hash;

/// More nodes without a label are not kept apart in one file: each takes memory until its end.
pub(crate) const MOST_UNLABELLED: usize = 1 << 20;
/// Labels that the parser may have made: as long as its random numbers are.
const MADE: std::ops::RangeInclusive<usize> = 28..=32;

pub(crate) struct BlankNames {
    scope: Hash,
    numbers: HashMap<u128, u32>,
}

/// There are too many to be kept apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl BlankNames {
    pub(crate) fn new(scope: &str) -> Self {
        Self { scope: Hash::of(scope), numbers: HashMap::new() }
    }

    pub(crate) fn name(&mut self, node: BlankNodeRef<'_>) -> Result<String, TooMany> {
        let made = node.unique_id().filter(|_| MADE.contains(&node.as_str().len()));
        let Some(id) = made else { return Ok(self.hashed(b'l', node.as_str().as_bytes())) };
        let next = self.numbers.len();
        if next >= MOST_UNLABELLED && !self.numbers.contains_key(&id) {
            return Err(TooMany);
        }
        let number = *self.numbers.entry(id).or_insert(u32::try_from(next).map_err(|_| TooMany)?);
        Ok(self.hashed(b'n', &number.to_be_bytes()))
    }

    fn hashed(&self, kind: u8, label: &[u8]) -> String {
        let hash = Hash::of_joined([self.scope.as_bytes().as_slice(), &[kind], label]);
        hash.as_bytes()[..16].iter().fold(String::from("b"), |mut name, byte| {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            name.push(char::from(DIGITS[usize::from(byte >> 4)]));
            name.push(char::from(DIGITS[usize::from(byte & 15)]));
            name
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::BlankNode;

    #[test]
    fn labels_are_apart_by_scope_and_numbers_come_in_order() {
        let label = BlankNode::new("a1").expect("a label");
        let name = |scope: &str| BlankNames::new(scope).name(label.as_ref()).expect("few nodes");
        assert_eq!(name("file"), name("file"));
        assert_ne!(name("file"), name("other"));
        let unlabelled = || {
            let mut names = BlankNames::new("file");
            let (first, second) = (BlankNode::default(), BlankNode::default());
            [&first, &second, &first].map(|node| names.name(node.as_ref()).expect("few nodes"))
        };
        let once = unlabelled();
        assert_eq!(once, unlabelled(), "whatever their random labels are");
        assert_eq!(once[0], once[2]);
        assert_ne!(once[0], once[1]);
    }
}
