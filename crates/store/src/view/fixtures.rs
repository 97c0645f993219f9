//! Runs as agents leave them, for tests: about 94 quads each.

use trellis_domain::rdf::{Quad, Term};

pub(crate) const PROV: &str = "http://www.w3.org/ns/prov#";
pub(crate) const TG: &str = "https://trustgraph.ai/ns/";
pub(crate) const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
pub(crate) const RDFS_LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
pub(crate) const RETRIEVAL: &str = "urn:graph:retrieval";

const ITERATIONS: usize = 3;
/// So many runs share a correlation id.
pub(crate) const RUNS_PER_CORRELATION: usize = 100;

pub(crate) fn session_id(run: usize) -> String {
    format!("{run:08x}-0000-4000-8000-{:012x}", run.wrapping_mul(0x9E37_79B9))
}

pub(crate) fn session_iri(run: usize) -> String {
    format!("urn:trustgraph:agent:{}", session_id(run))
}

pub(crate) fn correlation_id(run: usize) -> String {
    format!("correlation-{}", run / RUNS_PER_CORRELATION)
}

pub(crate) fn iri(text: &str) -> Term {
    Term::iri(text)
}

pub(crate) fn quad(s: &str, p: &str, o: Term, g: Option<&str>) -> Quad {
    Quad { s: iri(s), p: iri(p), o, g: g.map(str::to_owned) }
}

/// A run of three iterations.
pub(crate) fn trace(run: usize) -> Vec<Quad> {
    let mut trace = Trace { run, quads: Vec::new() };
    let session = session_iri(run);
    let decision = format!("{session}/pattern-decision");
    trace.question(&session);
    trace.node(&decision, &["PatternDecision"], "Pattern: react", Some(&session));
    trace.says(&decision, "pattern", "react");
    trace.says(&decision, "taskType", "general");
    let mut last = decision;
    for n in 1..=ITERATIONS {
        last = trace.iteration(&session, n, &last);
    }
    let conclusion = format!("{session}/final");
    trace.node(&conclusion, &["Conclusion", "Answer"], "Conclusion", Some(&last));
    trace.refers(&conclusion, "document", &format!("{session}/answer"));
    trace.says(&conclusion, "terminationReason", "final-answer");
    trace.quads
}

struct Trace {
    run: usize,
    quads: Vec<Quad>,
}

impl Trace {
    fn question(&mut self, session: &str) {
        self.node(session, &["Question", "AgentQuestion"], "Agent Question", None);
        let started = Term::literal(format!("2026-04-13T15:{:02}:{:02}Z", self.run / 60 % 60, self.run % 60));
        self.add(session, &format!("{PROV}startedAtTime"), started);
        self.says(session, "query", &format!("What does source {} say about topic {}?", self.run, self.run % 50));
        self.says(session, "correlationId", &correlation_id(self.run));
    }

    /// Returns the observation, from which the next step derives.
    fn iteration(&mut self, session: &str, n: usize, previous: &str) -> String {
        let iteration = format!("{session}/i{n}");
        let thought = format!("{iteration}/thought");
        let observation = format!("{iteration}/observation");
        self.node(&iteration, &["Analysis", "ToolUse"], "Analysis: knowledge-query", Some(previous));
        self.says(&iteration, "action", "knowledge-query");
        self.says(&iteration, "arguments", &format!("{{\"question\":\"part {n} of {}\"}}", self.run));
        self.says(&iteration, "stepNumber", &n.to_string());
        self.says(&iteration, "llmDurationMs", &(900 + self.run % 700).to_string());
        self.says(&iteration, "inToken", &(1200 + self.run % 300).to_string());
        self.says(&iteration, "outToken", &(80 + self.run % 90).to_string());
        self.says(&iteration, "llmModel", "gpt-oss:20b");
        self.refers(&iteration, "thought", &thought);
        self.says(&iteration, "toolCandidate", "knowledge-query");
        self.says(&iteration, "toolCandidate", "document-query");
        self.node(&thought, &["Reflection", "Thought"], "Thought", Some(&iteration));
        self.refers(&thought, "document", &thought);
        self.node(&observation, &["Observation"], "Observation", Some(&iteration));
        self.refers(&observation, "document", &observation);
        self.says(&observation, "toolDurationMs", &(40 + self.run % 200).to_string());
        observation
    }

    fn node(&mut self, node: &str, classes: &[&str], label: &str, derived_from: Option<&str>) {
        self.add(node, RDF_TYPE, iri(&format!("{PROV}Entity")));
        for class in classes {
            self.add(node, RDF_TYPE, iri(&format!("{TG}{class}")));
        }
        self.add(node, RDFS_LABEL, Term::literal(label));
        if let Some(source) = derived_from {
            self.add(node, &format!("{PROV}wasDerivedFrom"), iri(source));
        }
    }

    fn says(&mut self, node: &str, property: &str, value: &str) {
        self.add(node, &format!("{TG}{property}"), Term::literal(value));
    }

    fn refers(&mut self, node: &str, property: &str, target: &str) {
        self.add(node, &format!("{TG}{property}"), iri(target));
    }

    fn add(&mut self, s: &str, p: &str, o: Term) {
        self.quads.push(quad(s, p, o, Some(RETRIEVAL)));
    }
}
