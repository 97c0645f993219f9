//! What loading knowledge costs against what the engine needs for the same keys, and how fast it is found again.

use crate::machine;
use anyhow::{Context, Result, ensure};
use lsm_tree::compaction::Leveled;
use lsm_tree::config::{CompressionPolicy, PartitioningPolicy};
use lsm_tree::{AbstractTree, CompressionType, Config, SequenceNumberCounter};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use trellis_domain::rdf::Term;
use trellis_domain::{Caller, Collection, Workspace};
use trellis_orchestrator::knowledge::{NewSource, check, load};
use trellis_orchestrator::ports::{
    Answer, Asking, Graph, Knowledge, KnowledgePlace, QuadPattern, QueryLimits, RealWorld,
};
use trellis_rdf::{Format, Origin, Statements};
use trellis_store::{Holder, Program, QuerySettings, Store};

/// What this program is told when it is to evaluate a query.
pub(crate) const QUERY_WORKER: &str = "query-worker";

const TRIPLES: usize = 1_000_000;
/// Triples about one entity.
const EACH: usize = 8;
const LOOKS: usize = 2_000;
const QUERIES: usize = 200;

/// As many triples as the second argument says.
pub(crate) async fn run() -> Result<()> {
    let count = std::env::args().nth(2).map_or(Ok(TRIPLES), |count| count.parse()).context("how many triples?")?;
    let folder = TempDir::new()?;
    let file = folder.path().join("triples.nt");
    generate(&file, count)?;
    let raw = raw(&folder.path().join("raw"), count)?;
    let store = Store::open(&folder.path().join("data"), &holder(), Arc::new(RealWorld))?;
    let program =
        Program { path: std::env::current_exe()?, arguments: vec![QUERY_WORKER.into()], variables: Vec::new() };
    store.graph.evaluate_with(program, QuerySettings { spares: 2, ..QuerySettings::default() });
    let begun = Instant::now();
    let new = load_file(&store, &file).await?;
    let ours = begun.elapsed();
    ensure!(new == count as u64, "{new} triples are new, not {count}");
    let (_, peak) = machine::memory();
    let begun = Instant::now();
    ensure!(load_file(&store, &file).await? == 0, "the same file changes nothing");
    let again = begun.elapsed();
    println!(
        "load          {count} triples in {:.1} s ({:.0} a second), {:.1} times the engine alone ({:.1} s, target 3); \
         again {:.1} s; {peak} MB at most",
        ours.as_secs_f64(),
        count as f64 / ours.as_secs_f64(),
        ours.as_secs_f64() / raw.as_secs_f64(),
        raw.as_secs_f64(),
        again.as_secs_f64(),
    );
    let (looks, queries) = (looks(&store, count / EACH).await?, queries(&store, count / EACH).await?);
    println!("              an entity and what points at it: {looks} by pattern, {queries} by SPARQL (target 20)");
    Ok(())
}

fn holder() -> Holder {
    Holder { pid: std::process::id(), command: "bench".to_owned(), url: None }
}

fn entity(n: usize) -> String {
    format!("http://example.com/entity/{n}")
}

/// Entities with a name, numbers, and links to others.
fn generate(path: &Path, count: usize) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let entities = (count / EACH).max(1);
    for n in 0..count {
        let (subject, property) = (entity(n / EACH), n % EACH);
        write!(out, "<{subject}> <http://example.com/property/{property}> ")?;
        match property {
            0..3 => writeln!(out, "<{}> .", entity(n.wrapping_mul(7919) % entities))?,
            _ => writeln!(out, "\"value {n} of {property}\" .")?,
        }
    }
    Ok(out.flush()?)
}

async fn load_file(store: &Store, path: &Path) -> Result<u64> {
    let origin = Origin { name: "triples.nt".to_owned(), scope: "bench".to_owned(), base: None };
    let statements = Statements::new(BufReader::new(File::open(path)?), Format::NTriples, origin, check)?;
    let place = KnowledgePlace { workspace: Workspace::default(), collection: Collection::default() };
    let knowledge = Arc::clone(&store.knowledge) as Arc<dyn Knowledge>;
    let source = NewSource { place, name: "triples.nt".to_owned(), by: Caller::program() };
    let loaded = load(knowledge, source, statements, |_| {}).await;
    Ok(loaded.map_err(|error| anyhow::anyhow!("{error}"))?.new)
}

