use super::order::{EncodedQuad, Graphs, IdPattern, KEY_BYTES, Order, key_prefix, quad_key, read_quad_key};
use super::term_id::{TermId, WorkspaceId};

fn id(name: &str) -> TermId {
    TermId::of(name.as_bytes())
}

fn sample() -> EncodedQuad {
    EncodedQuad { s: id("s"), p: id("p"), o: id("o"), g: id("g") }
}

/// All sixteen patterns that bind a part of the sample.
fn patterns() -> impl Iterator<Item = IdPattern> {
    let quad = sample();
    (0..16_u8).map(move |bound| {
        let part = |bit: u8, id| (bound & bit != 0).then_some(id);
        let g = part(8, quad.g).map_or(Graphs::All, Graphs::One);
        IdPattern { s: part(1, quad.s), p: part(2, quad.p), o: part(4, quad.o), g }
    })
}

#[test]
fn keys_come_back_as_the_quad_they_were_made_of() {
    let workspace = WorkspaceId::of("w");
    for order in Order::ALL {
        let key = quad_key(workspace, order, &sample());
        assert_eq!(key.len(), KEY_BYTES);
        assert_eq!(read_quad_key(order, &key), Some(sample()));
    }
}

#[test]
fn keys_of_other_orders_and_lengths_are_refused() {
    let key = quad_key(WorkspaceId::of("w"), Order::Spog, &sample());
    assert_eq!(read_quad_key(Order::Gpos, &key), None);
    assert_eq!(read_quad_key(Order::Spog, &key[1..]), None);
}

#[test]
fn a_prefix_covers_the_keys_of_matching_quads() {
    let workspace = WorkspaceId::of("w");
    for pattern in patterns() {
        let path = pattern.access_path();
        let prefix = key_prefix(workspace, path.order, &path.prefix);
        assert!(quad_key(workspace, path.order, &sample()).starts_with(&prefix), "{pattern:?}");
    }
}

/// A bound part is left to the filter only where another one already narrows the scan to a node.
#[test]
fn every_bound_part_narrows_the_scan() {
    for pattern in patterns() {
        let bound = [pattern.s, pattern.p, pattern.o].iter().flatten().count();
        let has_graph = pattern.g != Graphs::All;
        let has_node = pattern.s.is_some() || (pattern.o.is_some() && pattern.p.is_none());
        let used = pattern.access_path().prefix.len();
        let filtered = bound + usize::from(has_graph) - used;
        assert!(filtered == 0 || (filtered == 1 && has_graph && has_node), "{pattern:?}");
    }
}
