//! The commit contract.

use super::{accepted, commit, ended, id, observed, record, routed, scope, turn};
use crate::ports::{
    Claim, ClaimId, Claiming, Commit, Committed, Journal, NewRecord, NewTurn, Outcome, RunFilter, TurnKey,
    all_due_turns,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::record::Name;
use trellis_domain::run::{RunState, Termination};
use trellis_domain::{Hash, RunId, Timestamp, Workspace};
use trellis_patterns::react::IterationNames;

/// Runs the whole suite; each promise gets a fresh journal.
pub async fn suite<F: Future<Output = Arc<dyn Journal>>>(fresh: impl Fn() -> F) {
    accepting_opens_the_first_turn(&*fresh().await).await;
    an_outcome_needs_only_a_free_name(&*fresh().await).await;
    what_was_decided_needs_the_newest_version(&*fresh().await).await;
    of_two_workers_on_one_turn_only_one_closes_it(fresh().await).await;
    a_session_ends_once_and_opens_nothing_afterwards(&*fresh().await).await;
    late_outcomes_are_kept_and_marked(&*fresh().await).await;
    two_counters_are_assigned_by_the_committer(&*fresh().await).await;
    a_commit_may_end_another_session_or_conflict_as_a_whole(&*fresh().await).await;
    what_was_decided_from_another_session_needs_its_newest_version(&*fresh().await).await;
    records_name_their_parents_by_hash(&*fresh().await).await;
    large_texts_come_back_whole(&*fresh().await).await;
    workspaces_do_not_see_each_other(&*fresh().await).await;
    runs_are_listed_newest_first_in_pages(&*fresh().await).await;
    runs_are_listed_by_task_type_and_from_a_time_on(&*fresh().await).await;
    runs_are_found_by_the_beginning_of_their_ids(&*fresh().await).await;
    a_delayed_turn_is_not_due_before_its_time(&*fresh().await).await;
    due_turns_come_in_pages_without_those_that_are_claimed(&*fresh().await).await;
    a_turn_that_is_given_back_does_not_count_as_begun(&*fresh().await).await;
    a_turn_is_claimed_by_one_at_a_time(fresh().await).await;
    many_sessions_at_once(fresh().await).await;
}

/// Commits that wait together see each other, however many sessions they touch: what one of them wrote is never written
/// over by the next.
pub async fn many_sessions_at_once(journal: Arc<dyn Journal>) {
    const RUNS: usize = 24;
    const SESSIONS: usize = 584;
    let names = ["one", "two", "three"];
    let session = |run: usize, n: usize| format!("r{run}-{n}");
    for run in 0..RUNS {
        committed(&*journal, first(&format!("r{run}"))).await;
    }
    let mut waiting = tokio::task::JoinSet::new();
    for name in names {
        for run in 0..RUNS {
            let of = |n| record(&session(run, n), Name::new(name), &[], observed(name));
            let own = format!("r{run}");
            let commit = Commit { records: (0..SESSIONS).map(of).collect(), ..commit("default", &own, &own, 1) };
            let journal = Arc::clone(&journal);
            waiting.spawn(async move { committed(&*journal, commit).await });
        }
    }
    assert_eq!(waiting.join_all().await.len(), names.len() * RUNS);
    for run in 0..RUNS {
        for n in 0..SESSIONS {
            let log = journal.load(&Workspace::default(), &id(&session(run, n))).await.expect("the store works");
            let log = log.expect("it was committed");
            assert_eq!((log.version, log.records.len()), (3, 3), "session {n} of run {run}");
        }
    }
}

pub(super) async fn committed(journal: &dyn Journal, commit: Commit) -> Committed {
    match journal.commit(commit).await.expect("the store works") {
        Outcome::Committed(committed) => committed,
        Outcome::Conflict => panic!("unexpected conflict"),
    }
}

async fn conflicts(journal: &dyn Journal, commit: Commit) -> bool {
    matches!(journal.commit(commit).await.expect("the store works"), Outcome::Conflict)
}

pub(super) fn first(run: &str) -> Commit {
    Commit {
        records: vec![
            record(run, Name::session(), &[], accepted("why?")),
            record(run, Name::pattern_decision(), &[Name::session()], routed()),
        ],
        open: vec![turn(run, Name::iteration(1))],
        ..commit("default", run, run, 0)
    }
}

/// The commit that accepts a question and opens its first turn.
pub fn first_of(run: &str) -> Commit {
    first(run)
}

/// An outcome that such a run may have.
pub fn observation(first: &Commit, text: &str) -> NewRecord {
    record(first.session.as_str(), Name::new("observed"), &[Name::pattern_decision()], observed(text))
}

fn key(run: &str, name: Name) -> TurnKey {
    TurnKey { scope: scope("default"), run: id(run), session: id(run), name }
}

fn outcome(run: &str, seen: u64, name: &str) -> Commit {
    let records = vec![record(run, Name::new(name), &[Name::pattern_decision()], observed(name))];
    Commit { records, ..commit("default", run, run, seen) }
}

pub(super) fn end(run: &str, seen: u64) -> Commit {
    let records = vec![record(run, Name::end(), &[], ended(Termination::FinalAnswer))];
    Commit { records, close: vec![Name::iteration(1)], ..commit("default", run, run, seen) }
}

async fn accepting_opens_the_first_turn(journal: &dyn Journal) {
    let opened = committed(journal, first("r")).await;
    assert_eq!(opened.version, 1);
    assert!(opened.opened[0].root, "the first turn of a run is its root");
    let due = all_due_turns(journal, Timestamp::from_micros(0)).await.expect("the store works");
    assert_eq!(due.iter().map(|turn| &turn.key).collect::<Vec<_>>(), [&key("r", Name::iteration(1))]);
    let log = journal.load(&Workspace::default(), &id("r")).await.expect("the store works").expect("it was committed");
    assert_eq!((log.version, log.records.len()), (1, 2));
    assert_eq!(log.records[0].body, accepted("why?"));
    assert!(conflicts(journal, first("r")).await, "the same question is not accepted twice");
    assert_eq!(journal.open_runs().await.expect("the store works"), 1);
}

async fn an_outcome_needs_only_a_free_name(journal: &dyn Journal) {
    committed(journal, first("r")).await;
    assert_eq!(committed(journal, outcome("r", 1, "a")).await.version, 2);
    assert_eq!(committed(journal, outcome("r", 1, "b")).await.version, 3, "two outcomes from one state both count");
    assert!(conflicts(journal, outcome("r", 3, "a")).await, "a taken name is a conflict");
}

async fn what_was_decided_needs_the_newest_version(journal: &dyn Journal) {
    committed(journal, first("r")).await;
    committed(journal, outcome("r", 1, "a")).await;
    let close = |seen| Commit {
        close: vec![Name::iteration(1)],
        open: vec![turn("r", Name::iteration(2))],
        ..commit("default", "r", "r", seen)
    };
    assert!(conflicts(journal, close(1)).await, "closing from an old state is a conflict");
    assert!(conflicts(journal, end("r", 1)).await, "ending from an old state is a conflict");
    assert_eq!(committed(journal, close(2)).await.opened.len(), 1);
    assert!(conflicts(journal, close(2)).await, "a closed turn is not closed again");
    assert!(!journal.is_open(&key("r", Name::iteration(1))).await.expect("the store works"));
    assert!(journal.is_open(&key("r", Name::iteration(2))).await.expect("the store works"));
}

async fn of_two_workers_on_one_turn_only_one_closes_it(journal: Arc<dyn Journal>) {
    committed(&*journal, first("r")).await;
    let close = |name: &str| Commit {
        close: vec![Name::iteration(1)],
        open: vec![turn("r", Name::iteration(2))],
        ..outcome("r", 1, name)
    };
    let race = |commit: Commit| {
        let journal = Arc::clone(&journal);
        tokio::spawn(async move { conflicts(&*journal, commit).await })
    };
    let (one, two) = (race(close("x")), race(close("y")));
    let lost = [one.await, two.await].into_iter().filter(|result| matches!(result, Ok(true))).count();
    assert_eq!(lost, 1, "exactly one of two racing workers conflicts");
}

async fn a_session_ends_once_and_opens_nothing_afterwards(journal: &dyn Journal) {
    committed(journal, first("r")).await;
    committed(journal, end("r", 1)).await;
    assert!(conflicts(journal, Commit { close: vec![], ..end("r", 2) }).await, "one end per session");
    let more = Commit { open: vec![turn("r", Name::iteration(2))], ..commit("default", "r", "r", 2) };
    assert!(conflicts(journal, more).await, "an ended session opens nothing");
    assert_eq!(journal.open_runs().await.expect("the store works"), 0);
    let run = journal.run(&Workspace::default(), &id("r")).await.expect("the store works").expect("it exists");
    assert_eq!(run.state, RunState::Answered);
}

async fn late_outcomes_are_kept_and_marked(journal: &dyn Journal) {
    let mut opening = first("r");
    opening.open.push(turn("r", Name::new("step/1")));
    committed(journal, opening).await;
    committed(journal, end("r", 1)).await;
    let late = committed(journal, outcome("r", 1, "late")).await;
    assert!(late.records[0].header.late, "an outcome after the end is marked");
    let close = Commit { close: vec![Name::new("step/1")], ..commit("default", "r", "r", late.version) };
    committed(journal, close).await;
}

async fn two_counters_are_assigned_by_the_committer(journal: &dyn Journal) {
    committed(journal, first("r")).await;
    let mut child = outcome("r", 1, "spawn");
    child.records.push(record("c", Name::session(), &[], accepted("part")));
    committed(journal, child).await;
    let on_child =
        Commit { records: vec![record("c", Name::new("x"), &[], observed("x"))], ..commit("default", "r", "c", 1) };
    assert_eq!(committed(journal, on_child).await.version, 2, "a session counts its own commits");
    let events = journal.events(&Workspace::default(), &id("r"), 0, 100).await.expect("the store works");
    let seqs: Vec<_> = events.iter().map(|record| record.header.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5], "a run's events have no gap");
    let after = journal.events(&Workspace::default(), &id("r"), 3, 1).await.expect("the store works");
    assert_eq!(after.iter().map(|record| record.header.seq).collect::<Vec<_>>(), [4]);
}

