use super::*;
use crate::ports::{RealWorld, Role};
use trellis_domain::record::Name;
use trellis_domain::{Scope, SessionId};
use trellis_patterns::react::IterationNames;

fn turn(workspace: &str, run: &str, n: u32) -> OpenTurn {
    let scope = Scope { workspace: Workspace::new(workspace).unwrap(), ..Scope::default() };
    let run = SessionId::new(run).unwrap();
    let key = TurnKey { scope, session: run.clone(), run, name: Name::iteration(n) };
    OpenTurn::new(key, None, n == 1)
}

async fn drain(queue: &FairQueue, count: usize) -> Vec<String> {
    let mut taken = Vec::new();
    for _ in 0..count {
        let key = queue.take(Role::Agent).await.unwrap().turn.key;
        taken.push(format!("{}/{}/{}", key.scope.workspace, key.run, key.name));
    }
    taken
}

#[tokio::test]
async fn workspaces_take_turns_then_runs_and_continuations_go_before_new_roots() {
    let queue = FairQueue::new(Arc::new(RealWorld));
    for (workspace, run, n) in
        [("a", "new", 1), ("a", "r1", 2), ("a", "r1", 3), ("a", "r2", 2), ("b", "r3", 1), ("b", "r4", 1)]
    {
        queue.publish(turn(workspace, run, n)).await.unwrap();
    }
    assert_eq!(drain(&queue, 6).await, ["a/r1/i2", "b/r3/i1", "a/r2/i2", "b/r4/i1", "a/r1/i3", "a/new/i1"]);
}

#[tokio::test]
async fn a_delayed_turn_waits_for_its_time() {
    let world = Arc::new(RealWorld);
    let queue = FairQueue::new(Arc::clone(&world) as Arc<dyn World>);
    let due = world.now().plus_ms(30);
    queue.publish(OpenTurn { due: Some(due), ..turn("a", "late", 2) }).await.unwrap();
    queue.publish(turn("a", "now", 2)).await.unwrap();
    assert_eq!(drain(&queue, 2).await, ["a/now/i2", "a/late/i2"]);
    assert!(world.now() >= due);
}
