use super::*;
use std::collections::HashMap;
use std::convert::Infallible;

/// A tree with all its nodes.
#[derive(Default)]
struct Tree {
    frontier: Frontier,
    nodes: HashMap<(u8, u64), Hash>,
    leaves: Vec<Hash>,
}

impl Tree {
    fn of(size: u64) -> Self {
        let mut tree = Self::default();
        for n in 0..size {
            tree.append(leaf([format!("entry {n}").as_bytes()]));
        }
        tree
    }

    fn append(&mut self, leaf: Hash) {
        let number = self.frontier.size();
        self.leaves.push(leaf);
        for (level, hash) in (0_u8..).zip(self.frontier.append(leaf)) {
            self.nodes.insert((level, number >> level), hash);
        }
    }

    fn stored(&self) -> impl FnMut(u8, u64) -> Result<Hash, Infallible> {
        |level, index| Ok(self.nodes[&(level, index)])
    }
}

/// The definition in the RFC, word for word.
fn by_definition(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Hash::of([]),
        [one] => *one,
        many => {
            let (left, right) = many.split_at(usize::try_from(split(many.len() as u64)).unwrap());
            node(by_definition(left), by_definition(right))
        }
    }
}

#[test]
fn the_tree_has_the_roots_that_the_published_vectors_have() {
    // The test data of the certificate transparency implementations.
    let inputs: [&[u8]; 8] = [
        &[],
        &[0x00],
        &[0x10],
        &[0x20, 0x21],
        &[0x30, 0x31],
        &[0x40, 0x41, 0x42, 0x43],
        &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
        &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
    ];
    let roots = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut tree = Frontier::default();
    for (input, root) in inputs.into_iter().zip(roots) {
        tree.append(leaf([input]));
        assert_eq!(tree.root().to_string(), root);
    }
}

#[test]
fn every_size_has_the_root_of_the_definition() {
    let tree = Tree::of(130);
    for size in 0..=130_u64 {
        let expected = by_definition(&tree.leaves[..usize::try_from(size).unwrap()]);
        assert_eq!(root(size, tree.stored()).unwrap(), expected, "{size}");
        assert_eq!(Frontier::at(size, tree.stored()).unwrap().root(), expected, "{size}");
    }
}

#[test]
fn every_leaf_is_proven_and_no_other() {
    let tree = Tree::of(40);
    for size in 1..=40_u64 {
        let whole = root(size, tree.stored()).unwrap();
        for number in 0..size {
            let proof = inclusion(number, size, tree.stored()).unwrap();
            let hash = tree.leaves[usize::try_from(number).unwrap()];
            assert!(includes(number, hash, size, whole, &proof), "{number} of {size}");
            assert!(!includes(number, Hash::of(b"other"), size, whole, &proof));
            assert!(!includes(number + 1, hash, size, whole, &proof) || size == 1);
            let mut longer = proof.clone();
            longer.push(hash);
            assert!(!includes(number, hash, size, whole, &longer));
        }
    }
}

#[test]
fn every_beginning_is_proven_and_a_changed_one_is_not() {
    let tree = Tree::of(40);
    let roots: Vec<_> = (0..=40).map(|size| root(size, tree.stored()).unwrap()).collect();
    for larger in 0..=40_usize {
        for smaller in 0..=larger {
            let (old, new) = (smaller as u64, larger as u64);
            let proof = consistency(old, new, tree.stored()).unwrap();
            assert!(continues((old, roots[smaller]), (new, roots[larger]), &proof), "{smaller} to {larger}");
            if smaller > 0 {
                assert!(!continues((old, Hash::of(b"other")), (new, roots[larger]), &proof));
                assert!(!continues((old, roots[smaller]), (new, Hash::of(b"other")), &proof));
            }
        }
    }
}
