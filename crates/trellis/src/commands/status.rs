//! Who works, what waits and for whom.

use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::serving::Interrupt;
use crate::show::{aligned, clean, columns_for, print_json, print_line};
use serde_json::json;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;
use trellis_domain::counted;
use trellis_orchestrator::status::{Status, StatusProcess, StatusTurn};

/// How often it is shown to whoever watches.
const EVERY: Duration = Duration::from_secs(2);
/// Empties a terminal and begins at its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

pub(crate) async fn run(global: &Global, watch: bool) -> Result<Exit, Failure> {
    let mut interrupt = Interrupt::new()?;
    let redrawn = watch && global.output == Output::Text && !global.plain && std::io::stdout().is_terminal();
    loop {
        // Opened anew each time: whoever watches a folder must not keep others from it.
        let status = Desk::look(global, "status")?.status().await?;
        if redrawn {
            std::io::stdout().write_all(CLEAR.as_bytes())?;
        }
        if global.output == Output::Json {
            print_json(&json!(status).to_string())?;
        } else {
            lines(&status, columns_for(global)).iter().try_for_each(|line| print_line(line))?;
        }
        if !watch {
            return Ok(Exit::Ok);
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => if !redrawn { print_line("")? },
            () = interrupt.received() => return Ok(Exit::Ok),
        }
    }
}

fn lines(status: &Status, columns: Option<usize>) -> Vec<String> {
    let Status { processes, open_runs, waiting, in_hand, fan_ins, questions, later, more } = status;
    let processes_here = match processes.as_slice() {
        [] => vec!["no process works here".to_owned()],
        some => aligned(&some.iter().map(row_of).collect::<Vec<_>>(), columns),
    };
    let mut lines = vec![format!(
        "{}; waiting for agents: {}, for aggregators: {}; in hand: {}; later: {later}{}",
        counted(*open_runs, "open run"),
        waiting.agents,
        waiting.aggregators,
        in_hand.len(),
        if *more { "; there are more turns than were counted" } else { "" }
    )];
    lines.extend(processes_here);
    let lists = [
        ("in hand", "claimed until", in_hand),
        ("teams that are waited for", "deadline", fan_ins),
        ("questions to people", "expires", questions),
    ];
    for (head, until, turns) in lists.iter().filter(|(_, _, turns)| !turns.is_empty()) {
        lines.push(format!("{head}:"));
        let rows: Vec<_> = turns.iter().map(|turn| cells(turn, until)).collect();
        lines.extend(aligned(&rows, columns));
    }
    lines
}

fn row_of(process: &StatusProcess) -> Vec<String> {
    let since = process.since.get(..19).unwrap_or(&process.since);
    vec![format!("  {}", clean(&process.command)), clean(&process.id), format!("since {since}Z")]
}

fn cells(turn: &StatusTurn, until: &str) -> Vec<String> {
    let mut cells = vec![format!("  {}", clean(&turn.run_id))];
    // The session of a run's own agent has the name of the run.
    let name = if turn.session_id == turn.run_id {
        clean(&turn.turn)
    } else {
        format!("{}/{}", clean(&turn.session_id), clean(&turn.turn))
    };
    cells.push(name);
    cells.extend(turn.until.as_ref().map(|time| format!("{until} {}Z", time.get(..19).unwrap_or(time))));
    cells
}
