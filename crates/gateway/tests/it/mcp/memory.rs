//! What calls that wait keep in memory.

use super::{HEADERS, call, newest, newest_headers, use_tool, waiting};
use crate::house::House;
use serde_json::json;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Set in the process that is measured.
const MEASURED: &str = "TRELLIS_TEST_MCP_MEMORY";
/// A question that is far too long, and so many calls with it.
const BYTES: usize = 30 << 20;
const CALLS: usize = 6;

/// Bytes of memory of this process.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

async fn within(is_so: impl Fn() -> bool) -> bool {
    let so = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), so).await.is_ok()
}

/// Not a test: what is measured in a process of its own.
#[tokio::test]
async fn calls_that_wait() {
    if std::env::var_os(MEASURED).is_none() {
        return;
    }
    let house = House::with(waiting()).await;
    let asked = use_tool(&house, "ask", &json!({"question": "?", "pattern": "react", "wait": 0})).await;
    let again = |wait: u64| {
        let arguments = json!({"question": "x".repeat(BYTES), "pattern": "react", "wait": wait});
        let mut message = newest(call("ask", &arguments), &json!({}));
        message["params"]["requestState"] = asked["structuredContent"]["run_id"].clone();
        let headers = format!("{HEADERS}{}", newest_headers(&message));
        (headers, message.to_string())
    };
    // What the first of them leaves behind once is not counted.
    let (headers, body) = again(0);
    house.raw("POST", "/mcp", &headers, body.as_bytes()).await;
    drop(body);
    let before = memory();
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        let held = || Arc::strong_count(&house.gateway);
        let held_before = held();
        let (headers, body) = again(600);
        calls.push(house.request("POST", "/mcp", &headers, body.as_bytes()).await);
        drop(body);
        assert!(within(|| held() > held_before + 1).await, "it is served");
    }
    let kept = || memory().saturating_sub(before);
    let most = CALLS * BYTES / 2;
    assert!(within(|| kept() < most).await, "{} MiB are kept by {CALLS} calls that wait", kept() >> 20);
    drop(calls);
    house.shut().await;
}

/// A call may wait for ten minutes, and anybody may make many.
#[test]
#[cfg(target_os = "linux")]
fn a_call_that_waits_keeps_nothing_of_what_came_with_it() {
    let mut measured = Command::new(std::env::current_exe().unwrap());
    measured.args(["mcp::memory::calls_that_wait", "--exact", "--nocapture"]).env(MEASURED, "1");
    // Whatever is freed is given back at once.
    let done = measured.env("MALLOC_MMAP_THRESHOLD_", "1048576").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
}
