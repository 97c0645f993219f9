//! Why the engine's files cannot be used.

/// Why the engine must not see its files.
#[derive(Debug)]
pub(crate) enum EngineFault {
    Io(std::io::Error),
    Damaged(String),
}

impl From<std::io::Error> for EngineFault {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
