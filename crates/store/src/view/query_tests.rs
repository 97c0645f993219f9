use super::fixtures::{PROV, TG, iri, quad, session_iri, trace};
use super::{Bounds, NoOverlay, QueryError, RunQuads, View, answer};
use tempfile::TempDir;
use trellis_domain::rdf::{Quad, Term, Triple};
use trellis_orchestrator::ports::{Answer, QuadPattern};

const PREFIXES: &str = "PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX tg: <https://trustgraph.ai/ns/>
    PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> PREFIX x: <urn:x:>\n";

struct Asked {
    _folder: TempDir,
    view: View,
}

impl Asked {
    fn of(quads: Vec<Quad>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let view = View::open(folder.path()).unwrap();
        view.absorb(&[RunQuads { workspace: "w".into(), quads }], 1).unwrap();
        Self { _folder: folder, view }
    }

    fn try_ask(&self, sparql: &str, limits: &Bounds) -> Result<Answer, QueryError> {
        self.view.query("w", &format!("{PREFIXES}{sparql}"), &NoOverlay, limits)
    }

    fn ask(&self, sparql: &str) -> Answer {
        self.try_ask(sparql, &Bounds::default()).unwrap()
    }

    /// The texts of the cells, rows sorted; an unbound cell is `-`.
    fn rows(&self, sparql: &str) -> Vec<String> {
        let Answer::Rows { rows, truncated: false, .. } = self.ask(sparql) else { panic!("no full rows") };
        let text = |cell: &Option<Term>| cell.as_ref().map_or("-", Term::text).replace("urn:x:", "");
        let mut rows: Vec<_> = rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect();
        rows.sort();
        rows
    }

    fn error(&self, sparql: &str) -> String {
        self.try_ask(sparql, &Bounds::default()).unwrap_err().to_string()
    }
}

/// `s p o g`; names get the prefix `urn:x:`, an object in quotes is a literal, `-` is the default graph.
fn quads(lines: &[&str]) -> Vec<Quad> {
    let name = |text: &str| format!("urn:x:{text}");
    let read = |line: &&str| {
        let parts: Vec<_> = line.split(' ').collect();
        let object = match parts[2].strip_prefix('\'') {
            Some(text) => Term::literal(text),
            None => iri(&name(parts[2])),
        };
        let graph = (parts[3] != "-").then(|| name(parts[3]));
        quad(&name(parts[0]), &name(parts[1]), object, graph.as_deref())
    };
    lines.iter().map(read).collect()
}

fn family() -> Asked {
    Asked::of(quads(&[
        "ann knows bob -",
        "ann knows bob g1",
        "ann knows bob g2",
        "bob knows cat g1",
        "cat knows dan g2",
        "ann age '41 -",
        "bob age '7 g1",
    ]))
}

#[test]
fn the_default_graph_is_the_union_without_duplicates() {
    assert_eq!(family().rows("SELECT ?a ?b { ?a x:knows ?b }"), ["ann bob", "bob cat", "cat dan"]);
    assert_eq!(family().rows("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"), ["5"]);
}

#[test]
fn a_named_graph_is_read_alone() {
    let family = family();
    assert_eq!(family.rows("SELECT ?a ?b { GRAPH x:g1 { ?a x:knows ?b } }"), ["ann bob", "bob cat"]);
    assert_eq!(family.rows("SELECT ?a { GRAPH x:g2 { ?a ?p x:bob } }"), ["ann"]);
    assert_eq!(family.rows("SELECT ?a { GRAPH x:nowhere { ?a ?p ?b } }"), [""; 0]);
}

#[test]
fn graph_variables_range_over_named_graphs() {
    let family = family();
    assert_eq!(family.rows("SELECT ?g { GRAPH ?g { x:ann x:knows x:bob } }"), ["g1", "g2"]);
    assert_eq!(family.rows("SELECT ?g { GRAPH ?g {} }"), ["g1", "g2"]);
    assert_eq!(family.rows("SELECT ?g ?a { GRAPH ?g { ?a x:age ?n } }"), ["g1 bob"]);
}

#[test]
fn from_clauses_choose_the_graphs() {
    let family = family();
    assert_eq!(family.rows("SELECT ?a FROM x:g2 { ?a x:knows ?b }"), ["ann", "cat"]);
    assert_eq!(family.rows("SELECT ?a ?b FROM x:g1 FROM x:g2 { ?a x:knows ?b }"), ["ann bob", "bob cat", "cat dan"]);
    assert_eq!(family.rows("SELECT ?p ?o FROM x:g1 FROM x:g2 { x:ann ?p ?o }"), ["knows bob"]);
    assert_eq!(family.rows("SELECT ?s FROM x:g1 FROM x:g2 { ?s ?p ?o }").len(), 4);
    assert_eq!(family.rows("SELECT ?g FROM NAMED x:g2 { GRAPH ?g { ?a ?p ?b } }"), ["g2", "g2"]);
    assert_eq!(family.rows("SELECT ?a FROM NAMED x:g2 { ?a ?p ?b }"), [""; 0]);
    assert_eq!(family.rows("SELECT ?g FROM x:g1 { GRAPH ?g { ?a ?p ?b } }"), [""; 0]);
}

