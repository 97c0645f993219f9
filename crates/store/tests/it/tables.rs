//! Rows on disk: the contract, whatever order they come in, after a crash, and after harm.

use crate::{Stores, holder, open};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;
use trellis_domain::Workspace;
use trellis_orchestrator::contract::tables::{self, cities, find, ids, place, rows, test};
use trellis_orchestrator::ports::{RealWorld, RowQuery, Tables, Test};
use trellis_store::Store;

#[tokio::test(flavor = "multi_thread")]
async fn embedded_tables_keep_their_contract() {
    let stores = Stores::default();
    tables::suite(async || stores.with_tables()).await;
}

/// Id, name and people of a row.
type AnyRow = (i64, Option<String>, Option<i64>);

fn any_rows() -> impl Strategy<Value = Vec<Vec<AnyRow>>> {
    let row = (0..12_i64, prop::option::of("[ab\u{0}]{0,2}"), prop::option::of(-2..3_i64));
    prop::collection::vec(prop::collection::vec(row, 1..8), 1..8)
}

/// Any batches, opened again in between or not, answer like a map, by index and without one; and nothing is left over.
#[test]
fn however_rows_come_they_answer_like_a_map() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config { cases: 12, ..Config::default() });
    let checked = runner.run(&(any_rows(), any::<u8>()), |(batches, closes)| {
        runtime.block_on(async {
            let folder = TempDir::new().unwrap();
            let mut store = open(folder.path()).unwrap();
            let mut known: BTreeMap<i64, (Option<String>, Option<i64>)> = BTreeMap::new();
            for (n, batch) in batches.into_iter().enumerate() {
                let given: Vec<Value> = batch
                    .iter()
                    .map(|(id, name, people)| json!({"id": id, "name": name, "country": name, "people": people}))
                    .collect();
                tables::put(&*store.tables, &cities(), &json!(given)).await;
                let full = |name: Option<String>| name.filter(|name| !name.is_empty());
                known.extend(batch.into_iter().map(|(id, name, people)| (id, (full(name), people))));
                if closes & (1 << n) > 0 {
                    drop(store);
                    store = open(folder.path()).unwrap();
                }
            }
            let ask = async |field: &str, asked: Test| {
                let query = RowQuery { conditions: vec![test(field, asked)], ..RowQuery::default() };
                ids(&find(&*store.tables, "cities", query).await)
            };
            for name in ["a", "b", "ab", "\u{0}"] {
                let expected: Vec<_> =
                    known.iter().filter(|(_, (own, _))| own.as_deref() == Some(name)).map(|(id, _)| *id).collect();
                prop_assert_eq!(&ask("name", Test::Is(json!(name))).await, &expected);
                prop_assert_eq!(&ask("country", Test::Is(json!(name))).await, &expected);
            }
            let expected: Vec<_> = known.iter().filter(|(_, (_, own))| *own > Some(0)).map(|(id, _)| *id).collect();
            prop_assert_eq!(ask("people", Test::Above(json!(0))).await, expected);
            let checked = store.check_tables();
            prop_assert_eq!(checked.rows, known.len() as u64);
            prop_assert!(checked.faults.is_empty(), "{:?}", checked.faults);
            Ok(())
        })
    });
    checked.unwrap();
}

const LOADER: &str = "TRELLIS_TEST_TABLE_LOADER";

/// Not a test: a process that loads until it is killed, and says when a batch is in.
#[test]
fn table_loader() {
    let Some(folder) = std::env::var_os(LOADER) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = Store::open(folder.as_ref(), &holder(), Arc::new(RealWorld)).unwrap();
    runtime.block_on(async {
        for batch in 0_i64.. {
            let given: Vec<_> = (0..200).map(|n| json!({"id": batch * 200 + n, "name": format!("n{n}")})).collect();
            tables::put(&*store.tables, &cities(), &json!(given)).await;
            println!("batch {batch}");
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_leaves_whole_batches_and_loading_again_completes_them() {
    use std::io::{BufRead, BufReader};
    let folder = TempDir::new().unwrap();
    let mut loader = Command::new(std::env::current_exe().unwrap());
    loader.args(["tables::table_loader", "--exact", "--nocapture"]).env(LOADER, folder.path());
    let mut loader = loader.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(loader.stdout.take().unwrap()).lines();
    let said = lines.map_while(Result::ok).filter(|line| line.contains("batch")).take(4).count();
    loader.kill().unwrap();
    loader.wait().unwrap();
    let store = open(folder.path()).unwrap();
    let listed = store.tables.tables(&Workspace::default()).await.unwrap().remove(0);
    assert!(listed.rows >= 200 * (said as u64) && listed.rows.is_multiple_of(200), "{} rows", listed.rows);
    assert_eq!(listed.unfinished, ["source"]);
    let checked = store.check_tables();
    assert!(checked.faults.is_empty(), "{:?}", checked.faults);
    let given: Vec<_> = (0..200).map(|n| json!({"id": n, "name": format!("n{n}")})).collect();
    let again = tables::put(&*store.tables, &cities(), &json!(given)).await;
    assert_eq!((again.new, again.changed), (0, 0), "what is there is not loaded twice");
    store.tables.finish(&place("cities"), "source").await.unwrap();
    assert!(store.tables.tables(&Workspace::default()).await.unwrap()[0].unfinished.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_tables_has_none_and_makes_none() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    assert!(store.tables.tables(&Workspace::default()).await.unwrap().is_empty());
    assert_eq!(store.tables.remove(&place("cities")).await.unwrap(), None);
    assert_eq!(store.check_tables().tables, 0);
    assert!(!folder.path().join("tables").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn harm_is_told_and_does_not_stop_the_rest() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    tables::put(&*store.tables, &cities(), &json!([{"id": 1}])).await;
    store.tables.finish(&place("cities"), "source").await.unwrap();
    drop(store);
    let tables = folder.path().join("tables");
    for entry in std::fs::read_dir(&tables).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        std::fs::write(entry.path(), b"this was something else").unwrap();
    }
    let store = open(folder.path()).unwrap();
    let refused = store.tables.tables(&Workspace::default()).await.unwrap_err().to_string();
    assert!(refused.contains("cannot be opened") && refused.contains("restore them from a copy"), "{refused}");
    assert_eq!(store.check_tables().faults.len(), 1);
    let put = store.tables.put(&place("cities"), cities(), "s", rows(&cities(), &json!([{"id": 2}]))).await;
    assert!(put.is_err(), "what cannot be read is not written over");
}
