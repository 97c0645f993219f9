//! What holds for the graph of every run.

use crate::projector::tests::random_run::any_run;
use crate::projector::{Projector, events, project};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::record::Body;
use trellis_provenance::vocabulary::{ALL, GRAPH_RETRIEVAL, prov, rdf, tg, trellis};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_records_does_not_matter(
        (records, shuffled) in any_run().prop_flat_map(|records| (Just(records.clone()), Just(records).prop_shuffle()))
    ) {
        prop_assert_eq!(project(&records), project(&shuffled));
        prop_assert_eq!(events(&records), events(&shuffled));
    }

    #[test]
    fn what_comes_later_never_changes_an_event(records in any_run(), end in any::<Index>()) {
        let all = events(&records);
        let some = events(&records[..end.index(records.len())]);
        prop_assert_eq!(&all[..some.len()], some.as_slice());
    }

    #[test]
    fn the_graph_is_sorted_in_one_named_graph_and_free_of_types(records in any_run()) {
        let quads = project(&records);
        prop_assert!(quads.is_sorted());
        for quad in &quads {
            prop_assert_eq!(quad.g.as_deref(), Some(GRAPH_RETRIEVAL));
            if let Term::Literal { datatype, language, .. } = &quad.o {
                prop_assert!(datatype.is_empty() && language.is_empty());
            }
        }
    }

    #[test]
    fn every_name_is_in_the_vocabulary(records in any_run()) {
        let known: BTreeSet<&str> = ALL.iter().copied().flatten().copied().collect();
        for quad in project(&records) {
            prop_assert!(known.contains(quad.p.text()), "{}", quad.p);
            prop_assert!(quad.p.text() != rdf::TYPE || known.contains(quad.o.text()), "{}", quad.o);
        }
    }

    #[test]
    fn inline_quads_lack_only_classes_and_documents_of_accompanying_nodes(records in any_run()) {
        for event in events(&records) {
            let count = |class: &str| event.quads.iter().filter(|quad| quad.o == Term::iri(class)).count();
            prop_assert_eq!(count(tg::class::REFLECTION), count(tg::class::THOUGHT));
            let left_out: Vec<_> = event.quads.iter().filter(|quad| !event.clone().into_inline().contains(quad)).collect();
            let is_main = |quad: &&&Quad| quad.s.text() == event.explain_id;
            prop_assert!(left_out.iter().all(|quad| [rdf::TYPE, tg::DOCUMENT].contains(&quad.p.text())));
            prop_assert_eq!(left_out.iter().filter(is_main).count(), 0);
            prop_assert_eq!(event.clone().into_inline().len() + left_out.len(), event.quads.len());
        }
    }

    #[test]
    fn every_node_carries_the_conversation(records in any_run()) {
        let talks = matches!(&records[0].body, Body::Accepted(accepted) if accepted.conversation.is_some());
        for event in events(&records) {
            let nodes: BTreeSet<_> = event.quads.iter().map(|quad| quad.s.text()).collect();
            let tagged = event.quads.iter().filter(|quad| quad.p.text() == trellis::CONVERSATION_ID);
            let tagged: Vec<_> = tagged.map(|quad| quad.s.text()).collect();
            prop_assert_eq!(tagged.len(), if talks { nodes.len() } else { 0 });
        }
    }

    #[test]
    fn every_main_node_says_where_in_the_run_its_record_was(records in any_run()) {
        for event in events(&records) {
            let record = records.iter().find(|record| record.header.seq == event.seq).unwrap();
            let said = |property: &str| -> Vec<_> {
                let saying = event.quads.iter().filter(|quad| quad.p.text() == property);
                saying.map(|quad| (quad.s.text().to_owned(), quad.o.text().to_owned())).collect()
            };
            prop_assert_eq!(said(trellis::SEQ), [(event.explain_id.clone(), event.seq.to_string())]);
            let time = record.header.time.to_string();
            prop_assert_eq!(said(prov::GENERATED_AT_TIME), [(event.explain_id.clone(), time)]);
        }
    }

    #[test]
    fn records_one_by_one_give_the_same_events(records in any_run()) {
        let mut projector = Projector::new();
        let mut one_by_one = Vec::new();
        for record in &records {
            one_by_one.extend(projector.apply(record));
            prop_assert!(projector.apply(record).is_empty(), "a repeated record adds nothing");
        }
        prop_assert_eq!(one_by_one, events(&records));
    }
}
