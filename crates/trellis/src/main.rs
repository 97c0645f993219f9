//! The binary: all commands. The only place that wires adapters to ports.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what a command line is for")]

mod app;
mod cli;
mod commands;
mod desk;
mod failure;
mod gateway;
mod guarded;
mod limits;
mod model_settings;
mod named;
mod person;
mod query_settings;
mod seeds;
mod serving;
mod settings_file;
mod show;
mod tokens;
mod tool_settings;

use clap::Parser;
use std::process::ExitCode;

/// Sessions are many small strings that are made on one thread and dropped on another.
/// It also takes the place of the C library's allocator, which reserves 64 MB of addresses for each thread that ever
/// allocated: seven threads had taken half of a gigabyte before anything was asked.
#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Threads for what waits for the disk. Each sets aside memory for its stack; more of them would not be faster.
const BLOCKING: usize = 64;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == app::QUERY_WORKER) {
        return trellis_store::view::work().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == app::PDF_WORKER) {
        return trellis_readers::pdf::work().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let cli = cli::Cli::parse();
    show::decide_colour(cli.global.color);
    show::decide_marks(cli.global.ascii);
    start_logging(&cli);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(BLOCKING).build()
    {
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
fn start_logging(cli: &cli::Cli) {
    use std::io::IsTerminal;
    use tracing_subscriber::EnvFilter;
    let serve = if let cli::Command::Serve(serve) = &cli.command { Some(serve) } else { None };
    let (usual, format) = serve.map_or(("error", cli::LogFormat::Text), |serve| ("info", serve.log_format));
    // Engine and certificates log what their errors say as well.
    let usual = || EnvFilter::new(format!("{usual},fjall=off,lsm_tree=off,rmcp=off,rustls_platform_verifier=off"));
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| usual());
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let ansi = match cli.global.color {
        cli::Colour::Auto => std::io::stderr().is_terminal() && !plain,
        cli::Colour::Always => true,
        cli::Colour::Never => false,
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        cli::LogFormat::Text => log.with_ansi(ansi).init(),
        cli::LogFormat::Json => log.json().init(),
    }
}
