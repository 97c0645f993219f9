//! The promises, each a function over the finished world. Those of a single run are the orchestrator's own, as `verify`
//! asks them.

use crate::breakage::Breakage;
use crate::simulation::{FinishedRun, FinishedWorld};
use std::time::Duration;
use trellis_domain::fan_out::JoinCause;
use trellis_domain::park::answer;
use trellis_domain::record::{Core, Name, Record};
use trellis_domain::{Hash, Workspace};
use trellis_orchestrator::promises::{self as of_a_run, RunEvidence};

/// A promise by its name.
pub type WorldPromise = (&'static str, fn(&FinishedWorld) -> Vec<String>);

pub const PROMISES: [WorldPromise; 10] = [
    ("unrecorded means unperformed", unrecorded_means_unperformed),
    ("paid once", paid_once),
    ("no unsafe call is made twice unasked", no_unsafe_call_is_made_twice_unasked),
    ("answered once", answered_once),
    ("followers are not misled", followers_are_not_misled),
    ("every run keeps its promises", every_run_keeps_its_promises),
    ("no leak across workspaces", no_leak_across_workspaces),
    ("bounded", bounded),
    ("no commit vanishes", no_commit_vanishes),
    ("nobody starves", nobody_starves),
];

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    pub promise: &'static str,
    pub what: String,
}

pub fn broken(world: &FinishedWorld) -> Vec<Breach> {
    let told = |(promise, check): WorldPromise| check(world).into_iter().map(move |what| Breach { promise, what });
    PROMISES.into_iter().flat_map(told).collect()
}

fn all_records(world: &FinishedWorld) -> impl Iterator<Item = (&FinishedRun, &Record)> {
    world.runs.iter().flat_map(|run| run.records.iter().map(move |record| (run, &**record)))
}

/// Whatever a call's outcome follows from was recorded before the call was made.
pub fn unrecorded_means_unperformed(world: &FinishedWorld) -> Vec<String> {
    let mut wrong = Vec::new();
    for (run, record) in all_records(world) {
        let header = &record.header;
        if record.body.as_observed().is_some_and(|observed| observed.idempotency_key.is_none()) {
            // What was told in the place of a call.
            continue;
        }
        let place = (run.workspace.clone(), header.session.clone(), header.name.clone());
        // Of several, the one that this came of was the last before it, at the latest.
        let recorded = world.seen.recorded.get(&place).map_or(u64::MAX, |recorded| recorded.order);
        let mut before = world.seen.calls.iter().filter(|call| call.place == place && call.order < recorded);
        let is_repeated =
            world.seen.recorded.contains_key(&(place.0.clone(), place.1.clone(), Name::intent(&place.2, 2)));
        let Some(first) = (if is_repeated { before.next_back() } else { before.next() }) else { continue };
        // A call that was made again may have heard what was said after it was made first.
        for cause in header.causes.iter().filter(|cause| !matches!(cause.name.core(), Some(Core::Told(_)))) {
            let session = cause.session_seen_from(&header.session).clone();
            let cause = (run.workspace.clone(), session, cause.name.clone());
            if world.seen.recorded.get(&cause).is_none_or(|cause| cause.order > first.order) {
                wrong.push(format!("{}/{} was called before {}/{} was recorded", place.1, place.2, cause.1, cause.2));
            }
        }
    }
    wrong
}

/// What was recorded when a worker read the session is not called again. Where nobody was interrupted, nothing is.
pub fn paid_once(world: &FinishedWorld) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut made = std::collections::BTreeMap::<_, u32>::new();
    for call in &world.seen.calls {
        *made.entry(&call.place).or_default() += 1;
        let known = world.seen.recorded.get(&call.place);
        if known.is_some_and(|known| known.order < call.order && known.version <= call.loaded) {
            wrong.push(format!("{}/{} was called although it was recorded", call.place.1, call.place.2));
        }
    }
    if world.scenario.interrupts_nobody() {
        let repeated = made.into_iter().filter(|(_, times)| *times > 1);
        wrong.extend(repeated.map(|((_, session, name), times)| format!("{session}/{name} was called {times} times")));
    }
    wrong
}

/// An unsafe call is made no more often than it is on record that it would be, and again only if somebody chose that.
pub fn no_unsafe_call_is_made_twice_unasked(world: &FinishedWorld) -> Vec<String> {
    let mut made = std::collections::BTreeMap::<_, usize>::new();
    for call in world.seen.calls.iter().filter(|call| call.is_of_tool) {
        *made.entry(&call.place).or_default() += 1;
    }
    let mut wrong = Vec::new();
    for (run, record) in all_records(world) {
        let Some((outcome, n)) = record.header.name.as_intent() else { continue };
        let session = &record.header.session;
        let of_session = || run.records.iter().filter(|record| record.header.session == *session);
        let chosen = |number: u32| {
            let settled = of_session().filter_map(|record| record.body.as_settled());
            settled.filter(move |settled| settled.number == number).flat_map(|settled| &settled.decision.chosen)
        };
        let before = Name::intent(&outcome, n - 1);
        let about = of_session().filter_map(|record| record.body.as_parked()).filter(|park| park.about == before);
        if n > 1 && !about.flat_map(|park| chosen(park.number)).any(|chosen| chosen == answer::RETRY) {
            wrong.push(format!("{session}/{outcome} was about to be called again, and nobody had chosen that"));
        }
    }
    let unsafe_in = Workspace::default();
    for (place, times) in made.into_iter().filter(|(place, _)| place.0 == unsafe_in) {
        let intents = (1..).map(|n| (place.0.clone(), place.1.clone(), Name::intent(&place.2, n)));
        let intended = intents.take_while(|intent| world.seen.recorded.contains_key(intent)).count();
        if times > intended {
            wrong.push(format!("{}/{} was called {times} times and intended {intended} times", place.1, place.2));
        }
    }
    wrong
}

