//! How the view at the endpoint follows the store.
//!
//! One process at a time takes finished runs in. It says so in the mark and gives signs of life there; whoever sees none
//! for a while, by his own clock, goes on in its place. Writing a run twice changes nothing, so two that believe it is
//! their turn do no harm.

use crate::error::RemoteError;
use crate::graph::RemoteGraph;
use crate::mark::{self, Found, Mark};
use crate::newer::quads_of;
use crate::terms::write_triple;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::ports::{GraphError, JournalError};
use trellis_provenance::PROJECTION;
use trellis_queries::following::{self, BUSY, Step};

/// Runs that are taken in before the mark says so.
const TOGETHER: usize = 32;
/// Bytes of N-Triples in one request.
const BATCH: usize = 2 << 20;
/// Graphs that are removed in one request, and pages of names that are asked for.
const REMOVED_TOGETHER: usize = 500;
/// A process that gave no sign of life for so long does not take runs in any more.
const LIFE: Duration = Duration::from_secs(30);
/// How often it gives one.
const BEAT: Duration = Duration::from_secs(5);

impl RemoteGraph {
    /// Takes finished runs into the view until it has caught up with the store. How many.
    pub async fn catch_up(&self) -> Result<usize, GraphError> {
        following::catch_up(|| self.step()).await
    }

    /// Takes runs into the view as they finish, until it is told to stop. Every process may do this. While the endpoint is
    /// gone, nothing is lost: what it lacks is taken in when it is back.
    pub async fn keep_up(&self, stop: watch::Receiver<bool>) {
        following::keep_up(stop, &self.address(), || self.step()).await;
    }

    /// How many finished runs the view lacks.
    pub async fn lag(&self) -> Result<usize, GraphError> {
        let place = match self.mark().await? {
            Found::One(mark) if !mark.clearing && self.is_ours(&mark).await? => mark.place,
            Found::One(_) | Found::Nothing | Found::Broken => 0,
        };
        let (mut runs, mut behind) = (std::collections::BTreeSet::new(), place);
        loop {
            let page = self.0.followed.ended.ended(behind, usize::MAX).await?;
            runs.extend(page.runs);
            if page.next == behind {
                return Ok(runs.len());
            }
            behind = page.next;
        }
    }

    /// Forgets the view and derives it anew. How many runs are in it.
    pub async fn rebuild(&self) -> Result<usize, GraphError> {
        loop {
            let found = self.mark().await?;
            if self.may_write(&found) && self.begin_anew(found).await?.is_some() {
                return self.catch_up().await;
            }
            tokio::time::sleep(BUSY).await;
        }
    }

    /// Projects a run anew, after something was taken out of its records: what it said before goes from the endpoint.
    pub async fn renew(&self, workspace: &Workspace, run: &RunId) -> Result<(), GraphError> {
        self.write(workspace, run).await
    }

    async fn step(&self) -> Result<Step, GraphError> {
        let found = self.mark().await?;
        // A newer program is here as well, and keeps the view.
        if matches!(&found, Found::One(mark) if mark.projection > PROJECTION) {
            return Ok(Step::CaughtUp);
        }
        let followed = match &found {
            Found::One(mark) if mark.projection == PROJECTION && !mark.clearing => self.is_ours(mark).await?,
            Found::One(_) | Found::Nothing | Found::Broken => false,
        };
        let place = match &found {
            Found::One(mark) if followed => mark.place,
            Found::One(_) | Found::Nothing | Found::Broken => 0,
        };
        let page = self.0.followed.ended.ended(place, TOGETHER).await?;
        if followed && page.next == place {
            return Ok(Step::CaughtUp);
        }
        if !self.may_write(&found) {
            return Ok(Step::Elsewhere);
        }
        let mut mark = match found {
            Found::One(mark) if followed => {
                let claimed = self.mine(&mark);
                if !self.swap(&Found::One(mark), &claimed).await? {
                    return Ok(Step::Elsewhere);
                }
                claimed
            }
            other @ (Found::One(_) | Found::Nothing | Found::Broken) => {
                if matches!(other, Found::One(_) | Found::Broken) {
                    tracing::warn!(
                        endpoint = self.address(),
                        "the view at the endpoint is of another history; it is derived anew"
                    );
                }
                match self.begin_anew(other).await? {
                    Some(mark) => mark,
                    None => return Ok(Step::Elsewhere),
                }
            }
        };
        let mut last_beat = Instant::now();
        for (workspace, run) in &page.runs {
            if last_beat.elapsed() > BEAT {
                let next = self.mine(&mark);
                if !self.swap(&Found::One(mark), &next).await? {
                    return Ok(Step::Elsewhere);
                }
                (mark, last_beat) = (next, Instant::now());
            }
            self.write(workspace, run).await?;
        }
        let identity = self.0.followed.ended.identity(page.next).await?;
        let moved = Mark { place: page.next, identity, ..self.mine(&mark) };
        let is_mine = self.swap(&Found::One(mark), &moved).await?;
        Ok(if is_mine { Step::Moved(page.runs.len()) } else { Step::Elsewhere })
    }

    /// Whether it is for this process to write the view: it did so before, or whoever did gives no sign of life.
    fn may_write(&self, found: &Found) -> bool {
        match found {
            Found::One(mark) if mark.holder != self.0.process => self.0.other.lock().is_silent(mark, Instant::now()),
            Found::One(_) | Found::Nothing | Found::Broken => true,
        }
    }

