//! Why a template cannot be rendered.

/// The reason, in words that say how to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    Wrong {
        line: Option<usize>,
        reason: String,
    },
    TooLong {
        bytes: usize,
    },
    TooMuchWork,
    /// A value, or all of them together, would become larger than what a rendering may hold.
    TooLarge {
        bytes: usize,
    },
}

pub(super) type Outcome<T> = Result<T, Fault>;

impl Fault {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self::Wrong { line: None, reason: reason.into() }
    }

    /// Says where, unless that is known already.
    pub(super) fn at(self, at: usize) -> Self {
        match self {
            Self::Wrong { line: None, reason } => Self::Wrong { line: Some(at), reason },
            other @ (Self::Wrong { .. } | Self::TooLong { .. } | Self::TooMuchWork | Self::TooLarge { .. }) => other,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Wrong { line: Some(line), reason } => write!(f, "line {line}: {reason}"),
            Self::Wrong { line: None, reason } => f.write_str(reason),
            Self::TooLong { bytes } => write!(f, "it becomes longer than {bytes} bytes"),
            Self::TooMuchWork => f.write_str("it takes too many steps; are there loops within loops?"),
            Self::TooLarge { bytes } => {
                write!(
                    f,
                    "its values would take more than {bytes} bytes of memory; is one of them doubled again and again?"
                )
            }
        }
    }
}
