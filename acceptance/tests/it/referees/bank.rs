//! The documents of tau2's bank: how many of those that a task needs are found by what its customer wants. The figures are in
//! `docs/evaluation.md`.

use acceptance::Asking;
use acceptance::referees::{all_is_wanted, documents, lines};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tempfile::TempDir;

/// So many tasks are a sample, those that need the fewest documents, besides which every so many others are loaded.
const SAMPLE: usize = 5;
const OTHERS_EVERY: usize = 25;
/// As many passages as a call may ask for.
const PASSAGES: usize = 50;
const DEPTHS: [usize; 2] = [5, 10];

struct Task {
    question: String,
    needs: BTreeSet<String>,
}

fn task(task: &Value) -> Task {
    let needs = task["documents"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned());
    Task { question: task["question"].as_str().unwrap().to_owned(), needs: needs.collect() }
}

/// A bank with documents, and who has which title.
struct Bank {
    asking: Asking,
    titles: BTreeMap<String, Vec<String>>,
}

impl Bank {
    async fn open(wanted: impl Fn(usize, &str) -> bool) -> Self {
        let (folder, mut titles) = (TempDir::new().unwrap(), BTreeMap::<String, Vec<String>>::new());
        for (number, (id, text)) in documents().into_iter().enumerate() {
            if wanted(number, &id) {
                std::fs::write(folder.path().join(format!("{id}.md")), &text).unwrap();
                let title = text.lines().next().unwrap_or_default().trim_start_matches("# ").trim();
                titles.entry(title.to_owned()).or_default().push(id);
            }
        }
        let asking = Asking::with(Vec::new()).set("TRELLIS_MODEL", "rehearsal");
        asking.trellis(&["load", folder.path().to_str().unwrap(), "--collection", "bank"]).await.ok();
        let tool =
            json!({ "type": "document-rag", "description": "The bank", "collection": "bank", "limit": PASSAGES });
        asking.trellis(&["tools", "add", "bank", &tool.to_string()]).await.ok();
        Self { asking, titles }
    }

    /// The documents whose passages fit best, the best first.
    async fn find(&self, question: &str) -> Vec<String> {
        let asked = json!({ "question": question }).to_string();
        let told = self.asking.trellis(&["tools", "test", "bank", &asked]).await.ok();
        let mut found = Vec::new();
        for line in told.stdout.lines().filter(|line| line.starts_with("(p")) {
            // `(p1) Title › Heading (lines 1–9 of urn:…)`
            let Some((_, named)) = line.rsplit_once(" (line").map(|(named, _)| named).and_then(|it| it.split_once(' '))
            else {
                continue;
            };
            let title = named.split(" › ").next().unwrap_or(named);
            for id in self.titles.get(title).into_iter().flatten() {
                if !found.contains(id) {
                    found.push(id.clone());
                }
            }
        }
        found
    }
}

#[allow(clippy::cast_precision_loss, reason = "there are few documents")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_documents_that_a_customer_needs_are_found() {
    let mut tasks: Vec<_> = lines("banking.jsonl").iter().map(task).collect();
    if !all_is_wanted() {
        tasks.sort_by_key(|task| task.needs.len());
        tasks.truncate(SAMPLE);
    }
    let needed: BTreeSet<_> = tasks.iter().flat_map(|task| task.needs.clone()).collect();
    let is_wanted =
        |number: usize, id: &str| all_is_wanted() || number.is_multiple_of(OTHERS_EVERY) || needed.contains(id);
    let bank = Bank::open(is_wanted).await;
    let mut recall = [0.0; DEPTHS.len()];
    let mut possible = recall;
    for task in &tasks {
        let found = bank.find(&task.question).await;
        assert!(!found.is_empty(), "nothing fits {:?}", task.question);
        for (depth, (recall, possible)) in DEPTHS.into_iter().zip(recall.iter_mut().zip(&mut possible)) {
            let right = found.iter().take(depth).filter(|id| task.needs.contains(*id)).count();
            *recall += share(right, task.needs.len()) / share(tasks.len(), 1);
            *possible += share(depth.min(task.needs.len()), task.needs.len()) / share(tasks.len(), 1);
        }
    }
    println!("{} tasks, recall at {DEPTHS:?}: {recall:.3?}, possible: {possible:.3?}", tasks.len());
    let least = if all_is_wanted() { [0.17, 0.23] } else { [0.6, 0.8] };
    assert!(recall.iter().zip(least).all(|(recall, least)| *recall >= least), "{recall:?}");
}