/// Every question has one end, and every connection that stays hears it once.
pub fn answered_once(world: &FinishedWorld) -> Vec<String> {
    let mut wrong = Vec::new();
    for run in &world.runs {
        wrong.extend(run.received.trouble.iter().map(|trouble| format!("question {}: {trouble}", run.question)));
        let Some(id) = &run.received.run else { continue };
        if !of_a_run::has_ended(&run.records) {
            wrong.push(format!("question {} has no end", run.question));
        }
        // With this mistake, callers hear of the end from whoever tries to write it.
        let by_workers = world.seen.ends_tried.get(&(run.workspace.clone(), id.clone())).copied().unwrap_or(0);
        let mistaken = world.breakage == Some(Breakage::EndOfDialogByTheWorker) && by_workers > 1;
        if mistaken || run.received.ends.iter().any(|ends| *ends != 1) {
            wrong.push(format!("question {}: the ends of the dialog: {:?}", run.question, run.received.ends));
        }
    }
    wrong
}

/// In whatever process somebody follows a run: records come in order, without a gap and in time, and text is the beginning
/// of its message.
pub fn followers_are_not_misled(world: &FinishedWorld) -> Vec<String> {
    let misled = |run: &FinishedRun| -> Vec<_> {
        run.received.misled.iter().map(|what| format!("question {}: {what}", run.question)).collect()
    };
    world.runs.iter().flat_map(misled).collect()
}

/// The promises that hold for each run by itself.
pub fn every_run_keeps_its_promises(world: &FinishedWorld) -> Vec<String> {
    let mut wrong = Vec::new();
    for run in world.runs.iter().filter(|run| of_a_run::has_ended(&run.records)) {
        let configurations = |hash: Hash| run.settings.get(&hash).cloned();
        let evidence = RunEvidence { records: &run.records, configurations: &configurations };
        wrong.extend(of_a_run::broken(evidence).into_iter().map(|what| format!("question {}: {what}", run.question)));
    }
    wrong
}

/// Nothing that was asked in one workspace is seen by a model or tool of another.
pub fn no_leak_across_workspaces(world: &FinishedWorld) -> Vec<String> {
    let mut wrong = Vec::new();
    for run in &world.runs {
        let mark = format!("q{}", run.question);
        let elsewhere = world.seen.calls.iter().filter(|call| call.place.0 != run.workspace);
        let leaks = elsewhere.filter(|call| call.text.contains(&mark));
        wrong.extend(leaks.map(|call| format!("{}/{} saw question {}", call.place.1, call.place.2, run.question)));
    }
    let misplaced = all_records(world).filter(|(run, record)| record.header.workspace != run.workspace);
    wrong.extend(misplaced.map(|(_, record)| format!("{}/{} is misplaced", record.header.session, record.header.name)));
    wrong
}

/// Everything comes to an end, and leaves nothing open.
pub fn bounded(world: &FinishedWorld) -> Vec<String> {
    world.open_turns.iter().map(|turn| format!("{turn} is still open")).collect()
}

/// What a worker was told is committed can be read afterwards, and is the same.
pub fn no_commit_vanishes(world: &FinishedWorld) -> Vec<String> {
    let kept =
        |(place, content): &&(_, Hash)| world.seen.recorded.get(place).is_none_or(|kept| kept.content != *content);
    let lost = world.seen.promised.iter().filter(kept);
    lost.map(|((_, session, name), _)| format!("{session}/{name} is gone or another one")).collect()
}

/// A join that waits for nobody is not late: crashes, pauses and lost wake-ups cost less than this.
const JOIN: Duration = Duration::from_secs(200);

pub fn nobody_starves(world: &FinishedWorld) -> Vec<String> {
    let mut wrong = Vec::new();
    for (run, record) in all_records(world) {
        let Some(joined) = record.body.as_joined().filter(|joined| joined.cause == JoinCause::AllEnded) else {
            continue;
        };
        let passed = |session: &_, name: Name| {
            world
                .seen
                .recorded
                .get(&(run.workspace.clone(), Clone::clone(session), name))
                .map(|recorded| recorded.passed)
        };
        let last = joined.members.iter().filter_map(|member| passed(&member.session, Name::end())).max();
        let join = passed(&record.header.session, record.header.name.clone());
        if let Some((last, join)) = last.zip(join)
            && join > last + JOIN
        {
            let late = join.saturating_sub(last).as_secs();
            wrong.push(format!("{}/{} came {late} s late", record.header.session, record.header.name));
        }
    }
    wrong
}
