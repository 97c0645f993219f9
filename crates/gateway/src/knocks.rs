//! Who comes with the wrong token, and how often.

use crate::access::{Access, Identity};
use crate::bounds;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_mins(1);
/// Addresses that are remembered.
const ADDRESSES: usize = 10_000;

/// What came of a knock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Knock {
    Known(Identity),
    Unknown,
    /// Too many wrong tokens came from there: no other is looked at for so many seconds.
    TooMany(u64),
}

/// Wrong tokens by address.
#[derive(Debug, Default)]
pub(crate) struct Knocks(Mutex<HashMap<IpAddr, Door>>);

#[derive(Debug)]
struct Door {
    /// When the first of the wrong ones came.
    since: Instant,
    wrong: u32,
    /// Who came in from there before. They are let in although somebody else, behind the same address, guesses.
    let_in: HashSet<String>,
}

impl Knocks {
    /// Whose token it is, if it may be looked at. Wrong ones are logged, without themselves.
    pub(crate) fn knock(&self, access: &Access, peer: Option<SocketAddr>, token: &str) -> Knock {
        self.knock_at(Instant::now(), access, peer, token)
    }

    fn knock_at(&self, now: Instant, access: &Access, peer: Option<SocketAddr>, token: &str) -> Knock {
        let identity = access.identify(token);
        if let Access::Open = access {
            return identity.map_or(Knock::Unknown, Knock::Known);
        }
        let address = peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| neighbourhood(peer.ip()));
        let mut doors = self.0.lock();
        if doors.len() >= ADDRESSES && !doors.contains_key(&address) {
            doors.retain(|_, door| door.wrong > 0 && now.duration_since(door.since) < WINDOW);
            if doors.len() >= ADDRESSES {
                doors.clear();
            }
        }
        let door = doors.entry(address).or_insert_with(|| Door { since: now, wrong: 0, let_in: HashSet::new() });
        if now.duration_since(door.since) >= WINDOW {
            (door.since, door.wrong) = (now, 0);
        }
        let is_closed = door.wrong >= bounds::WRONG_TOKENS;
        let left = WINDOW.saturating_sub(now.duration_since(door.since)).as_secs() + 1;
        match identity {
            Some(identity) => {
                let name = identity.shown().to_owned();
                if is_closed && !door.let_in.contains(&name) {
                    return Knock::TooMany(left);
                }
                door.let_in.insert(name);
                Knock::Known(identity)
            }
            // Whoever says nothing has guessed nothing.
            None if token.is_empty() => Knock::Unknown,
            None if is_closed => Knock::TooMany(left),
            None => {
                if door.wrong == 0 {
                    door.since = now;
                }
                door.wrong += 1;
                let wrong = door.wrong;
                drop(doors);
                tracing::warn!(from = %shown(peer), wrong, "a login was refused: nobody has that token");
                if wrong == bounds::WRONG_TOKENS {
                    tracing::warn!(from = %shown(peer), "too many wrong tokens; none is looked at for a minute");
                }
                Knock::Unknown
            }
        }
    }
}

fn shown(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "somewhere".to_owned(), |peer| peer.to_string())
}

/// Whoever has one address of IPv6 has a whole network of them.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(long) => {
            let [a, b, c, d, ..] = long.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        short @ IpAddr::V4(_) => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Token;

    fn access() -> Access {
        let user = |name: &str| (Token::new(format!("{name}-token")), Identity::user(name, []));
        Access::Tokens(vec![user("alice"), user("bob")])
    }

    fn known(knock: &Knock) -> bool {
        matches!(knock, Knock::Known(_))
    }

    #[test]
    fn after_too_many_wrong_tokens_a_right_one_is_not_told_apart() {
        let (knocks, access) = (Knocks::default(), access());
        let begin = Instant::now();
        let at = |now: Instant, host: &str, token: &str| {
            knocks.knock_at(now, &access, Some(format!("{host}:1").parse().unwrap()), token)
        };
        let from = |host: &str, token: &str| at(begin, host, token);
        assert!(known(&from("10.0.0.1", "alice-token")));
        for n in 0..bounds::WRONG_TOKENS {
            assert_eq!(from("10.0.0.1", &format!("guess-{n}")), Knock::Unknown);
            assert_eq!(from("10.0.0.1", ""), Knock::Unknown, "who says nothing does not guess");
        }
        assert_eq!(from("10.0.0.1", "another"), Knock::TooMany(61));
        assert_eq!(from("10.0.0.1", "bob-token"), Knock::TooMany(61), "a lucky guess looks like all others");
        assert!(known(&from("10.0.0.1", "alice-token")), "who was here before is not kept out by others");
        assert!(known(&from("10.0.0.2", "bob-token")), "other addresses are not meant");
        assert!(known(&at(begin + WINDOW, "10.0.0.1", "bob-token")));
    }

    #[test]
    fn a_network_of_addresses_is_one_guesser() {
        let (knocks, access) = (Knocks::default(), access());
        let now = Instant::now();
        let from =
            |n: u32| knocks.knock_at(now, &access, Some(format!("[2001:db8::{n:x}]:1").parse().unwrap()), "guess");
        let told: Vec<_> = (0..=bounds::WRONG_TOKENS).map(from).collect();
        assert_eq!(told.last(), Some(&Knock::TooMany(61)));
    }
}