/// The engine alone: as many keys and terms, sorted in batches, written and merged in the same sizes.
fn raw(folder: &Path, count: usize) -> Result<Duration> {
    const BATCH: usize = 16_384;
    const IN_MEMORY: u64 = 24 << 20;
    let (numbers, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
    let open = |name: &str| {
        Config::new(folder.join(name), numbers.clone(), visible.clone())
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            .index_block_partitioning_policy(PartitioningPolicy::all(true))
            .filter_block_partitioning_policy(PartitioningPolicy::all(true))
            .open()
    };
    let (quads, terms) = (open("quads")?, open("terms")?);
    let strategy = Arc::new(Leveled::default().with_table_target_size(16 << 20));
    let begun = Instant::now();
    let mut next = 0;
    while next < count {
        let number = numbers.next();
        let last = (next + BATCH).min(count);
        let mut keys: Vec<[u8; 73]> = (next..last).flat_map(|n| (0..4).map(move |order| key(n, order))).collect();
        keys.sort_unstable();
        for key in keys {
            quads.insert(key, b"", number);
        }
        let mut known: Vec<[u8; 73]> = (next..last).map(|n| key(n, 7)).collect();
        known.sort_unstable();
        for key in known {
            terms.insert(&key[..24], &key[24..64], number);
        }
        visible.fetch_max(number + 1);
        for tree in [&terms, &quads] {
            if tree.active_memtable().size() > IN_MEMORY || last == count {
                tree.flush_active_memtable(number)?;
                tree.compact(Arc::clone(&strategy) as _, number)?;
            }
        }
        next = last;
    }
    Ok(begun.elapsed())
}

/// Spread over all keys, as hashes are.
fn key(n: usize, order: u8) -> [u8; 73] {
    let mut key = [0; 73];
    key[8] = order;
    let mut state = (n as u64) << 8 | u64::from(order);
    for part in key[9..].chunks_exact_mut(8) {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        part.copy_from_slice(&(mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB).to_be_bytes());
    }
    key
}

async fn looks(store: &Store, entities: usize) -> Result<String> {
    let workspace = Workspace::default();
    let mut times = Vec::with_capacity(LOOKS);
    for n in 0..LOOKS {
        let node = Some(Term::iri(entity(n.wrapping_mul(104_729) % entities.max(1))));
        let begun = Instant::now();
        for pattern in [
            QuadPattern { s: node.clone(), ..QuadPattern::default() },
            QuadPattern { o: node, ..QuadPattern::default() },
        ] {
            store.graph.matching(&workspace, &pattern, 1_000).await?;
        }
        times.push(begun.elapsed());
    }
    Ok(figures(times))
}

async fn queries(store: &Store, entities: usize) -> Result<String> {
    let workspace = Workspace::default();
    let mut times = Vec::with_capacity(QUERIES);
    for n in 0..QUERIES {
        let node = entity(n.wrapping_mul(104_729) % entities.max(1));
        let query = format!("SELECT * {{ {{ <{node}> ?p ?o OPTIONAL {{ ?o ?q ?r }} }} UNION {{ ?s ?p <{node}> }} }}");
        let begun = Instant::now();
        let asking = Asking { workspace: &workspace, caller: None, knowledge: None };
        let found = store.graph.query(asking, &query, QueryLimits::default()).await?.found;
        ensure!(matches!(found, Answer::Rows { ref rows, .. } if !rows.is_empty()), "{node} is there");
        times.push(begun.elapsed());
    }
    Ok(figures(times))
}

fn figures(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let ms = |place: usize| times[place].as_secs_f64() * 1_000.0;
    format!("{:.2} ms, p95 {:.2} ms", ms(times.len() / 2), ms(times.len() * 95 / 100))
}
