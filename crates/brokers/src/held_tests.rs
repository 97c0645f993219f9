//! What is held, without a broker.

use super::*;
use trellis_domain::record::Name;
use trellis_domain::{Scope, SessionId, Workspace};
use trellis_orchestrator::memory::VirtualWorld;

fn turn(workspace: &str, n: u32) -> OpenTurn {
    let id = SessionId::new(&format!("s{n}")).unwrap();
    let scope = Scope { workspace: Workspace::new(workspace).unwrap(), ..Scope::default() };
    OpenTurn::new(TurnKey { scope, run: id.clone(), session: id, name: Name::new("i1") }, None, false)
}

fn held() -> Held<u32> {
    Held::new(Arc::new(VirtualWorld::new()))
}

async fn take(held: &Held<u32>) -> Option<Delivery> {
    tokio::time::timeout(Duration::from_millis(1), held.take(Role::Agent)).await.ok()
}

#[tokio::test(start_paused = true)]
async fn workspaces_take_turns_however_many_wake_ups_each_has() {
    let held = held();
    for n in 0..100 {
        held.put(turn("many", n), 1, n).await;
    }
    for n in 100..103 {
        held.put(turn("few", n), 1, n).await;
    }
    let mut few = 0;
    for _ in 0..6 {
        let next = take(&held).await.unwrap();
        few += u32::from(next.turn.key.scope.workspace.as_str() == "few");
    }
    assert_eq!(few, 3, "three of the first six");
}

#[tokio::test(start_paused = true)]
async fn two_messages_for_one_waiting_turn_become_one() {
    let held = held();
    assert_eq!(held.put(turn("w", 1), 1, 10).await, None);
    assert!(held.waits(&turn("w", 1).key));
    assert_eq!(held.put(turn("w", 1), 2, 11).await, Some(10), "the older one is to be settled");
    let delivery = take(&held).await.unwrap();
    assert_eq!((delivery.count, held.get(number(&delivery.receipt))), (2, Some((turn("w", 1), 2))));
    assert!(take(&held).await.is_none());
    assert_eq!(held.settle(number(&delivery.receipt)), Settling::Now(11));
    assert_eq!(held.settle(number(&delivery.receipt)), Settling::Done);
    assert_eq!(held.settle(number(&Receipt(Box::default()))), Settling::Done);
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_connection_receipts_are_stale_and_what_waits_is_still_handed_out() {
    let held = held();
    held.put(turn("w", 1), 1, 1).await;
    held.put(turn("w", 2), 1, 2).await;
    let in_hand = take(&held).await.unwrap();
    held.lose_connection();
    assert_eq!(held.settle(number(&in_hand.receipt)), Settling::Stale);
    assert!(held.is_stale(number(&in_hand.receipt)));
    let waiting = take(&held).await.unwrap();
    assert_eq!(held.settle(number(&waiting.receipt)), Settling::Stale);
    // The broker hands it out again.
    held.put(turn("w", 1), 2, 3).await;
    let again = take(&held).await.unwrap();
    assert_eq!(held.settle(number(&again.receipt)), Settling::Now(3));
}

#[tokio::test(start_paused = true)]
async fn what_is_held_for_too_long_is_settled_and_still_handed_out() {
    let held = held();
    held.put(turn("w", 1), 1, 1).await;
    held.put(turn("w", 2), 1, 2).await;
    let in_hand = take(&held).await.unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    held.put(turn("w", 3), 1, 3).await;
    assert_eq!(held.too_old(Duration::from_mins(1)), [1, 2]);
    assert_eq!(held.settle(number(&in_hand.receipt)), Settling::Done);
    let next = take(&held).await.unwrap();
    assert_eq!((next.turn.key.session.as_str(), held.settle(number(&next.receipt))), ("s2", Settling::Done));
    assert_eq!(held.too_old(Duration::from_mins(1)), [0; 0]);
    assert_eq!(held.waiting(), [3]);
}

#[tokio::test(start_paused = true)]
async fn one_that_nobody_renews_is_forgotten() {
    let held = held();
    held.put(turn("w", 1), 1, 1).await;
    held.put(turn("w", 2), 1, 2).await;
    let (renewed, dropped) = (take(&held).await.unwrap(), take(&held).await.unwrap());
    tokio::time::advance(Duration::from_secs(50)).await;
    assert_eq!(held.renew(number(&renewed.receipt)), Some(1));
    tokio::time::advance(Duration::from_secs(20)).await;
    held.forget_unrenewed(Duration::from_mins(1));
    assert_eq!(held.settle(number(&dropped.receipt)), Settling::Done);
    assert_eq!(held.settle(number(&renewed.receipt)), Settling::Now(1));
}

#[tokio::test(start_paused = true)]
async fn how_many_wait_is_bounded() {
    let held = held();
    for n in 0..u32::try_from(MOST).unwrap() {
        assert_eq!(held.put(turn("w", n), 1, n).await, None);
    }
    assert_eq!(held.put(turn("w", u32::MAX), 1, 7).await, Some(7), "it is to be settled at once");
    assert_eq!(held.put(turn("w", 0), 2, 8).await, Some(0));
}
