//! What a replay takes for given, and what it does not look at.

use crate::memory;
use serde_json::json;
use std::sync::Arc;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::{Body, Name, Record};
use trellis_domain::run::Termination;
use trellis_domain::{SessionId, Timestamp};
use trellis_orchestrator::audit::implausible;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, play};
use trellis_orchestrator::replay::{Replay, replay};
use trellis_patterns::{Ending, Session};

async fn react() -> Played {
    let scene = json!({"tools": 1, "answer": "yes"});
    play(&Bench::play(memory()).await, &scene, "react", SomeLimits::default()).await
}

async fn team() -> Played {
    let scene = json!({"team": [[agent("a")]]});
    play(&Bench::play(memory()).await, &scene, "supervisor", SomeLimits::default()).await
}

fn replay_of(played: &Played, records: &[Arc<Record>]) -> Replay {
    replay(records, &|hash| played.settings.get(&hash).cloned())
}

/// The run with another end of this session, and whether that follows.
fn with_end(played: &Played, session: &SessionId, ending: Ending, time: Option<Timestamp>) -> Vec<String> {
    let mut folded = Session::new(Arc::default(), Arc::default());
    let own = |record: &&Arc<Record>| record.header.session == *session && record.body.as_ended().is_none();
    played.records.iter().filter(own).for_each(|record| folded.apply(Arc::clone(record)));
    let mut records: Vec<_> = played.records.iter().map(|record| (**record).clone()).collect();
    let is_end = |record: &&mut Record| record.header.session == *session && record.header.name == Name::end();
    let end = records.iter_mut().find(is_end).unwrap();
    end.header.time = time.unwrap_or(end.header.time);
    end.body = Body::from(ending.into_ended(&folded, end.header.time));
    let records: Vec<_> = records.into_iter().map(Arc::new).collect();
    let faults = replay_of(played, &records).faults;
    faults.into_iter().filter(|fault| fault.starts_with(&format!("record {session}/end:"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_may_give_up_a_session_whose_end_was_decided() {
    let played = react().await;
    let given_up = [
        "set aside: handling this request was cut short 3 times",
        "set aside: what it needs cannot be read: cannot read the data folder: gone",
        "an internal error ended this run; the log says more",
        "what follows cannot be recorded: an id is taken already",
    ];
    for reason in given_up {
        let faults = with_end(&played, &played.run, Ending::failed(Termination::Error, reason), None);
        assert_eq!(faults, [] as [String; 0], "{reason}");
    }
    let invented = with_end(&played, &played.run, Ending::failed(Termination::Error, "it did not like it"), None);
    assert_eq!(invented.len(), 1, "{invented:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_may_be_at_its_own_limit_after_an_outage() {
    let played = team().await;
    let child = played.records.iter().find(|record| record.header.session != played.run).unwrap();
    let (session, begun) = (child.header.session.clone(), child.header.time);
    let routed = played.records.iter().find_map(|record| {
        let own = record.header.session == session;
        record.body.as_routed().filter(|_| own)
    });
    let limit = routed.unwrap().limits.run_timeout_ms;
    let error = format!("the run took longer than {limit} ms, which is its limit");
    let ending = || Ending::failed(Termination::Timeout, error.clone());
    // Its fan-out's deadline lies before that time, but for the outage, which only the store knows of.
    let late = with_end(&played, &session, ending(), Some(begun.plus_ms(limit)));
    assert_eq!(late, [] as [String; 0]);
    let early = with_end(&played, &session, ending(), Some(begun.plus_ms(limit - 1)));
    assert_eq!(early.len(), 1, "{early:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_that_this_program_does_not_have_is_told_and_not_judged() {
    let played = react().await;
    let mut records: Vec<_> = played.records.iter().map(|record| (**record).clone()).collect();
    for record in &mut records {
        if let Body::Routed(routed) = &mut record.body {
            routed.pattern = "delphi".into();
        }
    }
    let records: Vec<_> = records.into_iter().map(Arc::new).collect();
    let replay = replay_of(&played, &records);
    assert_eq!(replay.faults, [] as [String; 0]);
    assert_eq!(replay.gaps, [format!("this program has no pattern `delphi`, which session {} has", played.run)]);
    assert!(replay.unknown.contains(&played.run));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_does_not_become_older_by_saying_so() {
    let played = react().await;
    assert_eq!(implausible(&played.records), [] as [String; 0]);
    let older = played.records.iter().map(|record| {
        let mut record = (**record).clone();
        record.header.format = 3;
        Arc::new(record)
    });
    let records: Vec<_> = older.collect();
    assert!(replay_of(&played, &records).gaps[0].contains("records of format 3"));
    let faults = implausible(&records);
    assert!(faults[0].contains("it says what only later ones can"), "{faults:?}");
}
