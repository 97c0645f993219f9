//! What a batch of quads writes into the trees: those of runs, or those that were loaded.
//!
//! Statements about the nodes of a session are made by its own run only. So the dictionary also knows which nodes each
//! session has, and a run that is projected anew replaces what it said before: after late records, or when something
//! was taken out of them.

use super::RunQuads;
use super::ViewError;
use super::order::{EncodedQuad, Order, quad_key};
use super::overlay::AGENT_PREFIX;
use super::reader::{TermKey, ViewReader, term_key};
use super::recent_terms::RecentTerms;
use super::term_id::{TERM_ID_BYTES, TermId, WorkspaceId, canonical_bytes, canonical_iri, read_term};
use super::trees::{Snapshot, Writing};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use trellis_domain::rdf::{Quad, Term};
use trellis_provenance::iri;

/// What is added to one place, and what the runs of a workspace take away.
pub(super) struct Additions<'r> {
    workspace: WorkspaceId,
    quads: Vec<EncodedQuad>,
    terms: Vec<(TermKey, Vec<u8>)>,
    /// The nodes of each session.
    sessions: BTreeMap<&'r str, Vec<TermId>>,
    /// Ids of IRIs that this batch has met: most occur many times.
    known: HashMap<&'r str, TermId>,
    stale: BTreeSet<EncodedQuad>,
    stale_terms: Vec<TermKey>,
}

impl<'r> Additions<'r> {
    pub(super) fn of(
        workspace: &str,
        runs: impl Iterator<Item = &'r RunQuads>,
        recent_terms: &mut RecentTerms<TermKey>,
    ) -> Self {
        Self::to(WorkspaceId::of(workspace), runs.flat_map(|run| &run.quads), recent_terms)
    }

    pub(super) fn to(
        workspace: WorkspaceId,
        quads: impl Iterator<Item = &'r Quad>,
        recent_terms: &mut RecentTerms<TermKey>,
    ) -> Self {
        let mut additions = Self {
            workspace,
            quads: Vec::new(),
            terms: Vec::new(),
            sessions: BTreeMap::new(),
            known: HashMap::new(),
            stale: BTreeSet::new(),
            stale_terms: Vec::new(),
        };
        for quad in quads {
            additions.add(quad, recent_terms);
        }
        additions.quads.sort_unstable();
        additions.quads.dedup();
        for nodes in additions.sessions.values_mut() {
            nodes.sort_unstable();
            nodes.dedup();
        }
        additions
    }

    fn add(&mut self, quad: &'r Quad, recent_terms: &mut RecentTerms<TermKey>) {
        let s = self.node(&quad.s, recent_terms);
        let encoded = EncodedQuad {
            s,
            p: self.id(&quad.p, recent_terms),
            o: self.id(&quad.o, recent_terms),
            g: match quad.g.as_deref() {
                None | Some("") => TermId::DEFAULT_GRAPH,
                Some(graph) => self.iri(graph, recent_terms),
            },
        };
        self.quads.push(encoded);
    }

    /// The id of a subject, which is noted under its session.
    fn node(&mut self, term: &'r Term, recent_terms: &mut RecentTerms<TermKey>) -> TermId {
        let id = self.id(term, recent_terms);
        if let Some(session) = term.as_iri().and_then(iri::session_of) {
            let nodes = self.sessions.entry(session).or_default();
            // Quads of a run are sorted, so those of a node come together.
            if nodes.last() != Some(&id) {
                nodes.push(id);
            }
        }
        id
    }

    fn id(&mut self, term: &'r Term, recent_terms: &mut RecentTerms<TermKey>) -> TermId {
        match term {
            Term::Iri { iri } => self.iri(iri, recent_terms),
            Term::Literal { .. } | Term::Blank { .. } | Term::Quoted { .. } => {
                self.note(canonical_bytes(term), recent_terms)
            }
        }
    }

    fn iri(&mut self, iri: &'r str, recent_terms: &mut RecentTerms<TermKey>) -> TermId {
        if let Some(id) = self.known.get(iri) {
            return *id;
        }
        let id = self.note(canonical_iri(iri), recent_terms);
        self.known.insert(iri, id);
        id
    }

    fn note(&mut self, canonical: Vec<u8>, recent_terms: &mut RecentTerms<TermKey>) -> TermId {
        let id = TermId::of(&canonical);
        let key = term_key(self.workspace, id);
        if !recent_terms.recall(key) {
            self.terms.push((key, canonical));
        }
        id
    }

