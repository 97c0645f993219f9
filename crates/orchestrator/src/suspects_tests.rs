use super::*;
use crate::ports::Cut;
use trellis_domain::record::Name;
use trellis_domain::{RunId, Scope};
use trellis_patterns::react::IterationNames;

fn suspect(n: u32, times: u32, alone: u32) -> OpenTurn {
    let run = RunId::new(&format!("r{n}")).unwrap();
    let key = TurnKey { scope: Scope::default(), session: run.clone(), run, name: Name::iteration(1) };
    OpenTurn { key, due: None, root: false, begun: 0, cut: Cut { times, alone } }
}

/// Lives until a killer is tried, or everybody is cleared. Gives who was set aside; the counts are the next process's.
fn live(turns: &mut Vec<OpenTurn>, killers: &[OpenTurn]) -> (Vec<OpenTurn>, bool) {
    let kills = |turn: &OpenTurn| killers.iter().any(|killer| killer.key == turn.key);
    let (mut suspects, free): (Vec<_>, Vec<_>) = turns.iter().cloned().partition(|turn| turn.cut.times > 0);
    let mut aside = Vec::new();
    let mut in_hand: Vec<TurnKey> = free.iter().map(|turn| turn.key.clone()).collect();
    let mut crashed = free.iter().any(kills);
    while !crashed && let Some(trial) = next_trial(&mut suspects, 5) {
        match trial {
            Trial::SetAside(turn) => {
                turns.retain(|open| open.key != turn.key);
                aside.push(*turn);
            }
            Trial::Try(group) => {
                assert!(suspects.len() + 1 >= group.len(), "at most a half at a time");
                in_hand.extend(group.iter().map(|turn| turn.key.clone()));
                crashed = group.iter().any(kills);
                if !crashed {
                    turns.retain(|open| group.iter().all(|tried| tried.key != open.key));
                    in_hand.clear();
                }
            }
        }
    }
    for turn in turns.iter_mut().filter(|_| crashed) {
        let Cut { times, alone } = turn.cut;
        turn.cut = if in_hand.contains(&turn.key) {
            Cut { times: times + 1, alone: alone + u32::from(in_hand.len() == 1 && times > 0) }
        } else {
            Cut { times: 1, alone: 0 }
        };
    }
    (aside, crashed)
}

#[test]
fn a_killer_among_a_thousand_is_found_in_a_dozen_restarts_and_nobody_else_is_blamed() {
    for (count, which, most) in [(1, vec![0], 6), (7, vec![3], 9), (1001, vec![977], 14), (1001, vec![3, 500, 501], 40)]
    {
        let mut turns: Vec<_> = (0..count).map(|n| suspect(n, 0, 0)).collect();
        let killers: Vec<_> = which.iter().map(|n| suspect(*n, 0, 0)).collect();
        let mut set_aside: Vec<String> = Vec::new();
        let mut crashes = 0;
        loop {
            let (aside, died) = live(&mut turns, &killers);
            set_aside.extend(aside.into_iter().map(|turn| turn.key.run.to_string()));
            if !died {
                break;
            }
            crashes += 1;
            assert!(crashes <= most, "{crashes} crashes of {count}");
        }
        set_aside.sort();
        let mut expected: Vec<_> = killers.iter().map(|turn| turn.key.run.to_string()).collect();
        expected.sort();
        assert_eq!(set_aside, expected);
        assert!(turns.iter().all(|turn| turn.cut == Cut::default()), "nothing is left open");
    }
}

#[test]
fn who_was_never_alone_is_tried_alone_before_it_is_set_aside() {
    let next = |mut suspects: Vec<OpenTurn>| next_trial(&mut suspects, 5);
    assert_eq!(next(vec![suspect(1, 9, 1), suspect(2, 1, 0)]), Some(Trial::Try(vec![suspect(1, 9, 1)])));
    assert_eq!(next(vec![suspect(2, 1, 0), suspect(1, 9, 2)]), Some(Trial::SetAside(Box::new(suspect(1, 9, 2)))));
    assert_eq!(next(vec![suspect(1, 4, 3)]), Some(Trial::Try(vec![suspect(1, 4, 3)])));
    assert_eq!(next(Vec::new()), None);
}