    /// The same mark with a sign of life of this process.
    fn mine(&self, mark: &Mark) -> Mark {
        Mark { holder: self.0.process.clone(), beat: mark.beat + 1, ..mark.clone() }
    }

    async fn swap(&self, old: &Found, new: &Mark) -> Result<bool, RemoteError> {
        mark::swap(&self.0.client, &self.0.names.mark(), old, new).await
    }

    /// Removes all graphs of the store, and begins at its beginning. None if another process was faster.
    async fn begin_anew(&self, found: Found) -> Result<Option<Mark>, GraphError> {
        let (generation, beat) = match &found {
            Found::One(mark) => (mark.generation + 1, mark.beat + 1),
            Found::Nothing | Found::Broken => (1, 1),
        };
        let mut clearing = Mark {
            place: 0,
            identity: None,
            projection: PROJECTION,
            generation,
            clearing: true,
            holder: self.0.process.clone(),
            beat,
        };
        if !self.swap(&found, &clearing).await? {
            return Ok(None);
        }
        loop {
            let names = self.some_graphs().await?;
            if names.is_empty() {
                break;
            }
            let drops: Vec<_> = names.iter().map(|name| format!("DROP SILENT GRAPH <{name}>")).collect();
            self.0.client.update(drops.join(" ; ")).await?;
            let next = self.mine(&clearing);
            if !self.swap(&Found::One(clearing), &next).await? {
                return Ok(None);
            }
            clearing = next;
        }
        let begun = Mark { clearing: false, ..self.mine(&clearing) };
        Ok(self.swap(&Found::One(clearing), &begun).await?.then_some(begun))
    }

    /// Names of graphs of the store that have something.
    async fn some_graphs(&self) -> Result<Vec<String>, RemoteError> {
        let begin = self.0.names.all();
        let query = format!(
            "SELECT DISTINCT ?g WHERE {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(STRSTARTS(STR(?g), \"{begin}\")) }} \
             LIMIT {REMOVED_TOGETHER}"
        );
        let rows = self.0.client.select(&query, ["g"]).await?;
        let name = |[graph]: [Option<Term>; 1]| {
            let iri = graph.as_ref().and_then(Term::as_iri).filter(|iri| iri.starts_with(&begin));
            // Names of ours need no escapes; what does is not ours.
            let iri = iri.filter(|iri| !iri.contains(['<', '>', '"', ' ', '\\', '{', '}']));
            iri.map(str::to_owned).ok_or_else(|| self.0.client.nonsense("a graph was named that was not asked for"))
        };
        rows.into_iter().map(name).collect()
    }

    /// Makes the graph of a run say what the run says, and nothing else.
    async fn write(&self, workspace: &Workspace, run: &RunId) -> Result<(), GraphError> {
        let quads = match quads_of(&self.0.followed, workspace, run).await {
            Ok(quads) => quads,
            // One that cannot be read must not keep all others out of the graph.
            Err(error @ JournalError::Damaged(_)) => {
                tracing::error!(%error, %run, "a run could not be projected");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let graph = self.0.names.of_run(workspace, run);
        let mut batches = batches(&quads, BATCH).into_iter();
        self.0.client.put(&graph, batches.next().unwrap_or_default()).await?;
        for batch in batches {
            self.0.client.add(&graph, batch).await?;
        }
        Ok(())
    }
}

/// The sign of life of another process that was seen last, and since when.
#[derive(Debug, Default)]
pub(crate) struct OtherProcess(Option<(Mark, Instant)>);

impl OtherProcess {
    /// Whether its mark has stayed the same for longer than a process lives without a sign.
    fn is_silent(&mut self, mark: &Mark, now: Instant) -> bool {
        match &self.0 {
            Some((seen, since)) if seen == mark => now.duration_since(*since) > LIFE,
            Some(_) | None => {
                self.0 = Some((mark.clone(), now));
                false
            }
        }
    }
}

/// Quads as N-Triples, in parts that have at least one of them and end behind so many bytes.
fn batches(quads: &[Quad], bytes: usize) -> Vec<String> {
    let mut batches = vec![String::new()];
    for quad in quads {
        if batches.last().is_some_and(|batch| batch.len() >= bytes) {
            batches.push(String::new());
        }
        if let Some(batch) = batches.last_mut() {
            write_triple(batch, quad);
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_followed_by_another_once_it_gives_no_sign_of_life() {
        let mark = |beat| Mark {
            place: 1,
            identity: None,
            projection: PROJECTION,
            generation: 1,
            clearing: false,
            holder: "other".to_owned(),
            beat,
        };
        let (mut other, began) = (OtherProcess::default(), Instant::now());
        let mut is_silent = |beat, seconds| other.is_silent(&mark(beat), began + Duration::from_secs(seconds));
        assert!(!is_silent(1, 0) && !is_silent(1, 29));
        assert!(!is_silent(2, 31), "it lives");
        assert!(!is_silent(2, 60) && is_silent(2, 62));
    }

    #[test]
    fn a_long_run_is_written_in_parts() {
        let quad = |n: usize| Quad {
            s: Term::iri(format!("urn:s{n}")),
            p: Term::iri("urn:p"),
            o: Term::literal("o"),
            g: None,
        };
        let quads: Vec<_> = (0..5).map(quad).collect();
        let parts = batches(&quads, 30);
        assert_eq!(parts.iter().map(|part| part.lines().count()).collect::<Vec<_>>(), [2, 2, 1]);
        assert_eq!(parts.concat().lines().next(), Some("<urn:s0> <urn:p> \"o\" ."));
        assert_eq!(batches(&[], 30), [String::new()]);
    }
}
