//! Evaluation: asks the questions of a suite as ordinary runs, judges what came of them, and reports.

use crate::app::{self, App, Purpose};
use crate::cli::{Eval, Global, Output};
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::person;
use crate::serving::{Interrupt, Serving};
use crate::show::note;
use futures_util::StreamExt;
use std::path::Path;
use std::sync::Arc;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Body, Name};
use trellis_domain::{RequestId, RunId};
use trellis_evaluation::{
    Documents, FixtureTools, Item, Outcome, Report, Suite, Trial, TrialKey, recorded_tool_items, tool_items,
};
use trellis_orchestrator::accept::{Question, UnknownNames};
use trellis_orchestrator::hub::Item as Followed;
use trellis_orchestrator::ports::{Config as _, RealWorld, World};
use trellis_orchestrator::{Orchestrator, RunService};

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
    let app = App::open(global, "eval", Purpose::Write).await.map_err(Failure::from)?;
    let tools = tool_items().into_iter().chain(recorded_tool_items(suite.items.iter().map(|item| &item.recorded)));
    put_tools(&app, tools.collect(), is_ours).await?;
    let instructions = instructions(&app).await?;
    let mut trials = Vec::new();
    for model in models(global, eval) {
        let trial = Trials { app: &app, eval, global, documents: &documents, instructions: &instructions };
        let asked = trial.of_model(&model, &suite, &mut trials);
        tokio::select! {
            asked = asked => asked?,
            () = interrupt.received() => {
                // What was asked was paid for.
                note("interrupted: the report is about the questions so far");
                report(global, eval, trials, baseline.as_ref())?;
                return Ok(Exit::Interrupted);
            }
        }
    }
    report(global, eval, trials, baseline.as_ref())
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

/// What all trials of an evaluation have in common.
struct Trials<'e> {
    app: &'e App,
    eval: &'e Eval,
    global: &'e Global,
    documents: &'e Documents,
    instructions: &'e [String],
}

impl Trials<'_> {
    /// Asks all questions under all patterns.
    async fn of_model(&self, model: &Global, suite: &Suite, trials: &mut Vec<Trial>) -> Result<(), Failure> {
        let models = app::models(model)?;
        let name = models.names().join(", then ");
        let operator = limits::of_operator(model, &[])?;
        let mut fixtures = None;
        let orchestrator = self.app.orchestrator_with(operator, models, |inner| {
            let tools = Arc::new(FixtureTools::new(inner, self.documents.clone()));
            fixtures = Some(Arc::clone(&tools));
            tools
        });
        let fixtures = fixtures.ok_or_else(|| Failure::unexpected("the tools were not asked for"))?;
        let serving = Serving::start(&orchestrator);
        let asked = self.eval.patterns.iter().flat_map(|pattern| {
            let repeats = move |item| (1..=self.eval.repeat).map(move |repeat| (item, pattern, repeat));
            suite.items.iter().take(self.eval.first.unwrap_or(usize::MAX)).flat_map(repeats)
        });
        let one = |(item, pattern, repeat): (_, &String, _)| {
            let key = TrialKey { model: name.clone(), pattern: pattern.clone(), repeat };
            self.one(&orchestrator, &fixtures, item, key)
        };
        let mut running = futures_util::stream::iter(asked.map(one)).buffered(usize::from(self.eval.at_once));
        while let Some(trial) = running.next().await {
            let trial = trial?;
            if !self.global.quiet {
                note(&line(&trial));
            }
            trials.push(trial);
        }
        drop(running);
        serving.abandon().await
    }

    /// Asks one question and judges what came of it.
    async fn one(
        &self,
        orchestrator: &Arc<Orchestrator>,
        fixtures: &FixtureTools,
        item: &Item,
        key: TrialKey,
    ) -> Result<Trial, Failure> {
        let request_id = RequestId::new(&RealWorld.fresh_id()).map_err(Failure::unexpected)?;
        let run = RunId::for_request(&self.app.scope, &request_id);
        fixtures.for_session(run.clone(), item.recorded.clone());
        let outcome = self.outcome(orchestrator, item, &key, request_id).await;
        fixtures.forget(&run);
        let trial = Trial::graded(item, key, outcome?);
        Ok(trial.with_instructions(self.instructions.iter().map(String::as_str)))
    }

    async fn outcome(
        &self,
        orchestrator: &Arc<Orchestrator>,
        item: &Item,
        key: &TrialKey,
        request_id: RequestId,
    ) -> Result<Outcome, Failure> {
        let named = (key.pattern != TrialKey::AUTO).then_some(&key.pattern).or(item.pattern.as_ref());
        let tools: Vec<_> = item.tools.iter().chain(item.recorded.keys()).cloned().collect();
        let request = AgentRequest {
            question: item.question.clone(),
            pattern: named.cloned().unwrap_or_default(),
            group: (!tools.is_empty()).then_some(tools),
            ..AgentRequest::default()
        };
        let question = Question {
            scope: self.app.scope.clone(),
            request_id,
            request,
            limits: SomeLimits::default(),
            names: UnknownNames::Refuse,
            by: Some(person::caller()),
        };
        let runs = RunService::new(orchestrator);
        let run = runs.accept(question).await?.run;
        // Where only the router's choice is judged, nobody waits for an answer.
        let only_routed = item.check.is_none() && named.is_none();
        let mut followed = runs.follow(self.app.workspace(), &run, 0);
        loop {
            let Followed::Record(record) = followed.next().await? else { continue };
            let name = &record.header.name;
            let is_of_run = record.header.session == run;
            if is_of_run && *name == Name::end() {
                break;
            }
            // Nobody is there to answer.
            let waits = matches!(record.body, Body::Parked(_));
            if waits || is_of_run && *name == Name::pattern_decision() && only_routed {
                runs.cancel(self.app.workspace(), &run, &person::caller()).await?;
            }
        }
        let records = runs.all_records(self.app.workspace(), &run).await?;
        Ok(Outcome::of(&records.iter().map(|record| (**record).clone()).collect::<Vec<_>>()))
    }
}

fn in_workspace(global: &Global) -> Global {
    let workspace = global.workspace.clone().or_else(|| Some(WORKSPACE.to_owned()));
    Global { workspace, ..global.clone() }
}

/// The models to compare, each as it would be named for all commands.
fn models(global: &Global, eval: &Eval) -> Vec<Global> {
    if eval.models.is_empty() {
        return vec![global.clone()];
    }
    eval.models.iter().map(|model| Global { model: vec![model.clone()], ..global.clone() }).collect()
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

/// One question, for whoever waits.
fn line(trial: &Trial) -> String {
    let verdict = match trial.is_right() {
        Some(true) => "right",
        Some(false) => "wrong",
        None => "not judged",
    };
    let Trial { item, key, why, outcome, .. } = trial;
    let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{item} {}: {verdict}, {} calls, {} ms{why}", key.pattern, outcome.model_calls, outcome.ms)
}

fn report(global: &Global, eval: &Eval, trials: Vec<Trial>, baseline: Option<&Report>) -> Result<Exit, Failure> {
    let name = eval.suite.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let report = Report::new(name, trials);
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
    Ok(if comparison.is_some_and(|comparison| comparison.has_regressions()) { Exit::Partial } else { Exit::Ok })
}
