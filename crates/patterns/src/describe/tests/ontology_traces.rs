//! The vocabulary against graphs: what is written is declared, and holds for what it is declared for.

use crate::plan::PlanNames;
use crate::projector::project;
use crate::projector::tests::fixture::{
    Script, accepted, cancelled_plan, cancelled_supervisor, ending, input_run, parked_run, plan_run, priced, react_run,
    step_answer, supervisor_run, uncertain_run, unreadable,
};
use crate::projector::tests::random_run::any_run;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use trellis_domain::rdf::{Quad, Term, Triple};
use trellis_domain::record::{Accepted, Body, Ended, Exchange, Explained, Name, Record, ReplyFormat};
use trellis_domain::run::Termination;
use trellis_domain::usage::Usage;
use trellis_domain::{Caller, Configured, SessionId, Surface, Timestamp};
use trellis_provenance::ontology::{Declarations, Ontology, OntologyProblem};
use trellis_provenance::retrieval::{Asked, DocumentTrace, GraphTrace, KeptEdge, KeptPassage};
use trellis_provenance::vocabulary::{PREFIXES, prov, rdf, tg, trellis};
use trellis_provenance::{ONTOLOGY, iri};

static OURS: LazyLock<Ontology> = LazyLock::new(|| Ontology::parse(ONTOLOGY).unwrap());

/// What only a few runs have: somebody who asked and who cancelled it, an earlier question, a reply whose format is known and that nothing comes
/// of, sums of tokens, a time in which nobody served it.
fn rare_run() -> Vec<Record> {
    let run = SessionId::new("before").unwrap();
    let earlier = vec![Exchange { run: Some(run), question: "Who?".to_owned(), answer: "X.".to_owned() }];
    let by = Some(Caller::new(Some("alice".to_owned()), Surface::Api));
    let configured = Some(Configured { version: 7, time: Timestamp::default(), by: Caller::program() });
    let tokens = Usage { in_token: Some(7), out_token: Some(3), model_calls: 1, ..Usage::default() };
    let ended = Ended { by: by.clone(), ..ending(Termination::Cancelled, "", None) };
    let mut unused = priced(unreadable("Hm."));
    unused.prompt.format = Some(ReplyFormat::NativeTools);
    let mut script = Script::new("rare");
    script
        .push(Name::session(), Body::from(Accepted { earlier, by, configured, ..accepted("And why?", Some("talk")) }))
        .said(Name::route_pattern(), unused)
        .ended(Ended {
            usage: tokens.clone(),
            total: Some(tokens),
            left_out: vec!["9 steps".to_owned()],
            outage_ms: 3_600_000,
            ..ended
        })
        .said(Name::step(0), step_answer("Late.", "Because."))
        .header(|header| header.late = true);
    script.records
}

fn runs() -> Vec<Vec<Record>> {
    let ours = [
        react_run(),
        parked_run(),
        uncertain_run(),
        input_run(),
        plan_run(),
        cancelled_plan(),
        supervisor_run(),
        cancelled_supervisor(),
        rare_run(),
    ];
    ours.into_iter().chain(crate::registry::samples()).collect()
}

#[test]
fn the_graphs_of_all_patterns_are_told_in_the_words_of_the_vocabulary() {
    for records in runs() {
        assert_eq!(OURS.problems(&project(&records)), []);
    }
}

proptest! {
    #[test]
    fn any_graph_is_told_in_the_words_of_the_vocabulary(records in any_run()) {
        prop_assert_eq!(OURS.problems(&project(&records)), []);
    }
}

/// What tools tell of their own steps.
fn retrievals() -> Vec<Explained> {
    let iri = |text: &str| Term::iri(format!("urn:{text}"));
    let kept = KeptEdge {
        triple: Triple { s: iri("s"), p: iri("p"), o: iri("o") },
        concept: Some("a word".to_owned()),
        score: 0.5,
        reasoning: Some("it fits".to_owned()),
        choice: 0,
        passages: vec!["urn:passage".to_owned()],
    };
    let (trace, nothing) = (GraphTrace::new("g"), Usage::default());
    let document = Some("urn:document");
    let mut told = vec![
        trace.question("Who?", Timestamp::from_micros(0), None),
        trace.grounding(&["a word".to_owned()], &nothing),
        trace.exploration(1, &["urn:s".to_owned()]),
        trace.focus(&[kept], &[], &nothing),
        trace.synthesis(document, &nothing),
    ];
    let asked = Asked { query: "Who?", time: Timestamp::from_micros(0), parent: None };
    let found = [KeptPassage { document: "urn:document".to_owned(), score: 0.5 }];
    told.extend(DocumentTrace::new("d").whole(&asked, &found, document));
    told
}

#[test]
fn what_is_declared_as_written_is_written_and_nothing_else_is() {
    let file = Declarations::parse(ONTOLOGY).unwrap();
    let ours = |term: &String| term.starts_with(tg::NS) || term.starts_with(trellis::NS);
    let declared = file.classes().chain(file.properties()).filter(ours);
    let declared: BTreeSet<String> =
        declared.filter(|term| file.values(term, trellis::NS, "standing").is_empty()).collect();
    let mut quads: Vec<Quad> = runs().iter().flat_map(|records| project(records)).collect();
    quads.extend(retrievals().into_iter().flat_map(|told| told.quads));
    let used = quads.iter().map(|quad| if quad.p.text() == rdf::TYPE { &quad.o } else { &quad.p });
    let written: BTreeSet<String> = used.map(|term| term.text().to_owned()).filter(ours).collect();
    assert_eq!(written, declared);
}

