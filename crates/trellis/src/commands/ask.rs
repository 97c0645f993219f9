//! Asking a question: accept it, follow the run, show the answer.

use super::read_input;
use crate::app::{self, App};
use crate::cli::{Ask, Global, Output};
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::serving::{Interrupt, Serving};
use crate::show::follow::Follow;
use crate::show::{Marks, footer, note, short};
use serde_json::json;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Body, Ended, Name};
use trellis_domain::run::RunSummary;
use trellis_domain::{RequestId, RunId};
use trellis_orchestrator::Orchestrator;
use trellis_orchestrator::accept::{Question, UnknownNames};
use trellis_orchestrator::events::event;
use trellis_orchestrator::hub::Item;
use trellis_orchestrator::ports::{Journal, RunFilter};
use trellis_orchestrator::summary::outcome;

pub(crate) async fn run(global: &Global, ask: &Ask) -> Result<Exit, Failure> {
    let question = if ask.question == "-" { read_input("the question")? } else { ask.question.clone() };
    check_session(ask)?;
    let operator = limits::of_operator(global, &[])?;
    let request = limits::of_request(&ask.limit)?;
    limits::held(&request, &operator).iter().filter(|_| !global.quiet).for_each(|held| note(held));
    let models = app::models(global)?;
    let mut interrupt = Interrupt::new()?;
    let app = App::open(global, "ask").await?;
    let orchestrator = app.orchestrator(operator, models);
    let conversation = conversation(&app, ask).await?;
    let run =
        orchestrator.accept(read_question(&app, ask, question.trim().to_owned(), conversation, request)?).await?.run;
    if ask.session.as_deref().is_some_and(|session| session != run.as_str()) {
        note(&format!("this session id belongs to another question; this run is {run}"));
    }
    let mut serving = Serving::start(&orchestrator);
    let watched = tokio::select! {
        ended = follow(&app, &orchestrator, global, ask, &run) => ended.map(Some),
        failure = serving.store_failure() => Err(failure),
        () = interrupt.received() => Ok(None),
    };
    let ended = match watched {
        Ok(Some(ended)) => ended,
        Err(failure) if failure.exit != Exit::Ok => {
            serving.abandon().await?;
            return Err(failure);
        }
        // Interrupted, or whoever read our output has gone away.
        Ok(None) | Err(_) => {
            serving.abandon().await?;
            detached(global, &run);
            return Ok(Exit::Interrupted);
        }
    };
    let summary = app.store.journal.run(app.workspace(), &run).await?;
    let summary = summary.ok_or_else(|| Failure::unexpected("the run has vanished"))?;
    finish(&app, global, &summary, &ended)?;
    serving.drain(&mut interrupt).await?;
    let others = app.store.journal.open_runs();
    if others > 0 && !global.quiet {
        note(&format!("other open runs: {others}; `trellis resume` finishes them"));
    }
    Ok(Exit::of(summary.state, ask.strict))
}

/// The run waits where its record ends: how to go on comes first, and a program gets a last event. Whoever has gone
/// away reads neither, which is no failure.
fn detached(global: &Global, run: &RunId) {
    if global.output == Output::Ndjson {
        let event = json!({"type": "run.detached", "run_id": run.as_str()});
        drop(crate::show::print_json(&event.to_string()));
    }
    note(&format!("\n`trellis resume` continues run {run}, and so does the next `trellis ask`; it is not finished"));
}

/// Names that mean something else where a run is named.
fn check_session(ask: &Ask) -> Result<(), Failure> {
    match ask.session.as_deref() {
        Some("") => Err(Failure::usage("the session id is empty; leave --session out or give an id")),
        Some(id) if id == "last" || id.starts_with('@') => {
            Err(Failure::usage(format!("`{id}` means a run by its place; choose another session id")))
        }
        Some(_) | None => Ok(()),
    }
}

/// The conversation by its id, or that of the newest run that has one.
async fn conversation(app: &App, ask: &Ask) -> Result<String, Failure> {
    match ask.conversation.as_deref() {
        Some("last") => {
            let newest = app.store.journal.runs(app.workspace(), &RunFilter::default(), None, 1).await?;
            let conversation = newest.runs.into_iter().find_map(|run| run.conversation);
            let none = || Failure::new(Exit::NotFound, "the newest run belongs to no conversation; give an id");
            conversation.map(|id| id.as_str().to_owned()).ok_or_else(none)
        }
        given => Ok(given.unwrap_or_default().to_owned()),
    }
}

fn read_question(
    app: &App,
    ask: &Ask,
    question: String,
    conversation_id: String,
    limits: SomeLimits,
) -> Result<Question, Failure> {
    Ok(Question {
        scope: app.scope.clone(),
        request_id: RequestId::new(&app.world.fresh_id()).map_err(Failure::unexpected)?,
        request: AgentRequest {
            question,
            group: (!ask.group.is_empty()).then(|| ask.group.clone()),
            collection: ask.collection.clone(),
            streaming: !ask.no_stream,
            session_id: ask.session.clone().unwrap_or_default(),
            conversation_id,
            pattern: ask.pattern.clone().unwrap_or_default(),
            task_type: ask.task_type.clone().unwrap_or_default(),
            ..AgentRequest::default()
        },
        limits,
        names: UnknownNames::Refuse,
    })
}

/// Shows the run as it happens, until its end.
async fn follow(
    app: &App,
    orchestrator: &Orchestrator,
    global: &Global,
    ask: &Ask,
    run: &RunId,
) -> Result<Ended, Failure> {
    let mut subscription = orchestrator.ports.hub.subscribe(app.workspace(), run, 0);
    let mut screen = Follow::new(global, run.clone(), !ask.no_stream);
    loop {
        let item = subscription.next(&*app.store.journal).await?;
        if global.output == Output::Ndjson {
            crate::show::print_json(&event(run, &item).to_string())?;
        } else {
            screen.show(&item)?;
        }
        if let Item::Record(record) = &item
            && let (Body::Ended(ended), true) = (&record.body, record.header.session == *run)
        {
            debug_assert_eq!(record.header.name, Name::end(), "an end has the name of an end");
            screen.finish()?;
            return Ok(ended.clone());
        }
    }
}

/// The answer on stdout, everything else on stderr.
fn finish(app: &App, global: &Global, summary: &RunSummary, ended: &Ended) -> Result<(), Failure> {
    if global.output == Output::Json {
        let object = outcome(summary, Some(ended), app.world.now());
        return Ok(crate::show::print_json(&object.to_string())?);
    }
    match (global.output, global.quiet, &ended.error) {
        (Output::Text, false, _) => {
            note("");
            for line in footer(summary, ended, app.world.now(), Marks::of(global.ascii)) {
                note(&line);
            }
            let id = short(&summary.run);
            note(&format!("see how: trellis run show {id}     check it: trellis verify {id}"));
        }
        // Quiet means no progress, not no reason.
        (Output::Text, true, Some(error)) => note(&format!("run {}: {}", summary.run, crate::show::clean(error))),
        (Output::Text, true, None) | (Output::Json | Output::Ndjson | Output::Csv, _, _) => {}
    }
    Ok(())
}
