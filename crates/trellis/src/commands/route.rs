//! The choice of task type and pattern alone. It is made in a folder that is thrown away, with the configuration as it is: nothing of
//! it is recorded, and nothing else is done.

use super::decisions::Told;
use super::eval::RoutedOnly;
use super::read_input;
use crate::app::{self, App};
use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::look::RunView;
use crate::person;
use crate::serving::{Interrupt, Serving};
use crate::show::{clean, columns_for, print_json, print_said};
use crate::state::Purpose;
use serde_json::json;
use std::sync::Arc;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::Name;
use trellis_domain::{RequestId, RunId, Selection};
use trellis_orchestrator::RunService;
use trellis_orchestrator::accept::{Question, UnknownNames};
use trellis_orchestrator::hub::Item;
use trellis_orchestrator::ports::{RealWorld, World};
use trellis_tools::Outside;

pub(crate) async fn run(global: &Global, question: &str) -> Result<Exit, Failure> {
    let question = if question == "-" { read_input("the question")? } else { question.to_owned() };
    let (operator, models) = (limits::of_operator(global, &[])?, app::models(global)?);
    let mut interrupt = Interrupt::new()?;
    let (_, items) = Desk::work(global, "route", Purpose::Read).await?.items().await?;
    let folder = tempfile::TempDir::new()?;
    let aside = Global { data: Some(folder.path().to_owned()), url: None, ..global.clone() };
    let app = App::open(&aside, "route", Purpose::Write).await.map_err(Failure::from)?;
    take_over(&app, items).await?;

    let routed_only = Arc::new(RoutedOnly::new(app.prompter(models)));
    let orchestrator =
        app.orchestrator_with(operator, Arc::clone(&routed_only) as _, Outside::default(), |tools| tools);
    let runs = RunService::new(&orchestrator);
    let request_id = RequestId::new(&RealWorld.fresh_id()).map_err(Failure::unexpected)?;
    routed_only.begin(RunId::for_request(&app.scope, &request_id));
    let question = Question {
        scope: app.scope.clone(),
        request_id,
        request: AgentRequest { question: question.trim().to_owned(), ..AgentRequest::default() },
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        selection: Selection::default(),
        by: Some(person::caller()),
    };
    let run = runs.accept(question).await?.run;
    let mut serving = Serving::start(&orchestrator);
    let routed = tokio::select! {
        routed = until_routed(&runs, &app, &run) => routed,
        failure = serving.store_failure() => Err(failure),
        () = interrupt.received() => return Ok(Exit::Interrupted),
    };
    serving.abandon().await?;
    routed?;
    tell(&Desk::Local(Box::new(app)), global, &run).await
}

/// The configuration as it is elsewhere, and nothing that is not there.
async fn take_over(app: &App, items: Vec<trellis_domain::config::StoredItem>) -> Result<(), Failure> {
    let (_, seeded) = app.store.config.all(app.workspace()).await?;
    for item in seeded {
        if !items.iter().any(|other| other.kind == item.kind && other.key == item.key) {
            app.store.config.delete(app.workspace(), &item.kind, &item.key, person::caller()).await?;
        }
    }
    app.store.config.put(app.workspace(), items, person::caller()).await?;
    Ok(())
}

async fn until_routed(runs: &RunService, app: &App, run: &RunId) -> Result<(), Failure> {
    let mut followed = runs.follow(app.workspace(), run, 0);
    loop {
        let Item::Record(record) = followed.next().await? else { continue };
        if record.header.session != *run {
            continue;
        }
        if record.header.name == Name::pattern_decision() {
            return Ok(());
        }
        if let Some(ended) = record.body.as_ended() {
            let reason = ended.error.clone().unwrap_or_else(|| ended.reason.to_string());
            return Err(Failure::new(Exit::RunFailed, format!("the question could not be routed: {}", clean(&reason))));
        }
    }
}

async fn tell(desk: &Desk, global: &Global, run: &RunId) -> Result<Exit, Failure> {
    let view = RunView::of(desk, run.as_str()).await?;
    let decisions = view.decisions();
    let (task_type, pattern) = (view.summary.task_type.as_deref(), view.summary.pattern.as_deref());
    if global.output == Output::Json {
        let decisions: Vec<_> = decisions.iter().map(|(_, decision)| decision).collect();
        let object = json!({"task_type": task_type, "pattern": pattern, "decisions": decisions});
        print_json(&object.to_string())?;
        return Ok(Exit::Ok);
    }
    let columns = columns_for(global);
    print_said("", &format!("{} → {}", clean(task_type.unwrap_or("?")), clean(pattern.unwrap_or("?"))), columns)?;
    for (placed, decision) in decisions {
        let told = Told::of(&view, placed, decision);
        print_said("", &told.choice, columns)?;
        told.more.iter().try_for_each(|more| print_said("  ", more, columns))?;
    }
    Ok(Exit::Ok)
}