async fn a_commit_may_end_another_session_or_conflict_as_a_whole(journal: &dyn Journal) {
    let mut opening = first("r");
    opening.records.push(record("c", Name::session(), &[], accepted("part")));
    committed(journal, opening).await;
    let join = |name: &str| {
        let mut join = outcome("r", 1, name);
        join.records.push(record("c", Name::end(), &[], ended(Termination::Timeout)));
        join
    };
    committed(journal, join("join")).await;
    assert!(conflicts(journal, join("again")).await, "the child has ended meanwhile");
    let log = journal.load(&Workspace::default(), &id("r")).await.expect("the store works").expect("it exists");
    assert!(log.records.iter().all(|record| record.header.name != Name::new("again")), "all or nothing");
}

async fn what_was_decided_from_another_session_needs_its_newest_version(journal: &dyn Journal) {
    let mut opening = first("r");
    opening.records.push(record("c", Name::session(), &[], accepted("part")));
    committed(journal, opening).await;
    let winding_up = |seen| {
        let mut join = outcome("r", 1, "join");
        join.records.push(record("c", Name::end(), &[], ended(Termination::Timeout)));
        Commit { seen_of_others: vec![(id("c"), seen)], ..join }
    };
    let late =
        Commit { records: vec![record("c", Name::new("x"), &[], observed("x"))], ..commit("default", "r", "c", 1) };
    committed(journal, late).await;
    assert!(conflicts(journal, winding_up(1)).await, "what it cost is not known yet");
    committed(journal, winding_up(2)).await;
}

