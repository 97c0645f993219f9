//! Which wake-ups this process has sent that may still wait at the broker.
//!
//! Every process looks every few seconds for open turns that nobody handles, and wakes them. While a queue is long, that would
//! make it longer and longer. A turn that was sent is sent again only if its lane has been seen empty since, or if the last time
//! is long ago; and the next time has to be twice as long ago.

use crate::names::Lane;
use std::collections::{HashMap, VecDeque};
use trellis_domain::Timestamp;
use trellis_orchestrator::ports::TurnKey;

/// The sweep comes every 5 s.
const FIRST_PAUSE_MS: u64 = 8_000;
const LONGEST_PAUSE_MS: u64 = 60_000;
/// What is older or more is forgotten: then a turn may be sent once more.
const KEPT_MS: u64 = 10 * 60_000;
const KEPT: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct Sent {
    turns: HashMap<TurnKey, SentTurn>,
    /// In the order of sending. An entry that does not match its turn's time is outdated.
    order: VecDeque<(TurnKey, Timestamp)>,
    /// When each lane was last seen empty.
    empty: HashMap<Lane, Timestamp>,
    looked: HashMap<Lane, Timestamp>,
}

#[derive(Debug, Clone, Copy)]
struct SentTurn {
    at: Timestamp,
    pause_ms: u64,
}

impl Sent {
    /// Whether a turn may be sent now.
    pub(crate) fn may_send(&mut self, lane: Lane, turn: &TurnKey, now: Timestamp) -> bool {
        self.forget_old(now);
        let Some(sent) = self.turns.get(turn) else { return true };
        let passed = self.empty.get(&lane).is_some_and(|empty| *empty > sent.at);
        passed || now.ms_since(sent.at) >= sent.pause_ms
    }

    /// Whether it is worth asking how long a lane is: at most once a second.
    pub(crate) fn should_look(&mut self, lane: Lane, now: Timestamp) -> bool {
        let looked = self.looked.get(&lane).is_some_and(|looked| now.ms_since(*looked) < 1_000);
        if !looked {
            self.looked.insert(lane, now);
        }
        !looked
    }

    /// The lane had no message waiting when it was asked at this time: what was sent before has been taken.
    pub(crate) fn seen_empty(&mut self, lane: Lane, asked: Timestamp) {
        self.empty.insert(lane, asked);
    }

    pub(crate) fn note(&mut self, lane: Lane, turn: &TurnKey, now: Timestamp) {
        let passed = |sent: &SentTurn| self.empty.get(&lane).is_some_and(|empty| *empty > sent.at);
        let before = self.turns.get(turn).filter(|sent| !passed(sent));
        let pause_ms = before.map_or(FIRST_PAUSE_MS, |sent| (sent.pause_ms * 2).min(LONGEST_PAUSE_MS));
        self.turns.insert(turn.clone(), SentTurn { at: now, pause_ms });
        self.order.push_back((turn.clone(), now));
    }

    /// It has come, or it was not sent after all.
    pub(crate) fn forget(&mut self, turn: &TurnKey) {
        self.turns.remove(turn);
    }

    fn forget_old(&mut self, now: Timestamp) {
        while let Some((turn, at)) = self.order.front() {
            if self.order.len() <= KEPT && now.ms_since(*at) < KEPT_MS {
                return;
            }
            if self.turns.get(turn).is_some_and(|sent| sent.at == *at) {
                self.turns.remove(turn);
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::record::Name;
    use trellis_domain::{Scope, SessionId};
    use trellis_orchestrator::ports::Role;

    const LANE: Lane = Lane { role: Role::Agent, number: 0 };

    fn turn(n: u32) -> TurnKey {
        let id = SessionId::new("s").unwrap();
        TurnKey { scope: Scope::default(), run: id.clone(), session: id, name: Name::new(format!("i{n}")) }
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_micros(0).plus_ms(ms)
    }

    /// How often a turn is sent if it is published every 5 s.
    fn sweep(sent: &mut Sent, seconds: u64) -> usize {
        let times = (0..seconds).step_by(5).map(|second| at(second * 1_000));
        times
            .filter(|now| {
                let may = sent.may_send(LANE, &turn(1), *now);
                if may {
                    sent.note(LANE, &turn(1), *now);
                }
                may
            })
            .count()
    }

    #[test]
    fn a_turn_that_waits_is_sent_again_ever_more_seldom() {
        assert_eq!(sweep(&mut Sent::default(), 10), 1);
        let in_an_hour = sweep(&mut Sent::default(), 3_600);
        assert!((50..=65).contains(&in_an_hour), "sent {in_an_hour} times");
    }

    #[test]
    fn one_that_has_been_taken_is_sent_at_once() {
        let mut sent = Sent::default();
        sent.note(LANE, &turn(1), at(0));
        assert!(!sent.may_send(LANE, &turn(1), at(10)));
        assert!(sent.may_send(LANE, &turn(2), at(10)));
        // Empty before it was sent says nothing, and neither does another lane.
        sent.seen_empty(LANE, at(0));
        sent.seen_empty(Lane { number: 1, ..LANE }, at(5));
        assert!(!sent.may_send(LANE, &turn(1), at(10)));
        sent.seen_empty(LANE, at(5));
        assert!(sent.may_send(LANE, &turn(1), at(10)));
        sent.note(LANE, &turn(2), at(6));
        sent.forget(&turn(2));
        assert!(sent.may_send(LANE, &turn(2), at(7)));
    }

    #[test]
    fn a_lane_is_looked_at_once_a_second() {
        let mut sent = Sent::default();
        assert!(sent.should_look(LANE, at(0)));
        assert!(!sent.should_look(LANE, at(999)));
        assert!(sent.should_look(LANE, at(1_000)));
    }

    #[test]
    fn what_is_kept_is_bounded_in_number_and_time() {
        let mut sent = Sent::default();
        for n in 0..u32::try_from(KEPT).unwrap() + 500 {
            sent.note(LANE, &turn(n), at(u64::from(n)));
            sent.may_send(LANE, &turn(n), at(u64::from(n)));
        }
        assert!(sent.turns.len() <= KEPT && sent.order.len() <= KEPT, "{}", sent.turns.len());
        assert!(sent.may_send(LANE, &turn(1), at(u64::MAX / 1_000_000)));
        assert_eq!((sent.turns.len(), sent.order.len()), (0, 0));
    }
}
