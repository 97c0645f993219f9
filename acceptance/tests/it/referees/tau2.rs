//! Tasks of tau2-bench, solved by runs of the program: its tools change a database, which must be right in the end.

use acceptance::referees::{Call, Chance, Domain, Kill, Moment, Solved, all_is_wanted};
use std::collections::BTreeMap;

/// So many tasks are a sample: those with most calls that change something. In every second of them the program is killed.
const SAMPLE: usize = 5;
/// So often it is killed in one task.
const KILLS: usize = 3;
/// After the first time it is killed at one of so many calls, or questions to the model, of each of its lives.
const SOON: usize = 2;
/// Longer than an answer of the model takes to be read and recorded.
const LONGEST_DELAY: usize = 60;

/// What the calls of each tool change, as it was discovered.
type Effects = BTreeMap<String, String>;

/// Whether a call changes something, or somebody's day.
fn is_unsafe(call: &Call) -> bool {
    const READS: [&str; 5] = ["get_", "find_", "search_", "list_", "calculate"];
    !READS.iter().any(|read| call.tool.starts_with(read))
}

fn check_effects(domain: &Domain, effects: &Effects) {
    for call in domain.tasks().values().flatten() {
        let effect = if is_unsafe(call) { "unsafe" } else { "read" };
        assert_eq!(effects[&call.tool], effect, "{}", call.tool);
    }
}

/// The tasks that are wanted.
fn chosen(domain: &Domain) -> Vec<String> {
    let changes = |task: &String| domain.tasks()[task].iter().filter(|call| is_unsafe(call)).count();
    let mut names: Vec<_> = domain.tasks().keys().cloned().collect();
    if !all_is_wanted() {
        names.sort_by_key(|task| std::cmp::Reverse(changes(task).min(3)));
        names.truncate(SAMPLE);
    }
    names
}

fn times(calls: &[Call], call: &Call) -> usize {
    calls.iter().filter(|made| *made == call).count()
}

#[track_caller]
fn check(task: &str, gold: &[Call], solved: &Solved) {
    for call in gold {
        let made = times(&solved.made, call);
        assert!(made >= 1, "task {task}: {call:?} was not made");
        assert!(made == 1 || !is_unsafe(call), "task {task}: {call:?} was made {made} times");
    }
    let foreign: Vec<_> = solved.made.iter().filter(|call| !gold.contains(call)).collect();
    assert!(foreign.is_empty(), "task {task}: nobody asked for {foreign:?}");
    let changes = |calls: &[Call]| calls.iter().filter(|call| is_unsafe(call)).cloned().collect::<Vec<_>>();
    assert_eq!(changes(&solved.made), changes(gold), "task {task}: what changes something is made in its order");
    assert_eq!(solved.state, solved.right, "task {task}");
}

/// The first kill hits a call that changes something, before, after or in the place of it; the others come as they may.
fn kills(number: usize, chance: &mut Chance, gold: &[Call]) -> Vec<Kill> {
    let mut calls: Vec<&Call> = Vec::new();
    for call in gold {
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
    let changes: Vec<_> = (1..).zip(calls).filter(|(_, call)| is_unsafe(call)).map(|(at, _)| at).collect();
    let mut kills = Vec::new();
    if !changes.is_empty() {
        let moments = [Moment::Lost, Moment::After, Moment::Before];
        kills.push(Kill { at: changes[chance.below(changes.len())], moment: moments[number % moments.len()] });
    }
    while kills.len() < KILLS {
        let delay = u64::try_from(chance.below(LONGEST_DELAY)).unwrap();
        let moments = [Moment::Lost, Moment::Before, Moment::After, Moment::Asked(delay)];
        kills.push(Kill { at: 1 + chance.below(SOON), moment: moments[chance.below(moments.len())] });
    }
    kills
}

/// What the program was put through, over all tasks.
#[derive(Debug, Default)]
struct Tally {
    tasks: usize,
    killed: usize,
    /// What was answered about calls of which nobody knew whether they were made.
    answers: BTreeMap<&'static str, usize>,
}

/// The tasks one after the other, each in a database of its own.
async fn solve(name: &str, seed: u64) {
    let mut domain = Domain::open(name).await;
    check_effects(&domain, &domain.effects().await);
    let (mut chance, mut tally) = (Chance::new(seed), Tally::default());
    for (number, task) in chosen(&domain).into_iter().enumerate() {
        let gold = domain.tasks()[&task].clone();
        let (quietly, killed) = (number % 2 == 1 || all_is_wanted(), number % 2 == 0 || all_is_wanted());
        if quietly {
            let solved = domain.solve(&task, &[]).await;
            check(&task, &gold, &solved);
            assert!(solved.decided.is_empty() && solved.killed == 0, "task {task}: {solved:?}");
        }
        if killed {
            let kills = kills(number / 2, &mut chance, &gold);
            let solved = domain.solve(&task, &kills).await;
            check(&task, &gold, &solved);
            tally.killed += solved.killed;
            for (call, choice) in &solved.decided {
                assert!(is_unsafe(call), "task {task}: somebody was asked about {call:?}");
                *tally.answers.entry(*choice).or_default() += 1;
            }
        }
        tally.tasks += 1;
    }
    println!("{name}: {tally:?}");
    let Tally { killed, answers, .. } = &tally;
    assert!(*killed >= KILLS && answers.contains_key("result") && answers.contains_key("retry"), "{tally:?}");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_airline_is_served_and_each_change_is_made_once() {
    solve("airline", 1).await;
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_shop_is_served_and_each_change_is_made_once() {
    solve("retail", 2).await;
}
