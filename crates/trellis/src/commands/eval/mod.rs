//! Evaluation: asks the questions of a suite as ordinary runs, judges what came of them, and reports.

mod answerer;
mod recording;
mod routed;
mod trials;

pub(super) use routed::RoutedOnly;

use crate::app::App;
use crate::cli::{Eval, Global, Output};
use crate::cluster::Cluster;
use crate::failure::{Exit, Failure};
use crate::person;
use crate::serving::Interrupt;
use crate::show::note;
use crate::state::Purpose;
use answerer::Answerer;
use std::path::Path;
use trellis_domain::config::StoredItem;
use trellis_evaluation::{Documents, Report, Suite, Trial, recorded_tool_items, tool_items};
use trials::Trials;

/// Where the runs go unless another workspace is named: their tools are none for other questions.
const WORKSPACE: &str = "evaluation";

pub(crate) async fn run(global: &Global, eval: &Eval) -> Result<Exit, Failure> {
    if global.url.is_some() {
        return Err(Failure::usage("`trellis eval` asks the models itself and works on a folder: leave --url out"));
    }
    let suite = read_suite(eval)?;
    let baseline = eval.baseline.as_deref().map(read_report).transpose()?;
    let documents = read_documents(eval)?;
    let mut interrupt = Interrupt::new()?;
    let is_ours = global.workspace.is_none();
    let global = &in_workspace(global);
    // Before the folder of the runs is opened: it may be the same one.
    let recorded = match &eval.replay {
        Some(folder) => Some(recording::read(global, folder).await?),
        None => None,
    };
    if Cluster::named(global)?.is_some() {
        return Err(Failure::usage("other workers would answer; evaluate in a data folder: name one with --data"));
    }
    let app = App::open(global, "eval", Purpose::Write).await.map_err(Failure::from)?;
    let tools = tool_items().into_iter().chain(recorded_tool_items(suite.items.iter().map(|item| &item.recorded)));
    put_tools(&app, tools.collect(), is_ours).await?;
    let instructions = instructions(&app).await?;
    let answerers = match recorded {
        Some(runs) => Answerer::of_recording(global, eval, runs)?,
        None => Answerer::of_models(&app, global, eval)?,
    };
    let trials = Trials { app: &app, eval, is_quiet: global.quiet, documents: &documents, instructions: &instructions };
    let mut judged = Vec::new();
    for answerer in answerers {
        if trials.ask_all(answerer, &suite, &mut judged, &mut interrupt).await?.is_break() {
            // What was asked was paid for.
            note(
                "interrupted: the report is about the questions so far; those that were not answered yet are cancelled",
            );
            report(global, eval, judged, baseline.as_ref())?;
            return Ok(Exit::Interrupted);
        }
    }
    report(global, eval, judged, baseline.as_ref())
}

/// The tools of the suite take no name that somebody's workspace has given to others.
async fn put_tools(app: &App, tools: Vec<StoredItem>, is_ours: bool) -> Result<(), Failure> {
    let (_, present) = app.config().all(app.workspace()).await?;
    let differs = |tool: &StoredItem| {
        present.iter().any(|item| (&item.kind, &item.key) == (&tool.kind, &tool.key) && item.value != tool.value)
    };
    if let Some(tool) = tools.iter().find(|tool| !is_ours && differs(tool)) {
        let (workspace, key) = (app.workspace(), &tool.key);
        return Err(Failure::usage(format!(
            "the workspace `{workspace}` has a tool `{key}` of its own; let the evaluation work in another one, or \
             remove it with `trellis config delete tool {key}`"
        )));
    }
    app.config().put(app.workspace(), tools, person::caller()).await?;
    Ok(())
}

fn in_workspace(global: &Global) -> Global {
    let workspace = global.workspace.clone().or_else(|| Some(WORKSPACE.to_owned()));
    Global { workspace, ..global.clone() }
}

fn read_suite(eval: &Eval) -> Result<Suite, Failure> {
    let unreadable = |why: String| Failure::usage(format!("{}: {why}", eval.suite.display()));
    let text = std::fs::read_to_string(&eval.suite).map_err(|error| unreadable(error.to_string()))?;
    Suite::parse(&text).map_err(|error| unreadable(error.to_string()))
}

fn read_report(file: &Path) -> Result<Report, Failure> {
    let unreadable = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?;
    Report::from_json(&text).map_err(|error| unreadable(error.to_string()))
}

fn read_documents(eval: &Eval) -> Result<Documents, Failure> {
    let beside = eval.suite.parent().map(|folder| folder.join("documents")).filter(|folder| folder.is_dir());
    match eval.documents.clone().or(beside) {
        Some(folder) => Documents::load(&folder).map_err(|error| Failure::usage(error.to_string())),
        None => Ok(Documents::new([])),
    }
}

/// What models are told: an answer that only repeats it is none.
async fn instructions(app: &App) -> Result<Vec<String>, Failure> {
    let settings = app.store.config.pin(app.workspace()).await?;
    Ok(settings.prompts.values().map(|prompt| prompt.text.clone()).collect())
}

fn report(global: &Global, eval: &Eval, trials: Vec<Trial>, baseline: Option<&Report>) -> Result<Exit, Failure> {
    let name = eval.suite.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let report = Report::new(name, trials);
    let report = if eval.replay.is_some() { report.from_recording() } else { report };
    let write = |file: &Path, text: String| {
        std::fs::write(file, text).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
    };
    if let Some(file) = &eval.report {
        write(file, report.to_json())?;
    }
    if let Some(file) = &eval.page {
        write(file, report.to_page())?;
    }
    let comparison = baseline.map(|baseline| report.compare(baseline));
    match global.output {
        Output::Json | Output::Ndjson => anstream::println!("{}", report.to_json()),
        Output::Text | Output::Csv => {
            anstream::println!("{}", report.to_table());
            if let Some(comparison) = &comparison {
                anstream::println!("\n{}", comparison.to_table());
            }
        }
    }
    if report.covers_nothing() {
        note("the recording has no reply to any of these questions as they are asked now");
        return Ok(Exit::Partial);
    }
    Ok(if comparison.is_some_and(|comparison| comparison.has_regressions()) { Exit::Partial } else { Exit::Ok })
}