/// What a vocabulary finds in a graph, with short names.
fn check(turtle: &str, quads: &[Quad], expected: Expect) {
    let problems = Ontology::parse(turtle).unwrap().problems(quads);
    let text = problems.iter().map(OntologyProblem::to_string).collect::<Vec<_>>().join("\n");
    let prefixes = PREFIXES.iter().map(|(name, iri)| (*iri, format!("{name}:")));
    let prefixes = prefixes.chain([(iri::AGENT, String::new())]);
    expected.assert_eq(&prefixes.fold(text, |text, (long, short)| text.replace(long, &short)));
}

/// A graph in which every statement of a property has another object.
fn with_object(quads: Vec<Quad>, property: &str, object: Term) -> Vec<Quad> {
    let change = |quad: Quad| if quad.p.text() == property { Quad { o: object.clone(), ..quad } } else { quad };
    quads.into_iter().map(change).collect()
}

fn react() -> Vec<Quad> {
    project(&react_run())
}

#[test]
fn a_class_or_property_that_is_not_declared_is_named() {
    let fewer = ONTOLOGY.replace("tg:RoutingDecision a ", "tg:Choice a ").replace("tg:query a ", "tg:asked a ");
    check(
        &fewer,
        &project(&cancelled_supervisor()),
        expect![[r#"
        boss uses tg:query, which is not declared
        boss/routing uses tg:RoutingDecision, which is not declared
        boss/routing has tg:candidatePatterns, but is none of tg:RoutingDecision
        boss/routing has tg:selectedPattern, but is none of tg:RoutingDecision
        boss/routing has tg:taskType, but is none of tg:PatternDecision, tg:RoutingDecision"#]],
    );
}

#[test]
fn a_property_of_something_it_is_not_for_is_named() {
    let narrow = ONTOLOGY.replace("rdfs:domain tg:Question ;", "rdfs:domain tg:Plan ;");
    check(&narrow, &react(), expect!["8f2c1a has tg:query, but is none of tg:Plan"]);
}

#[test]
fn a_property_that_leads_to_something_it_does_not_lead_to_is_named() {
    let narrow = ONTOLOGY.replace("rdfs:range tg:Thought ;", "rdfs:range tg:Plan ;");
    check(
        &narrow,
        &project(&cancelled_supervisor()),
        expect!["boss/decompose has <boss/decompose/thought> for tg:thought, which is none of tg:Plan"],
    );
    let literal = with_object(react(), tg::SELECTED_PATTERN, Term::literal("react"));
    check(
        ONTOLOGY,
        &literal,
        expect![[r#"8f2c1a/routing has "react" for tg:selectedPattern, which is none of trellis:Pattern"#]],
    );
    let stranger = with_object(react(), prov::WAS_ASSOCIATED_WITH, Term::iri("urn:nobody"));
    check(
        ONTOLOGY,
        &stranger,
        expect!["8f2c1a/run has <urn:nobody> for prov:wasAssociatedWith, which is none of prov:Agent"],
    );
}

#[test]
fn a_literal_that_has_a_datatype_or_another_form_is_named() {
    let typed = Term::Literal {
        value: "2026-04-13T15:16:45Z".to_owned(),
        datatype: "http://www.w3.org/2001/XMLSchema#dateTime".to_owned(),
        language: String::new(),
    };
    check(
        ONTOLOGY,
        &with_object(react(), prov::ENDED_AT_TIME, typed),
        expect![
            "8f2c1a/run has 2026-04-13T15:16:45Z for prov:endedAtTime with a datatype or language, but literals are untyped"
        ],
    );
    let other = [
        (prov::ENDED_AT_TIME, "yesterday"),
        (trellis::LIMITS, "{"),
        (trellis::MODEL_CALLS, "-1"),
        (trellis::ATTEMPT, "0"),
        (trellis::MESSAGE_ID, "somewhere"),
        (tg::TERMINATION_REASON, "bored"),
    ];
    let changed =
        other.into_iter().fold(react(), |quads, (property, text)| with_object(quads, property, Term::literal(text)));
    check(
        ONTOLOGY,
        &changed,
        expect![[r#"
        8f2c1a/final/thought has "somewhere" for trellis:messageId, which is not an IRI
        8f2c1a/i2 has "0" for trellis:attempt, which is not a whole number above 0
        8f2c1a/i2/thought has "somewhere" for trellis:messageId, which is not an IRI
        8f2c1a/pattern-decision has "{" for trellis:limits, which is not JSON
        8f2c1a/run has "yesterday" for prov:endedAtTime, which is not a time in UTC
        8f2c1a/run has "-1" for trellis:modelCalls, which is not a whole number
        8f2c1a/final has "bored" for tg:terminationReason, which is none of its words"#]],
    );
}

#[test]
fn a_thought_that_does_not_lead_back_is_named() {
    let is_link = |quad: &Quad| quad.p.text() == prov::WAS_DERIVED_FROM && quad.s.text().ends_with("/i1/thought");
    let without: Vec<Quad> = react().into_iter().filter(|quad| !is_link(quad)).collect();
    check(
        ONTOLOGY,
        &without,
        expect!["8f2c1a/i1 has tg:thought to 8f2c1a/i1/thought, from which prov:wasDerivedFrom does not lead back"],
    );
}

#[test]
fn a_node_of_two_classes_that_exclude_each_other_is_named() {
    let mut quads = react();
    let question = quads.iter().find(|quad| quad.p.text() == tg::QUERY).unwrap().clone();
    quads.push(Quad { p: Term::iri(rdf::TYPE), o: Term::iri(prov::class::ACTIVITY), ..question });
    check(ONTOLOGY, &quads, expect!["8f2c1a is both prov:Entity and prov:Activity, which exclude each other"]);
}