#[test]
fn optional_filter_minus_and_exists() {
    let family = family();
    assert_eq!(family.rows("SELECT ?a ?n { ?a x:knows ?b OPTIONAL { ?a x:age ?n } }"), ["ann 41", "bob 7", "cat -"]);
    assert_eq!(family.rows("SELECT ?a { ?a x:age ?n FILTER(STRLEN(?n) = 1) }"), ["bob"]);
    assert_eq!(family.rows("SELECT ?a { ?a x:knows ?b MINUS { ?a x:age ?n } }"), ["cat"]);
    assert_eq!(family.rows("SELECT ?a { ?a x:knows ?b FILTER NOT EXISTS { ?a x:age ?n } }"), ["cat"]);
}

#[test]
fn property_paths_follow_chains() {
    let family = family();
    assert_eq!(family.rows("SELECT ?b { x:ann x:knows+ ?b }"), ["bob", "cat", "dan"]);
    assert_eq!(family.rows("SELECT ?a { ?a x:knows+ x:dan }"), ["ann", "bob", "cat"]);
    assert_eq!(family.rows("SELECT ?a { ?a (x:knows/x:knows) ?b }"), ["ann", "bob"]);
    assert_eq!(family.rows("SELECT ?b { GRAPH x:g1 { x:ann x:knows+ ?b } }"), ["bob", "cat"]);
    assert_eq!(family.rows("SELECT ?b { x:bob x:knows* ?b }"), ["bob", "cat", "dan"]);
}

#[test]
fn the_ancestry_of_an_answer_reaches_its_question() {
    let asked = Asked::of(trace(1));
    let session = session_iri(1);
    let ancestry = format!("SELECT ?n {{ <{session}/final> prov:wasDerivedFrom+ ?n . ?n a tg:Question }}");
    assert_eq!(asked.rows(&ancestry), [session]);
}

#[test]
fn computed_terms_can_be_read_and_joined() {
    let family = family();
    assert_eq!(family.rows("SELECT ?x { ?a x:age ?n BIND(CONCAT(?n, \"!\") AS ?x) }"), ["41!", "7!"]);
    assert_eq!(family.rows("SELECT ?b { BIND(IRI(CONCAT(\"urn:x:\", \"ann\")) AS ?a) ?a x:knows ?b }"), ["bob"]);
    assert_eq!(family.rows("SELECT ?a { VALUES ?a { x:ann x:nobody } ?a x:age ?n }"), ["ann"]);
}

#[test]
fn ask_construct_and_describe() {
    let family = family();
    assert_eq!(family.ask("ASK { x:ann x:knows x:bob }"), Answer::Truth(true));
    assert_eq!(family.ask("ASK { x:dan x:knows ?b }"), Answer::Truth(false));
    let known_by = Triple { s: iri("urn:x:cat"), p: iri("urn:x:knownBy"), o: iri("urn:x:bob") };
    assert_eq!(
        family.ask("CONSTRUCT { ?b x:knownBy ?a } { ?a x:knows ?b . ?a x:age \"7\" }"),
        Answer::Constructed(vec![known_by])
    );
    let Answer::Described(described) = family.ask("DESCRIBE x:ann") else { panic!("no graph") };
    assert_eq!(described.len(), 2);
}

#[test]
fn literals_keep_language_and_datatype() {
    let typed = |value: &str, datatype: &str, language: &str| Term::Literal {
        value: value.into(),
        datatype: datatype.into(),
        language: language.into(),
    };
    let integer = "http://www.w3.org/2001/XMLSchema#integer";
    let values = [Term::literal("7"), typed("7", integer, ""), typed("7", "", "en"), typed("7", "urn:x:t", "")];
    let asked = Asked::of(values.iter().map(|value| quad("urn:x:s", "urn:x:p", value.clone(), None)).collect());
    let Answer::Rows { rows, .. } = asked.ask("SELECT ?o { x:s x:p ?o }") else { panic!("no rows") };
    let mut found: Vec<_> = rows.into_iter().flatten().flatten().collect();
    found.sort();
    assert_eq!(found, {
        let mut values = values.to_vec();
        values.sort();
        values
    });
    for (written, count) in [("\"7\"", "1"), ("7", "1"), ("\"7\"@EN", "1"), ("\"7\"^^x:t", "1"), ("\"8\"", "0")] {
        assert_eq!(asked.rows(&format!("SELECT (COUNT(*) AS ?n) {{ ?s x:p {written} }}")), [count], "{written}");
    }
    assert_eq!(asked.rows("SELECT ?l { ?s x:p ?o BIND(LANG(?o) AS ?l) FILTER(?l != \"\") }"), ["en"]);
}

