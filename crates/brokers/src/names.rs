//! Names of queues and subjects.
//!
//! Wake-ups of a role lie in a fixed number of lanes. A workspace always has the same lane, so that many wake-ups of one
//! workspace stand in the way of no workspace in another lane; inside a lane they are handed out fairly by the process that has
//! taken them.

use trellis_domain::{Hash, Workspace};
use trellis_orchestrator::ports::{Role, TurnKey};

/// The names of one deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    deployment: String,
    lanes: u16,
}

/// One queue of wake-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    pub(crate) role: Role,
    pub(crate) number: u16,
}

impl Lane {
    fn role(self) -> &'static str {
        match self.role {
            Role::Agent => "agent",
            Role::Aggregator => "aggregator",
        }
    }
}

impl Names {
    pub(crate) fn new(deployment: &str, lanes: u16) -> Self {
        Self { deployment: token(deployment), lanes: lanes.max(1) }
    }

    pub(crate) fn lanes(&self, role: Role) -> impl Iterator<Item = Lane> + use<> {
        (0..self.lanes).map(move |number| Lane { role, number })
    }

    pub(crate) fn all_lanes(&self) -> impl Iterator<Item = Lane> + use<> {
        self.lanes(Role::Agent).chain(self.lanes(Role::Aggregator))
    }

    pub(crate) fn lane(&self, role: Role, workspace: &Workspace) -> Lane {
        let hash = Hash::of(workspace.as_str());
        let [high, low, ..] = *hash.as_bytes();
        Lane { role, number: u16::from_be_bytes([high, low]) % self.lanes }
    }

    /// RabbitMQ: the queue, Pulsar: the topic of a lane.
    pub(crate) fn queue(&self, lane: Lane) -> String {
        format!("{}.wake-ups.{}.{}", self.deployment, lane.role(), lane.number)
    }

    /// RabbitMQ: where messages go that are no wake-ups, or that were handed out too often.
    pub(crate) fn set_aside(&self) -> String {
        format!("{}.wake-ups.set-aside", self.deployment)
    }

    /// RabbitMQ: the exchange, NATS: the subject, Pulsar: the topic of what processes tell each other.
    pub(crate) fn notices(&self) -> String {
        format!("{}.notices", self.deployment)
    }

    /// NATS: the stream of all wake-ups.
    pub(crate) fn stream(&self) -> String {
        format!("{}-wake-ups", self.deployment)
    }

    /// NATS: the subjects of all wake-ups.
    pub(crate) fn subjects(&self) -> String {
        format!("{}.wake-ups.>", self.deployment)
    }

    /// NATS: the subjects of a lane.
    pub(crate) fn lane_subjects(&self, lane: Lane) -> String {
        format!("{}.wake-ups.{}.{}.>", self.deployment, lane.role(), lane.number)
    }

    /// NATS: the consumer that all processes share for a lane.
    pub(crate) fn consumer(lane: Lane) -> String {
        format!("{}-{}", lane.role(), lane.number)
    }

    /// NATS: the subject of one turn. Workspace and flow are in it for people; the hash tells turns apart.
    pub(crate) fn subject(&self, lane: Lane, turn: &TurnKey) -> String {
        let (workspace, flow) = (token(turn.scope.workspace.as_str()), token(turn.scope.flow.as_str()));
        let key = [turn.scope.workspace.as_str(), turn.scope.flow.as_str(), turn.session.as_str(), turn.name.as_str()];
        let (deployment, role, hash) = (&self.deployment, lane.role(), short_hash(&key.join("\0")));
        format!("{deployment}.wake-ups.{role}.{}.{workspace}.{flow}.{hash}", lane.number)
    }
}

/// A name as one part of a queue's or a subject's name: letters, digits, `_` and `-` stay, every other byte is written as `=`
/// and two digits. What would become too long is cut and told apart by a hash.
pub(crate) fn token(name: &str) -> String {
    const LONGEST: usize = 64;
    const KEPT: usize = 40;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let escaped: String = name
        .bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("={byte:02X}") })
        .collect();
    match escaped.get(..KEPT) {
        Some(kept) if escaped.len() > LONGEST => format!("{kept}=={}", short_hash(name)),
        _ if escaped.is_empty() => "=".to_owned(),
        _ => escaped,
    }
}

/// 80 bits are enough to tell turns apart that are open together.
fn short_hash(text: &str) -> String {
    Hash::of(text).to_string()[..20].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::record::Name;
    use trellis_domain::{Flow, Scope, SessionId};

    fn turn(workspace: &str, flow: &str) -> TurnKey {
        let id = SessionId::new("s").unwrap();
        let scope = Scope { workspace: Workspace::new(workspace).unwrap(), flow: Flow::new(flow).unwrap() };
        TurnKey { scope, run: id.clone(), session: id, name: Name::new("i1") }
    }

    #[test]
    fn what_brokers_forbid_is_escaped_and_nothing_else() {
        assert_eq!(token("default"), "default");
        assert_eq!(token("a.b>c*d e"), "a=2Eb=3Ec=2Ad=20e");
        assert_eq!((token("ä=/"), token("")), ("=C3=A4=3D=2F".to_owned(), "=".to_owned()));
        let (long, longer) = ("x".repeat(300), "x".repeat(301));
        assert!(token(&long).len() <= 64 && token(&long) != token(&longer));
        assert!(token(&"ä".repeat(200)).is_ascii());
    }

    #[test]
    fn different_names_never_become_the_same() {
        let names = ["a.b", "a=2Eb", "a-b", "a_b", "A.b", "a", "=", "", "==", "default"];
        let tokens: std::collections::BTreeSet<_> = names.iter().map(|name| token(name)).collect();
        // Only the empty name shares its token: nothing that is named is empty.
        assert_eq!(tokens.len(), names.len(), "{tokens:?}");
    }

    #[test]
    fn a_subject_fits_into_a_line_of_the_protocol_whatever_the_names() {
        let names = Names::new(&"d".repeat(500), 8);
        let lane = names.lane(Role::Agent, &Workspace::default());
        let longest = turn(&"ü".repeat(200), &"漢".repeat(200));
        let subject = names.subject(lane, &longest);
        assert!(subject.len() < 300, "{subject}");
        assert_ne!(names.subject(lane, &turn("a", "b")), names.subject(lane, &turn("a", "c")));
        assert_eq!(Names::new("t.1", 4).queue(lane), format!("t=2E1.wake-ups.agent.{}", lane.number));
    }

    #[test]
    fn workspaces_spread_over_all_lanes() {
        let names = Names::new("trellis", 8);
        let of = |n: u32| names.lane(Role::Agent, &Workspace::new(&format!("w{n}")).unwrap()).number;
        let lanes: std::collections::BTreeSet<_> = (0..100).map(of).collect();
        assert_eq!(lanes.len(), 8);
        assert_eq!(of(7), of(7));
        assert_eq!(names.all_lanes().count(), 16);
    }
}