async fn records_name_their_parents_by_hash(journal: &dyn Journal) {
    let accepted = committed(journal, first("r")).await;
    let [question, routing] = accepted.records.as_slice() else { panic!("two records were committed") };
    assert_eq!(routing.header.parents, [question.header.content], "within one commit");
    let next = committed(journal, outcome("r", 1, "a")).await;
    assert_eq!(next.records[0].header.parents, [routing.header.content], "across commits");
    assert_ne!(question.header.content, Hash::ZERO);
}

async fn large_texts_come_back_whole(journal: &dyn Journal) {
    let text = "ä".repeat(50_000);
    committed(journal, first("r")).await;
    let large =
        Commit { records: vec![record("r", Name::new("big"), &[], observed(&text))], ..commit("default", "r", "r", 1) };
    committed(journal, large).await;
    let log = journal.load(&Workspace::default(), &id("r")).await.expect("the store works").expect("it exists");
    let observed = log.records.iter().find_map(|record| record.body.as_observed());
    let found = observed.and_then(|observed| observed.result.as_ref()).map(|result| result.text().to_owned());
    assert_eq!(found.as_deref(), Some(text.as_str()));
}

async fn workspaces_do_not_see_each_other(journal: &dyn Journal) {
    committed(journal, first("r")).await;
    let mut other = first("r");
    other.scope = scope("other");
    committed(journal, other).await;
    let other = Workspace::new("other").expect("a valid name");
    committed(journal, outcome("r", 1, "a")).await;
    assert_eq!(journal.events(&other, &id("r"), 0, 10).await.expect("the store works").len(), 2);
    let nobody = Workspace::new("oth").expect("a valid name");
    assert!(journal.load(&nobody, &id("r")).await.expect("the store works").is_none());
    assert!(journal.runs(&nobody, &RunFilter::default(), None, 9).await.expect("the store works").runs.is_empty());
}

