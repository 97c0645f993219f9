//! The binary: all commands. The only place that wires adapters to ports.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what a command line is for")]

mod app;
mod cli;
mod cluster;
mod commands;
mod desk;
mod failure;
mod gateway;
mod guarded;
mod limits;
mod look;
mod model_settings;
mod named;
mod orchestrator_flags;
mod person;
mod query_settings;
mod seeds;
mod serving;
mod settings_file;
mod show;
mod state;
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
    if std::env::args_os().nth(1).is_some_and(|word| word == app::PARQUET_WORKER) {
        return trellis_tabular::parquet::work().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == app::PROGRAM_GUARD) {
        trellis_tools::mcp::stand_guard();
        return ExitCode::SUCCESS;
    }
    let mut cli = cli::Cli::parse();
    if cli.command.is_none() && !asks_a_person() {
        return tell_help();
    }
    cli.global.shared = cli.command.as_ref().map(cli::Command::shared).unwrap_or_default();
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

/// Whether somebody is there to type questions and to read answers.
fn asks_a_person() -> bool {
    use std::io::IsTerminal;
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// What a program gets that names no command.
fn tell_help() -> ExitCode {
    use clap::CommandFactory;
    show::note(&cli::Cli::command().render_help().ansi().to_string());
    failure::Exit::Usage.into()
}

/// Logs go to stderr; `RUST_LOG` chooses what.
fn start_logging(cli: &cli::Cli) {
    use std::io::IsTerminal;
    use tracing_subscriber::EnvFilter;
    let format = cli.command.as_ref().and_then(cli::Command::log_format);
    let (mut usual, format) = format.map_or(("error", cli::LogFormat::Text), |format| ("info", format));
    if let Some(cli::Command::Orchestrator(flags)) = &cli.command {
        usual = flags.log_level.word();
    }
    // Engine and certificates log what their errors say as well.
    let usual = || {
        EnvFilter::new(format!(
            "{usual},fjall=off,lsm_tree=off,lapin=off,async_nats=off,rmcp=off,rustls_platform_verifier=off"
        ))
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| usual());
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let ansi = match cli.global.color {
        cli::Colour::Auto => std::io::stderr().is_terminal() && !plain,
        cli::Colour::Always => true,
        cli::Colour::Never => false,
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(show::live::LogLines::default);
    match format {
        cli::LogFormat::Text => log.with_ansi(ansi).init(),
        cli::LogFormat::Json => log.json().init(),
    }
}
