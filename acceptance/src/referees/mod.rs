//! Material that others have made to judge agents, used to judge what is done with the calls of a model.
//!
//! `cargo xtask acceptance` fetches it into `target/referees`; nothing of it lies in the repository.

mod chance;
mod listed;
mod player;
mod tau2;

pub use chance::Chance;
pub use listed::{Listed, ListedTool, Played, documents, lines};
pub use player::{Call, Player, function_name};
pub use tau2::{Domain, Kill, Moment, Solved};

use std::path::{Path, PathBuf};

/// Where the package `inspect_evals` is unpacked.
pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/referees");
    assert!(folder.join("made").exists(), "{} is not there: run `cargo xtask acceptance`", folder.display());
    folder
}

/// Whether everything is wanted, which takes long, and not only a sample.
pub fn all_is_wanted() -> bool {
    std::env::var_os("TRELLIS_REFEREES").is_some_and(|value| value == "all")
}