async fn runs_are_listed_newest_first_in_pages(journal: &dyn Journal) {
    for n in 1..=5_i64 {
        let mut opening = first(&format!("r{n}"));
        opening.records[0].time = Timestamp::from_micros(n);
        committed(journal, opening).await;
    }
    committed(journal, end("r4", 1)).await;
    let page = async |filter: &RunFilter, cursor: Option<&str>, limit| {
        let page = journal.runs(&Workspace::default(), filter, cursor, limit).await.expect("the store works");
        (page.runs.iter().map(|run| run.run.to_string()).collect::<Vec<_>>().join(" "), page.next)
    };
    let all = RunFilter::default();
    let (runs, next) = page(&all, None, 2).await;
    assert_eq!(runs, "r5 r4");
    let (runs, next) = page(&all, next.as_deref(), 2).await;
    assert_eq!(runs, "r3 r2");
    assert_eq!(page(&all, next.as_deref(), 2).await, ("r1".to_owned(), None));
    let open = RunFilter { state: Some(RunState::Queued), ..RunFilter::default() };
    assert_eq!(page(&open, None, 9).await.0, "r5 r3 r2 r1");
    let search = RunFilter { search: Some("WHY".to_owned()), ..RunFilter::default() };
    assert_eq!(page(&search, None, 9).await.0, "r5 r4 r3 r2 r1");
    let (runs, next) = page(&open, None, 2).await;
    assert_eq!((runs.as_str(), next.as_deref()), ("r5 r3", Some("r2")));
    assert_eq!(page(&open, next.as_deref(), 2).await, ("r2 r1".to_owned(), None));
    let state =
        journal.run(&Workspace::default(), &id("r4")).await.expect("the store works").expect("it is there").state;
    let ended = RunFilter { state: Some(state), ..RunFilter::default() };
    assert_eq!(page(&ended, None, 9).await, ("r4".to_owned(), None));
    let found = RunFilter { search: Some("why".to_owned()), ..ended };
    assert_eq!(page(&found, None, 9).await, ("r4".to_owned(), None));
    let nothing = RunFilter { search: Some("nobody asked this".to_owned()), ..found };
    assert_eq!(page(&nothing, None, 9).await, (String::new(), None));
    let none = RunFilter { state: Some(RunState::Cancelled), ..RunFilter::default() };
    assert_eq!(page(&none, None, 9).await, (String::new(), None));
}

