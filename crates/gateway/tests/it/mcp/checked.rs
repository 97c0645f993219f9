//! Whether the record of a run was held against the log, and how much that may take.

use super::{call, newest, newest_headers, question, speak, use_tool};
use crate::house::{House, Setup};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::evidence::Evidence;
use trellis_orchestrator::memory::EmptyLog;
use trellis_orchestrator::ports::{BoxFuture, JournalError, Log, LogEntry, LogError, Verdict};

/// A log with runs of that many bytes, which counts how often somebody wants to have one.
#[derive(Debug)]
struct SizedLog {
    bytes: usize,
    asked: AtomicUsize,
    erasures: AtomicU64,
}

impl Log for SizedLog {
    fn public_key(&self) -> String {
        EmptyLog.public_key()
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<String, JournalError>> {
        EmptyLog.checkpoint()
    }

    fn evidence<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
        most: usize,
    ) -> BoxFuture<'a, Result<Option<Evidence>, LogError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(self.bytes < usize::MAX, "a fault of the server");
        if self.bytes > most {
            return Box::pin(std::future::ready(Err(LogError::TooLarge(most))));
        }
        EmptyLog.evidence(workspace, run, most)
    }

    fn erasures(&self) -> BoxFuture<'_, Result<u64, JournalError>> {
        Box::pin(std::future::ready(Ok(self.erasures.load(Ordering::Relaxed))))
    }

    fn entries(&self, from: u64, limit: usize) -> BoxFuture<'_, Result<Vec<LogEntry>, JournalError>> {
        EmptyLog.entries(from, limit)
    }

    fn against<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Verdict, LogError>> {
        EmptyLog.against("")
    }
}

async fn house(bytes: usize) -> (House, Arc<SizedLog>) {
    let log = Arc::new(SizedLog { bytes, asked: AtomicUsize::default(), erasures: AtomicU64::default() });
    let house = House::with(Setup { log: Arc::clone(&log) as _, ..Setup::default() }).await;
    (house, log)
}

#[tokio::test]
async fn a_run_that_has_ended_is_checked_once_however_often_somebody_looks() {
    let (house, log) = house(1 << 20).await;
    let asked = use_tool(&house, "ask", &question(&json!({"answer": "so"}))).await;
    let first = &asked["structuredContent"];
    for _ in 0..3 {
        let again = use_tool(&house, "wait_for_run", &json!({"run_id": first["run_id"]})).await;
        assert_eq!(again["structuredContent"]["faults"], first["faults"]);
        assert_eq!(again["structuredContent"]["verified"], first["verified"]);
    }
    assert_eq!(log.asked.load(Ordering::Relaxed), 1);
    // What was erased since may have been of this run.
    log.erasures.store(1, Ordering::Relaxed);
    for _ in 0..2 {
        use_tool(&house, "wait_for_run", &json!({"run_id": first["run_id"]})).await;
    }
    assert_eq!(log.asked.load(Ordering::Relaxed), 2);
    house.shut().await;
}

#[tokio::test]
async fn a_run_that_is_too_large_is_said_not_to_be_checked() {
    let (house, log) = house(20 << 20).await;
    let asked = use_tool(&house, "ask", &question(&json!({"answer": "so"}))).await;
    let value = &asked["structuredContent"];
    assert_eq!((&value["verified"], &value["answer"]), (&Value::Null, &json!("so")));
    let why = value["not_checked"].as_str().unwrap();
    assert!(why.contains("more than 16 MiB"), "{why}");
    let run = value["run_id"].as_str().unwrap();
    let text = asked["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("was not checked") && text.contains(&format!("`trellis verify {run}`")), "{text}");
    use_tool(&house, "wait_for_run", &json!({"run_id": run})).await;
    assert_eq!(log.asked.load(Ordering::Relaxed), 1);
    house.shut().await;
}

/// Clients wait for an answer.
#[tokio::test]
async fn a_call_that_meets_a_fault_of_the_server_is_answered() {
    let (house, _) = house(usize::MAX).await;
    let (status, told) = speak(&house, "", &call("ask", &question(&json!({"answer": "so"})))).await;
    assert_eq!((status, &told[0]["id"], &told[0]["error"]["code"]), (200, &json!(7), &json!(-32603)), "{told:?}");
    let listed = use_tool(&house, "list_runs", &json!({})).await;
    let get = json!({"jsonrpc": "2.0", "id": 8, "method": "tasks/get",
        "params": {"taskId": listed["structuredContent"]["runs"][0]["run_id"]}});
    let get = newest(get, &json!({"io.modelcontextprotocol/tasks": {}}));
    let (_, told) = speak(&house, &newest_headers(&get), &get).await;
    assert_eq!((&told[0]["id"], &told[0]["error"]["code"]), (&json!(8), &json!(-32603)), "{told:?}");
    house.shut().await;
}

#[tokio::test]
async fn evidence_that_does_not_fit_into_a_reply_is_refused_with_what_to_do_instead() {
    for (bytes, status) in [(30 << 20, 200), (40 << 20, 413)] {
        let (house, _) = house(bytes).await;
        let asked = use_tool(&house, "ask", &question(&json!({"answer": "so"}))).await;
        let run = asked["structuredContent"]["run_id"].as_str().unwrap();
        let (found, said) = house.http("GET", &format!("/api/v1/runs/{run}/evidence"), "", b"").await;
        assert_eq!(found, status, "{said}");
        if status == 413 {
            let message = said["error"]["message"].as_str().unwrap();
            assert!(message.contains("32 MiB") && message.contains(&format!("`trellis verify {run}`")), "{message}");
        }
        house.shut().await;
    }
}
