//! What a wake-up is on its way: it names a turn, nothing more. The journal has the rest.

use serde::{Deserialize, Serialize};
use trellis_domain::record::Name;
use trellis_domain::{Flow, RunId, Scope, SessionId, Timestamp, Workspace};
use trellis_orchestrator::ports::{OpenTurn, TurnKey};

/// Larger messages are none of ours.
const LARGEST: usize = 64 * 1024;

#[derive(Serialize, Deserialize)]
struct Wire {
    format: u32,
    workspace: Workspace,
    flow: Flow,
    run: RunId,
    session: SessionId,
    turn: Name,
    root: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    /// How often the turn was handed out before this message was written.
    #[serde(default)]
    handed_out: u32,
}

const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WakeUp {
    pub(crate) turn: OpenTurn,
    pub(crate) handed_out: u32,
}

/// Why a message is no wake-up. Its content is not repeated: it may be anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoWakeUp {
    #[error("it has {0} bytes")]
    TooLarge(usize),
    #[error("its format is {0}, and this version of Trellis reads {FORMAT}")]
    Format(u32),
    #[error("it is not what Trellis writes: {0}")]
    Unreadable(String),
}

impl WakeUp {
    pub(crate) fn write(&self) -> Vec<u8> {
        let OpenTurn { key: TurnKey { scope, run, session, name }, due, root, begun: _, cut: _ } = &self.turn;
        let wire = Wire {
            format: FORMAT,
            workspace: scope.workspace.clone(),
            flow: scope.flow.clone(),
            run: run.clone(),
            session: session.clone(),
            turn: name.clone(),
            root: *root,
            due: *due,
            handed_out: self.handed_out,
        };
        serde_json::to_vec(&wire).expect("names and numbers can be written")
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, NoWakeUp> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        if bytes.len() > LARGEST {
            return Err(NoWakeUp::TooLarge(bytes.len()));
        }
        // An error of serde may quote a value.
        let unreadable = |error: serde_json::Error| NoWakeUp::Unreadable(format!("{:?} error", error.classify()));
        let Format { format } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if format != FORMAT {
            return Err(NoWakeUp::Format(format));
        }
        let wire: Wire = serde_json::from_slice(bytes).map_err(unreadable)?;
        let scope = Scope { workspace: wire.workspace, flow: wire.flow };
        let key = TurnKey { scope, run: wire.run, session: wire.session, name: wire.turn };
        Ok(Self { turn: OpenTurn::new(key, wire.due, wire.root), handed_out: wire.handed_out })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake_up() -> WakeUp {
        let id = SessionId::new("r:1:0").unwrap();
        let scope = Scope { workspace: Workspace::new("ä.b").unwrap(), ..Scope::default() };
        let key = TurnKey { scope, run: SessionId::new("r").unwrap(), session: id, name: Name::new("step/4") };
        WakeUp { turn: OpenTurn::new(key, Some(Timestamp::from_micros(7)), true), handed_out: 3 }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut wake_up = wake_up();
        assert_eq!(WakeUp::read(&wake_up.write()), Ok(wake_up.clone()));
        wake_up.turn.due = None;
        assert_eq!(WakeUp::read(&wake_up.write()), Ok(wake_up));
    }

    #[test]
    fn this_format_keeps_being_read() {
        let kept = br#"{"format":1,"workspace":"w","flow":"f","run":"r","session":"r:1:0","turn":"i3","root":false}"#;
        let read = WakeUp::read(kept).unwrap();
        assert_eq!((read.turn.key.name.as_str(), read.handed_out, read.turn.due), ("i3", 0, None));
    }

    #[test]
    fn what_is_no_wake_up_is_told_apart_and_not_repeated() {
        let none = |bytes: &[u8]| WakeUp::read(bytes).unwrap_err();
        assert_eq!(none(&vec![b' '; LARGEST + 1]), NoWakeUp::TooLarge(LARGEST + 1));
        assert_eq!(none(br#"{"format":2}"#), NoWakeUp::Format(2));
        for text in ["", "\u{0}", "[]", "secret", r#"{"format":1,"workspace":"secret/"}"#, r#"{"format":"secret"}"#] {
            let error = none(text.as_bytes());
            assert!(matches!(error, NoWakeUp::Unreadable(_)) && !error.to_string().contains("secret"), "{error}");
        }
        assert!(matches!(none(b"\xff\xfe"), NoWakeUp::Unreadable(_)));
    }
}