async fn runs_are_listed_by_task_type_and_from_a_time_on(journal: &dyn Journal) {
    for n in 1..=5_i64 {
        let mut opening = first(&format!("r{n}"));
        opening.records[0].time = Timestamp::from_micros(n);
        committed(journal, opening).await;
    }
    committed(journal, end("r4", 1)).await;
    let ended = journal.run(&Workspace::default(), &id("r4")).await.expect("the store works").expect("it is there");
    let page = async |filter: &RunFilter, cursor: Option<&str>, limit| {
        let page = journal.runs(&Workspace::default(), filter, cursor, limit).await.expect("the store works");
        (page.runs.iter().map(|run| run.run.to_string()).collect::<Vec<_>>().join(" "), page.next)
    };
    let since = |micros| RunFilter { since: Some(Timestamp::from_micros(micros)), ..RunFilter::default() };
    let (runs, next) = page(&since(3), None, 2).await;
    assert_eq!((runs.as_str(), next.as_deref()), ("r5 r4", Some("r3")));
    assert_eq!(page(&since(3), next.as_deref(), 2).await, ("r3".to_owned(), None));
    assert_eq!(page(&since(4), None, 2).await, ("r5 r4".to_owned(), None), "no page follows with what is older");
    assert_eq!(page(&since(6), None, 2).await, (String::new(), None));
    assert_eq!(page(&since(0), None, 9).await.0, "r5 r4 r3 r2 r1");
    for (state, micros, runs) in
        [(ended.state, 4, "r4"), (ended.state, 5, ""), (RunState::Queued, 2, "r5 r3 r2"), (RunState::Queued, 6, "")]
    {
        let filter = RunFilter { state: Some(state), ..since(micros) };
        assert_eq!(page(&filter, None, 9).await, (runs.to_owned(), None), "{state} since {micros}");
    }
    let of = |task_type: &str| RunFilter { task_type: Some(task_type.into()), ..RunFilter::default() };
    assert_eq!(page(&of("general"), None, 9).await.0, "r5 r4 r3 r2 r1");
    assert_eq!(page(&RunFilter { since: Some(Timestamp::from_micros(4)), ..of("general") }, None, 9).await.0, "r5 r4");
    for other in ["gener", "general\"", "research"] {
        assert_eq!(page(&of(other), None, 9).await, (String::new(), None), "{other}");
    }
}

async fn runs_are_found_by_the_beginning_of_their_ids(journal: &dyn Journal) {
    for run in ["ab", "abc", "b", "abd"] {
        committed(journal, first(run)).await;
    }
    let found = async |workspace: &Workspace, start: &str, limit| {
        let found = journal.with_prefix(workspace, start, limit).await.expect("the store works");
        found.iter().map(RunId::as_str).collect::<Vec<_>>().join(" ")
    };
    let here = Workspace::default();
    assert_eq!(found(&here, "ab", 9).await, "ab abc abd", "sorted");
    assert_eq!((found(&here, "ab", 2).await, found(&here, "abd", 9).await), ("ab abc".to_owned(), "abd".to_owned()));
    assert_eq!((found(&here, "", 9).await, found(&here, "x", 9).await), ("ab abc abd b".to_owned(), String::new()));
    assert_eq!(found(&Workspace::new("other").expect("a valid name"), "a", 9).await, "", "workspaces are apart");
}

async fn a_delayed_turn_is_not_due_before_its_time(journal: &dyn Journal) {
    let mut opening = first("r");
    opening.open.push(NewTurn { due: Some(Timestamp::from_micros(50)), ..turn("r", Name::new("deadline")) });
    committed(journal, opening).await;
    let due =
        async |micros| all_due_turns(journal, Timestamp::from_micros(micros)).await.expect("the store works").len();
    assert_eq!((due(49).await, due(50).await), (1, 2));
}

async fn due_turns_come_in_pages_without_those_that_are_claimed(journal: &dyn Journal) {
    for n in 0..7 {
        committed(journal, first(&format!("r{n}"))).await;
    }
    let taken = claim("r3", 1);
    assert!(matches!(claimed(journal, &taken).await, Claiming::Claimed { .. }));
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = journal.due_turns(Timestamp::from_micros(0), after.as_ref(), 2).await.expect("the store works");
        seen.extend(page.iter().map(|turn| turn.key.run.to_string()));
        after = page.last().map(|turn| turn.key.clone());
        if page.len() < 2 {
            break;
        }
    }
    assert_eq!(seen.join(" "), "r0 r1 r2 r4 r5 r6", "in order, each once, and not what somebody has");
    let of_run = journal.turns_of(&Workspace::default(), &id("r3")).await.expect("the store works");
    assert_eq!(of_run.iter().map(|turn| &turn.key).collect::<Vec<_>>(), [&taken.turn], "claimed or not");
    let in_hand = async |workspace: &Workspace| journal.in_hand(workspace).await.expect("the store works");
    assert_eq!(in_hand(&Workspace::default()).await, HashSet::from([id("r3")]));
    assert!(in_hand(&Workspace::new("other").expect("a valid name")).await.is_empty(), "workspaces are apart");
    journal.give_back(&taken).await.expect("the store works");
    assert!(in_hand(&Workspace::default()).await.is_empty());
}

