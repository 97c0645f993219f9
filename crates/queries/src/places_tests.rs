use super::*;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

fn asker(workspace: &str, caller: Option<&str>) -> Asker {
    Asker { workspace: Workspace::new(workspace).unwrap(), caller: caller.map(str::to_owned) }
}

fn now<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

fn taken(places: &Places, workspace: &str, caller: Option<&str>) -> Option<QueryPlace> {
    now(pin!(places.take(asker(workspace, caller)))).map(|place| place.unwrap())
}

#[test]
fn nobody_holds_more_than_half_of_the_places() {
    let places = Places::new(4);
    let _held: Vec<_> = (0..2).map(|_| taken(&places, "a", None).unwrap()).collect();
    assert!(taken(&places, "a", None).is_none(), "a workspace has two");
    let _others: Vec<_> = ["b", "c"].map(|name| taken(&places, name, Some("ann")).unwrap()).into();
    let places = Places::new(4);
    let _held: Vec<_> = ["a", "b"].map(|name| taken(&places, name, Some("ann")).unwrap()).into();
    assert!(taken(&places, "c", Some("ann")).is_none(), "a caller has two, in whichever workspaces");
    assert!(taken(&places, "c", Some("bob")).is_some());
    let single = Places::new(1);
    assert!(taken(&single, "a", None).is_some(), "one place is somebody's");
}

#[test]
fn a_free_place_goes_to_whoever_holds_least_and_then_to_whoever_came_first() {
    let places = Places::new(2);
    let (first, second) = (taken(&places, "a", None).unwrap(), taken(&places, "b", None).unwrap());
    let mut again = pin!(places.take(asker("a", None)));
    let mut next = pin!(places.take(asker("c", None)));
    let mut last = pin!(places.take(asker("d", None)));
    assert!(now(again.as_mut()).is_none() && now(next.as_mut()).is_none() && now(last.as_mut()).is_none());
    drop(second);
    let next = now(next.as_mut()).expect("it waits behind one that may not have more").unwrap();
    assert!(now(last.as_mut()).is_none());
    drop(first);
    let again = now(again.as_mut()).expect("it came before the last").unwrap();
    assert!(now(last.as_mut()).is_none());
    drop((next, again));
    assert!(now(last.as_mut()).is_some());
}

#[test]
fn who_leaves_gives_up_its_turn_and_too_many_are_refused() {
    let places = Places::new(1);
    let held = taken(&places, "a", None).unwrap();
    let mut waiting: Vec<_> = (0..WAITING_OF_ONE).map(|_| Box::pin(places.take(asker("a", None)))).collect();
    assert!(waiting.iter_mut().all(|one| now(one.as_mut()).is_none()));
    assert_eq!(now(pin!(places.take(asker("a", None)))).unwrap().unwrap_err(), Full);
    let mut other = pin!(places.take(asker("b", None)));
    assert!(now(other.as_mut()).is_none(), "others may still wait");
    waiting.truncate(1);
    let mut late = pin!(places.take(asker("a", None)));
    assert!(now(late.as_mut()).is_none(), "there is room again");
    waiting.clear();
    drop(held);
    assert!(now(other.as_mut()).is_some(), "those who left are passed over");
    assert!(now(late.as_mut()).is_some(), "and a place that nobody takes goes on");
    let some: Vec<_> = (0..WAITING).map(|number| Box::pin(places.take(asker(&format!("w{number}"), None)))).collect();
    let _held = taken(&places, "a", None).unwrap();
    let mut some = some;
    assert!(some.iter_mut().all(|one| now(one.as_mut()).is_none()));
    assert_eq!(now(pin!(places.take(asker("b", None)))).unwrap().unwrap_err(), Full, "all of them are too many");
}