    pub(super) fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// Leaves out what is there already, with its terms.
    pub(super) fn keep_new(&mut self, snapshot: &Snapshot) -> Result<(), ViewError> {
        let mut new = Vec::with_capacity(self.quads.len());
        for quad in &self.quads {
            if !snapshot.has_quad(&quad_key(self.workspace, Order::Spog, quad))? {
                new.push(*quad);
            }
        }
        if new.len() < self.quads.len() {
            let used: HashSet<TermId> = new.iter().flat_map(|quad| [quad.s, quad.p, quad.o, quad.g]).collect();
            self.terms.retain(|(_, canonical)| used.contains(&TermId::of(canonical)));
            self.quads = new;
        }
        Ok(())
    }

    /// All quads, each once.
    pub(super) fn quads(&self) -> &[EncodedQuad] {
        &self.quads
    }

    /// The terms that were not remembered.
    pub(super) fn terms(&self) -> impl Iterator<Item = TermKey> {
        self.terms.iter().map(|(key, _)| *key)
    }

    /// The nodes of all sessions.
    pub(super) fn nodes(&self) -> impl Iterator<Item = TermId> {
        self.sessions.values().flatten().copied()
    }

    /// What the dictionary knows of sessions.
    pub(super) fn session_rows(&self) -> impl Iterator<Item = (TermKey, Vec<u8>)> {
        let row = |nodes: &Vec<TermId>| nodes.iter().flat_map(|id| id.to_bytes()).collect();
        self.sessions.iter().map(move |(session, nodes)| (session_key(self.workspace, session), row(nodes)))
    }

    /// Finds what these sessions said before and do not say any more.
    pub(super) fn find_stale(&mut self, reader: &ViewReader) -> Result<(), ViewError> {
        let mut before = Vec::new();
        for session in self.sessions.keys() {
            let known = reader.dictionary(&session_key(self.workspace, session))?;
            for id in known.iter().flat_map(|row| nodes_in(row)) {
                before.extend(reader.about(id).collect::<Result<Vec<_>, _>>()?);
            }
        }
        let said = |quad: &EncodedQuad| self.quads.binary_search(quad).is_ok();
        self.stale = before.into_iter().filter(|quad| !said(quad)).collect();
        // Texts that nobody says any more go with what said them.
        let objects: BTreeSet<TermId> = self.stale.iter().map(|quad| quad.o).collect();
        let said: BTreeSet<TermId> = self.quads.iter().map(|quad| quad.o).filter(|o| objects.contains(o)).collect();
        for object in objects.difference(&said) {
            let term = read_term(&reader.canonical(*object)?).ok_or(ViewError::TermDamaged { id: *object })?;
            let is_text = matches!(term, Term::Literal { .. });
            let mut others =
                reader.naming(*object).filter(|quad| !matches!(quad, Ok(quad) if self.stale.contains(quad)));
            if is_text && others.next().transpose()?.is_none() {
                self.stale_terms.push(term_key(self.workspace, *object));
            }
        }
        Ok(())
    }

    /// Sorted, because a tree takes neighbours faster. Returns the keys of the terms that were written, and of those
    /// that were removed.
    pub(super) fn write(mut self, writing: &Writing<'_>) -> (Vec<TermKey>, Vec<TermKey>) {
        self.terms.sort_unstable_by_key(|(key, _)| *key);
        self.terms.dedup_by(|(a, _), (b, _)| a == b);
        for key in &self.stale_terms {
            writing.remove_term(key);
        }
        for (key, canonical) in &self.terms {
            writing.put_term(key, canonical);
        }
        for (key, row) in self.session_rows() {
            writing.put_term(&key, &row);
        }
        for quad in &self.stale {
            for order in Order::ALL {
                writing.remove_quad(&quad_key(self.workspace, order, quad));
            }
        }
        for order in Order::ALL {
            let kept = self.quads.iter().filter(|quad| order.keeps(quad));
            let mut ids: Vec<[TermId; 4]> = kept.map(|quad| order.arrange(quad)).collect();
            ids.sort_unstable();
            for ids in ids {
                writing.put_quad(&quad_key(self.workspace, order, &order.restore(ids)), b"");
            }
        }
        (self.terms.into_iter().map(|(key, _)| key).collect(), self.stale_terms)
    }
}

/// The nodes that a session's row tells of.
pub(super) fn nodes_in(row: &[u8]) -> impl Iterator<Item = TermId> {
    let id = |id: &[u8]| TermId::from_bytes(id.try_into().expect("a chunk has the size of an id"));
    row.chunks_exact(TERM_ID_BYTES).map(id)
}

/// Where the dictionary has the nodes of a session. No term's bytes begin like this.
pub(super) fn session_key(workspace: WorkspaceId, session: &str) -> TermKey {
    term_key(workspace, TermId::of(format!("s{AGENT_PREFIX}{session}").as_bytes()))
}