const LIFE: Duration = Duration::from_mins(10);

/// A claim on a turn, always the same.
pub fn claim_on(turn: &TurnKey) -> Claim {
    Claim { turn: turn.clone(), id: ClaimId { process: 0, number: 0 } }
}

fn claim(run: &str, number: u64) -> Claim {
    Claim { id: ClaimId { process: 1, number }, ..claim_on(&key(run, Name::iteration(1))) }
}

async fn claimed(journal: &dyn Journal, claim: &Claim) -> Claiming {
    journal.claim(claim, LIFE).await.expect("the store works")
}

/// How often the turn was begun, if it could be claimed.
pub async fn begun(journal: &dyn Journal, claim: &Claim) -> Option<u32> {
    match claimed(journal, claim).await {
        Claiming::Claimed { begun, .. } => Some(begun),
        Claiming::Held | Claiming::Closed => None,
    }
}

async fn a_turn_that_is_given_back_does_not_count_as_begun(journal: &dyn Journal) {
    committed(journal, first("r")).await;
    let (one, two) = (claim("r", 1), claim("r", 2));
    assert_eq!(begun(journal, &one).await, Some(1));
    journal.give_back(&one).await.expect("the store works");
    assert_eq!(begun(journal, &two).await, Some(1));
    committed(journal, end("r", 1)).await;
    assert_eq!(claimed(journal, &claim("r", 3)).await, Claiming::Closed, "a closed turn cannot be claimed");
}

async fn a_turn_is_claimed_by_one_at_a_time(journal: Arc<dyn Journal>) {
    committed(&*journal, first("r")).await;
    let race = |number| {
        let journal = Arc::clone(&journal);
        tokio::spawn(async move { (number, begun(&*journal, &claim("r", number)).await) })
    };
    let racing: Vec<_> = (1..=8).map(race).collect();
    let mut winners = Vec::new();
    for racer in racing {
        let (number, begun) = racer.await.expect("no racer fails");
        winners.extend(begun.map(|_| number));
    }
    let [winner] = winners[..] else { panic!("one of them has it: {winners:?}") };
    let (held, other) = (claim("r", winner), claim("r", winner + 100));
    assert_eq!(claimed(&*journal, &other).await, Claiming::Held);
    let renew = async |claim: &Claim| journal.renew(claim, LIFE).await.expect("the store works");
    assert!(renew(&held).await, "who has it can keep it");
    assert!(!renew(&other).await, "and nobody else");
    journal.give_back(&other).await.expect("the store works");
    assert_eq!(claimed(&*journal, &other).await, Claiming::Held, "nobody gives back what another has");
    journal.give_back(&held).await.expect("the store works");
    assert!(begun(&*journal, &other).await.is_some());
    assert!(!renew(&held).await, "it is lost");
}

/// For journals that several processes share: `wait` lets their clock go on by as much.
pub async fn claims_expire<F: Future<Output = ()>>(journal: &dyn Journal, wait: impl Fn(Duration) -> F) {
    let life = Duration::from_secs(9);
    committed(journal, first("r")).await;
    let (one, two) = (claim("r", 1), claim("r", 2));
    let try_claim = async |claim: &Claim| journal.claim(claim, life).await.expect("the store works");
    assert_eq!(try_claim(&one).await, Claiming::Claimed { begun: 1, expires: true });
    wait(life / 3).await;
    assert!(journal.renew(&one, life).await.expect("the store works"));
    wait(life * 2 / 3).await;
    assert_eq!(try_claim(&two).await, Claiming::Held, "it was renewed");
    let due = async || all_due_turns(journal, Timestamp::from_micros(0)).await.expect("the store works").len();
    assert_eq!(due().await, 0);
    wait(life / 2).await;
    assert_eq!(due().await, 1, "whoever had it is gone");
    assert_eq!(try_claim(&two).await, Claiming::Claimed { begun: 2, expires: true }, "it was begun before");
    assert!(!journal.renew(&one, life).await.expect("the store works"), "it is lost");
    journal.give_back(&one).await.expect("the store works");
    assert_eq!(try_claim(&claim("r", 3)).await, Claiming::Held, "what is lost cannot be given back");
}
