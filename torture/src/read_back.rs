//! Everything that a folder holds, read the way users read it: one line for each thing, with the hash of its content.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fmt::{self, Debug, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use trellis_domain::hash::Hashing;
use trellis_domain::rdf::Term;
use trellis_domain::{SessionId, Timestamp, Workspace};
use trellis_orchestrator::ports::{
    Config, Graph, Journal, Library, Listing, Log, QuadPattern, RealWorld, RunFilter, World, all_due_turns,
};
use trellis_store::{Holder, Store};

use crate::Programs;
use crate::program::finish;

/// Reads the folder in a process of its own: whatever is in it, this one goes on.
pub fn read_back(programs: &Programs, folder: &Path) -> Result<BTreeSet<String>> {
    let mut command = Command::new(&programs.torture);
    command.arg("read").arg(folder);
    let ended = finish(command)?;
    ensure!(ended.code() == Some(0), "the folder cannot be read back: {ended}");
    Ok(ended.said.lines().map(str::to_owned).collect())
}

/// What is different, in a few words; none if nothing is.
pub fn difference(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Option<String> {
    let (mut lost, mut new) = (before.difference(after).peekable(), after.difference(before).peekable());
    if lost.peek().is_none() && new.peek().is_none() {
        return None;
    }
    let some = |lines: &mut dyn Iterator<Item = &String>| lines.take(3).cloned().collect::<Vec<_>>().join("; ");
    Some(format!("not as before: {} | now: {}", some(&mut lost), some(&mut new)))
}

/// All lines of a folder.
pub async fn lines(folder: &Path) -> Result<Vec<String>> {
    let world: Arc<dyn World> = Arc::new(RealWorld);
    let holder = Holder { pid: std::process::id(), command: "torture".to_owned(), url: None };
    let store = Store::open(folder, &holder, world)?;
    let mut lines = Lines(Vec::new());
    let mut workspaces = store.config.workspaces().await?;
    workspaces.extend((!workspaces.contains(&Workspace::default())).then(Workspace::default));
    for workspace in &workspaces {
        lines.configuration(&store, workspace).await?;
        let properties = lines.runs(&store, workspace).await?;
        lines.documents(&store, workspace).await?;
        lines.graph(&store, workspace, properties).await?;
    }
    lines.log(&store).await?;
    // Beyond every time that a turn may wait for.
    for turn in all_due_turns(&*store.journal, Timestamp::from_micros(i64::MAX)).await? {
        lines.add("open turn", &format!("{:?}", turn.key), &());
    }
    for aside in store.set_aside()? {
        lines.add("set aside", &aside.run.to_string(), &aside);
    }
    Ok(lines.0)
}

/// A hash of what is written.
struct Hashed(Hashing);

impl fmt::Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

struct Lines(Vec<String>);

impl Lines {
    fn add(&mut self, kind: &str, name: &str, content: &impl Debug) {
        let mut hashed = Hashed(Hashing::default());
        write!(hashed, "{content:?}").expect("a hash takes whatever is written to it");
        let hash = hashed.0.finish().to_string();
        let line = format!("{kind} {name} {}", &hash[..16]);
        self.0.push(line.replace('\n', " "));
    }

    async fn configuration(&mut self, store: &Store, workspace: &Workspace) -> Result<()> {
        let (version, items) = store.config.all(workspace).await?;
        self.add("configuration", workspace.as_str(), &version);
        for item in items {
            let history = store.config.history(workspace, &item.kind, &item.key).await?;
            self.add("item", &format!("{workspace} {}/{}", item.kind, item.key), &(&item.value, history));
        }
        for version in 1..=version {
            let by = store.config.configured(workspace, version).await?;
            self.add("version", &format!("{workspace} {version}"), &by);
        }
        Ok(())
    }

    /// Also gives the properties that the runs' graphs use.
    async fn runs(&mut self, store: &Store, workspace: &Workspace) -> Result<BTreeSet<String>> {
        let (mut snapshots, mut properties) = (BTreeSet::new(), BTreeSet::new());
        let mut cursor = None;
        loop {
            let page = store.journal.runs(workspace, &RunFilter::default(), cursor.as_deref(), 500).await?;
            ensure!(page.unreadable.is_empty(), "unreadable runs: {:?}", page.unreadable);
            for (number, run) in page.runs.into_iter().enumerate() {
                let records = store.journal.events(workspace, &run.run, 0, usize::MAX).await?;
                let sessions: BTreeSet<SessionId> =
                    records.iter().map(|record| record.header.session.clone()).collect();
                for session in sessions {
                    let log = store.journal.load(workspace, &session).await?;
                    self.add("session", &format!("{workspace} {session}"), &log);
                }
                snapshots.extend(records.iter().map(|record| record.header.config));
                self.add("run", &format!("{workspace} {}", run.run), &(&run, records));
                // It follows from the records, so a few tell which properties there are.
                if number.is_multiple_of(40) {
                    let quads = store.graph.run(workspace, &run.run).await?;
                    properties.extend(quads.iter().filter_map(|quad| Some(quad.p.as_iri()?.to_owned())));
                    self.add("graph", &format!("{workspace} {}", run.run), &quads);
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        for hash in snapshots {
            self.add("snapshot", &hash.to_string(), &store.config.snapshot(workspace, hash).await?);
        }
        Ok(properties)
    }

    async fn documents(&mut self, store: &Store, workspace: &Workspace) -> Result<()> {
        for document in store.library.list(workspace, &Listing::All).await? {
            let content = store.library.read(workspace, &document, 0..document.size).await?;
            self.add("document", &format!("{workspace} {}", document.metadata.id), &(&document, content));
        }
        self.add("uploads", workspace.as_str(), &store.library.uploads(workspace).await?);
        self.add("processing", workspace.as_str(), &store.library.processings(workspace).await?);
        Ok(())
    }

    /// What the view says, which was derived from the records once. All at once would be more than it gives.
    async fn graph(&mut self, store: &Store, workspace: &Workspace, properties: BTreeSet<String>) -> Result<()> {
        store.graph.catch_up()?;
        for property in properties {
            let pattern = QuadPattern { p: Some(Term::iri(&property)), ..QuadPattern::default() };
            let found = store.graph.matching(workspace, &pattern, usize::MAX).await?;
            ensure!(found.missing_runs == 0, "{} runs are not in the view", found.missing_runs);
            let mut quads = found.found;
            quads.sort_unstable();
            self.add("quads", &format!("{workspace} {property}"), &quads);
        }
        Ok(())
    }

    async fn log(&mut self, store: &Store) -> Result<()> {
        let mut next = 0;
        loop {
            let entries = store.log.entries(next, 1000).await?;
            let Some(last) = entries.last() else { break };
            next = last.number + 1;
            let texts = entries.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
            self.add("entries until", &next.to_string(), &texts);
        }
        let checkpoint = store.log.checkpoint().await?;
        let root = checkpoint.lines().nth(2).context("a checkpoint has a root")?.to_owned();
        self.add("log", &next.to_string(), &(root, store.log.public_key()));
        Ok(())
    }
}
