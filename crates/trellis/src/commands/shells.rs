//! What shells and `man` know of the commands: made of the commands themselves.

use crate::cli::Cli;
use crate::failure::{Exit, Failure};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

pub(crate) fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "trellis", &mut script);
    crate::show::print_line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Ok)
}

/// `trellis.1`, and a page such as `trellis-run-show.1` for each command below.
pub(crate) fn manual(folder: &Path) -> Result<Exit, Failure> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| Failure::usage(format!("cannot write manual pages to {}: {error}", folder.display())))?;
    Ok(Exit::Ok)
}