#[test]
fn quoted_triples_can_be_matched_and_taken_apart() {
    let edge = Triple { s: iri("urn:x:a"), p: iri("urn:x:b"), o: Term::literal("c") };
    let term = Term::Quoted { triple: Box::new(edge) };
    let forbidden = Triple { s: Term::literal("a"), p: iri("urn:x:b"), o: Term::literal("c") };
    let asked = Asked::of(vec![
        quad("urn:x:e", "urn:x:edge", term.clone(), None),
        quad("urn:x:f", "urn:x:edge", Term::Quoted { triple: Box::new(forbidden) }, None),
    ]);
    assert_eq!(asked.rows("SELECT ?e { ?e x:edge <<( x:a x:b \"c\" )>> }"), ["e"]);
    assert_eq!(asked.rows("SELECT ?s ?o { ?e x:edge <<( ?s x:b ?o )>> }"), ["a c"]);
    assert_eq!(asked.rows("SELECT ?e { ?e x:edge ?t FILTER(isTRIPLE(?t)) }"), ["e"]);
    assert_eq!(asked.rows("SELECT ?e { ?e x:edge ?t }"), ["e", "f"]);
}

#[test]
fn usual_prefixes_need_no_declaration_and_a_query_may_redefine_them() {
    let trace = Asked::of(trace(1));
    let ask = |sparql: &str| trace.view.query("w", sparql, &NoOverlay, &Bounds::default());
    let truth = |sparql: &str| matches!(ask(sparql).unwrap(), Answer::Truth(true));
    assert!(truth("ASK { ?end prov:wasDerivedFrom ?step }"));
    assert!(!truth("PREFIX prov: <urn:other:> ASK { ?end prov:wasDerivedFrom ?step }"));
    for name in ["rdf", "rdfs", "prov", "tg", "trellis", "t", "xsd"] {
        ask(&format!("ASK {{ ?s {name}:x ?o }}")).unwrap();
    }
    let refused = ask("DELETE WHERE { ?s tg:action ?o }").unwrap_err();
    assert!(matches!(refused, QueryError::UpdateRefused), "{refused}");
    let wrong = |sparql: &str| ask(sparql).unwrap_err().to_string();
    assert_eq!(
        wrong("SELECT ?s\nWHERE { ?s ?p }"),
        r#"this is not a SPARQL query: error at 2:16, behind "WHERE { ?s ?p }""#
    );
    assert_eq!(
        wrong("ASK { ?s foo:x ?o }"),
        r#"this is not a SPARQL query: error at 1:15, behind "ASK { ?s foo:x": Prefix not found"#
    );
}

#[test]
fn rows_beyond_the_limit_are_cut_off_and_said_so() {
    let limits = Bounds { max_rows: 2, ..Bounds::default() };
    let cut = family().try_ask("SELECT ?a { ?a x:knows ?b }", &limits).unwrap();
    assert!(matches!(cut, Answer::Rows { ref rows, truncated: true, .. } if rows.len() == 2));
    let whole = family().try_ask("SELECT ?a { ?a x:age ?n }", &limits).unwrap();
    assert!(matches!(whole, Answer::Rows { ref rows, truncated: false, .. } if rows.len() == 2));
    let graph = family().try_ask("CONSTRUCT WHERE { ?a x:knows ?b }", &limits);
    assert!(matches!(graph, Err(QueryError::GraphTooLarge { max: 2 })));
}

#[test]
fn an_answer_takes_no_more_memory_than_it_may() {
    let family = family();
    let within = |max_bytes| Bounds { max_bytes, ..Bounds::default() };
    let some = family.try_ask("SELECT ?a { ?a x:knows ?b }", &within(130)).unwrap();
    assert!(matches!(some, Answer::Rows { ref rows, truncated: true, .. } if rows.len() == 2), "{some:?}");
    let none = family.try_ask("SELECT ?a { ?a x:knows ?b }", &within(10));
    assert!(matches!(none, Err(QueryError::AnswerTooLarge { max: 10 })), "one row is too much: {none:?}");
    let graph = family.try_ask("CONSTRUCT WHERE { ?a x:knows ?b }", &within(130));
    assert!(matches!(graph, Err(QueryError::AnswerTooLarge { .. })), "{graph:?}");
    let quads = family.view.matching("w", &QuadPattern::default(), &NoOverlay, &within(130));
    assert!(matches!(quads, Err(QueryError::AnswerTooLarge { .. })), "{quads:?}");
}

