use super::*;
use std::sync::Mutex;

fn caller(workspace: &str, run: &str) -> Requester {
    Requester { workspace: Workspace::new(workspace).unwrap(), run: Some(RunId::new(run).unwrap()) }
}

/// Lets everybody enter in this order, one at a time, and gives the order in which they were served.
async fn served(callers: &[(&str, &str)]) -> String {
    let capacity = CallCapacity::new(1);
    let taken = capacity.try_enter().expect("it is empty");
    let order = Arc::new(Mutex::new(Vec::new()));
    let waiting: Vec<_> = callers
        .iter()
        .map(|(workspace, run)| {
            let (name, order) = (format!("{workspace}{run}"), Arc::clone(&order));
            // Lined up now, not when it is first looked at.
            let entering = capacity.enter(caller(workspace, run));
            tokio::spawn(async move {
                let permit = entering.await;
                order.lock().unwrap().push(name);
                drop(permit);
            })
        })
        .collect();
    drop(taken);
    for one in waiting {
        one.await.unwrap();
    }
    order.lock().unwrap().join(" ")
}

#[tokio::test]
async fn permits_go_round_robin_over_workspaces_and_then_over_runs() {
    let many = [("a", "1"), ("a", "1"), ("a", "1"), ("a", "2"), ("b", "1"), ("b", "1")];
    assert_eq!(served(&many).await, "a1 b1 a2 b1 a1 a1");
}

#[tokio::test]
async fn nobody_who_waits_is_overtaken_and_who_stops_waiting_takes_no_place() {
    let capacity = CallCapacity::new(1);
    let first = capacity.try_enter().expect("it is empty");
    assert!(capacity.try_enter().is_none(), "there is room for one");
    let gone: Vec<_> = (0..50_000).map(|_| capacity.enter(caller("a", "1"))).collect();
    let second = capacity.enter(caller("a", "2"));
    drop(gone);
    drop(first);
    assert!(capacity.try_enter().is_none(), "it was handed over");
    let permit = second.await;
    let copy = permit.clone();
    drop(permit);
    assert!(copy.is_in(&capacity) && capacity.try_enter().is_none(), "a copy stands for the same place");
    // Handed over, and never taken.
    let third = capacity.enter(caller("a", "1"));
    drop(copy);
    drop(third);
    assert!(capacity.try_enter().is_some());
}
