//! The binary: all commands. The only place that wires adapters to ports.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what a command line is for")]

mod app;
mod cli;
mod commands;
mod failure;
mod seeds;
mod show;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    show::decide_colour(cli.global.color);
    start_logging();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failure::Failure::unexpected(error).report(),
    };
    let result = runtime.block_on(commands::run(cli));
    // What is still being read from a terminal must not keep the process alive.
    runtime.shutdown_background();
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}

/// Logs go to stderr; `RUST_LOG` chooses what.
fn start_logging() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