#[test]
fn a_cancelled_query_says_so() {
    for sparql in [
        "SELECT * { ?s ?p ?o }",
        "ASK { ?s ?p ?o FILTER NOT EXISTS { ?o ?p ?s } }",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
    ] {
        let limits = Bounds::default();
        limits.cancellation.cancel();
        assert!(matches!(family().try_ask(sparql, &limits), Err(QueryError::Cancelled)), "{sparql}");
    }
}

#[test]
fn refusals_say_why() {
    let family = family();
    assert!(family.error("INSERT DATA { x:a x:b x:c }").starts_with("SPARQL Update is refused"));
    assert!(family.error("SELECT * { ?s ?p ?o SERVICE SILENT <http://there> { ?s ?p ?o } }").contains("http://there"));
    let hidden = "SELECT * { ?s ?p ?o FILTER NOT EXISTS { SERVICE ?s { ?s ?p ?o } } }";
    assert!(family.error(hidden).starts_with("SERVICE ?s is refused"));
    let unfinished = family.error("SELECT * {\n ?s ?p");
    assert!(unfinished.contains("error at 4:"), "{unfinished}");
    assert!(
        family.view.query("w", "", &NoOverlay, &Bounds::default()).is_err_and(|e| matches!(e, QueryError::Syntax(_)))
    );
}

/// Each of these would overflow the stack of an ordinary thread, or plan for minutes.
#[test]
fn monstrous_queries_are_refused_not_fatal() {
    let family = family();
    let nested =
        |open: &str, middle: &str, close: &str| format!("{}{middle}{}", open.repeat(5_000), close.repeat(5_000));
    let monsters = [
        format!("SELECT * {{ ?s ?p ?o FILTER({}) }}", nested("(", "1", ")")),
        format!("SELECT * {}", nested("{", "", "}")),
        format!("SELECT * {{ ?s ?p ?o FILTER({}) }}", nested("!", "true", "")),
        format!("SELECT * {{ ?s ?p ?o FILTER(1 {}) }}", "+1".repeat(5_000)),
        format!("SELECT * {{ ?s {} ?o }}", ["x:p"; 1_000].join("/")),
        format!("SELECT * {{ {} }}", "?s ?p ?o . ".repeat(1_000)),
        format!("SELECT * {{ {} {} }}", "OPTIONAL { ?s ?p ?o ".repeat(500), "}".repeat(500)),
        format!("SELECT * {{ {} {} }}", "FILTER EXISTS { ?s ?p ?o ".repeat(199), "}".repeat(199)),
        format!("ASK {{}} #{}", " ".repeat(100_000)),
    ];
    for monster in monsters {
        let answer = family.try_ask(&monster, &Bounds::default());
        let refused =
            matches!(answer, Err(QueryError::TooComplex { .. } | QueryError::TooLong { .. } | QueryError::Syntax(_)));
        let harmless = matches!(answer, Ok(Answer::Rows { ref rows, .. }) if rows.len() <= 5);
        assert!(refused || harmless, "{} …: {answer:?}", &monster[..60]);
    }
}

#[test]
fn answers_are_written_in_the_w3c_formats() {
    let family = family();
    let ages = family.ask("SELECT ?a ?n ?missing { ?a x:age ?n } ORDER BY ?n");
    assert_eq!(
        answer::to_json(&ages),
        r#"{"head":{"vars":["a","n","missing"]},"results":{"bindings":[{"a":{"type":"uri","value":"urn:x:ann"},"n":{"type":"literal","value":"41"}},{"a":{"type":"uri","value":"urn:x:bob"},"n":{"type":"literal","value":"7"}}]}}"#
    );
    assert_eq!(answer::to_csv(&ages), "a,n,missing\r\nurn:x:ann,41,\r\nurn:x:bob,7,\r\n");
    assert_eq!(answer::to_json(&Answer::Truth(true)), r#"{"head":{},"boolean":true}"#);
}

#[test]
fn graphs_are_written_as_one_safe_line_per_triple() {
    let triple = |s: Term, o: Term| Triple { s, p: iri(&format!("{PROV}wasDerivedFrom")), o };
    let graph = Answer::Constructed(vec![
        triple(iri(&format!("{TG}a")), Term::literal("two\nlines")),
        triple(iri("urn:bad> .\n<urn:b"), Term::Blank { id: "no good".into() }),
    ]);
    let text = answer::to_json(&graph);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], r#"<https://trustgraph.ai/ns/a> <http://www.w3.org/ns/prov#wasDerivedFrom> "two\nlines" ."#);
    assert!(lines[1].starts_with(r"<urn:bad\u003E\u0020.\u000A\u003Curn:b> "), "{}", lines[1]);
    assert_eq!(lines.len(), 2);
}
