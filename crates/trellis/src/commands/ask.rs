//! Asking a question: hand it in, follow the run, show the answer.

use super::attend::{Attention, attend, shared_goes_on};
use super::read_input;
use super::watch::{LEAVES, RunItems, detached, finish, follow, goes_on, out_of_patience};
use crate::app::{self, App};
use crate::cli::{Ask, Global, Output};
use crate::desk::{Desk, Server};
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::person;
use crate::serving::Interrupt;
use crate::show::follow::Follow;
use crate::show::{note, print_json, print_line};
use crate::state::Purpose;
use crate::tool_settings;
use serde_json::json;
use std::pin::pin;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::{RequestId, RunId, Selection, ToolName};
use trellis_models::Models;
use trellis_orchestrator::RunService;
use trellis_orchestrator::accept::{Question, UnknownNames};
use trellis_orchestrator::ports::{RealWorld, RunFilter, World};
use trellis_patterns::router::OperatorLimits;

pub(crate) async fn run(global: &Global, ask: &Ask) -> Result<Exit, Failure> {
    let question = if ask.question == "-" { read_input("the question")? } else { ask.question.clone() };
    check_session(ask)?;
    let limits = limits::of_request(&ask.limit)?;
    let mut interrupt = Interrupt::new()?;
    let own = own_means(global);
    let desk = match &own {
        Ok(_) => Desk::work(global, "ask", Purpose::Write).await?,
        // What is wrong with the settings here is no matter of a server's.
        Err(_) => match Desk::look(global, "ask") {
            Ok(remote @ Desk::Remote(_)) => remote,
            Ok(Desk::Local(_)) | Err(_) => return own.map(|_| Exit::Ok),
        },
    };
    if ask.detach && matches!(&desk, Desk::Local(app) if !app.store.is_shared()) {
        return Err(Failure::usage(
            "--detach leaves the run to a server, and none has this folder: start `trellis serve`, or name one with --url",
        ));
    }
    let request = read_request(&desk, ask, question.trim()).await?;
    match &desk {
        Desk::Local(app) => here(app, global, ask, (request, limits), own?, &mut interrupt).await,
        Desk::Remote(server) => there(server, global, ask, (request, limits), &mut interrupt).await,
    }
}

/// The limits and models of this machine, which only runs on its own folder need.
fn own_means(global: &Global) -> Result<(OperatorLimits, Models), Failure> {
    Ok((limits::of_operator(global, &[])?, app::models(global)?))
}

/// Answers with workers of its own, which leave other open runs alone.
async fn here(
    app: &App,
    global: &Global,
    ask: &Ask,
    (request, limits): (AgentRequest, SomeLimits),
    (operator, models): (OperatorLimits, Models),
    interrupt: &mut Interrupt,
) -> Result<Exit, Failure> {
    limits::held(&limits, &operator).iter().filter(|_| !global.quiet).for_each(|held| note(held));
    let orchestrator = app.orchestrator(operator, models, tool_settings::outside(global)?);
    let question = Question {
        scope: app.scope.clone(),
        request_id: fresh_id()?,
        request,
        limits,
        names: UnknownNames::Refuse,
        selection: Selection { tools: tools(ask), model: None },
        by: Some(person::caller()),
    };
    let run = RunService::new(&orchestrator).accept(question).await?.run;
    tell_of_other_id(ask, &run);
    if ask.detach {
        return left(global, &run, &shared_goes_on(&run));
    }
    let attention = Attention { streaming: !ask.no_stream, strict: ask.strict, patience: ask.timeout };
    attend(app, global, &orchestrator, &run, attention, interrupt).await
}

/// Lets a server answer.
async fn there(
    server: &Server,
    global: &Global,
    ask: &Ask,
    (request, limits): (AgentRequest, SomeLimits),
    interrupt: &mut Interrupt,
) -> Result<Exit, Failure> {
    let selection = Selection { tools: tools(ask), model: model_there(global, server)? };
    let id = fresh_id()?;
    let mut patience = pin!(out_of_patience(ask.timeout));
    let accepted = tokio::select! {
        run = server.accept(&request, &limits, &selection, &id) => Some(run?),
        () = interrupt.received() => None,
        () = &mut patience => None,
    };
    let Some(run) = accepted else {
        note("stopped before the server had answered; `trellis runs` tells whether it has the question");
        return Ok(Exit::Interrupted);
    };
    tell_of_other_id(ask, &run);
    if ask.detach {
        return left(global, &run, &goes_on(&run, &server.flags()));
    }
    let source = RunItems::Server(Box::new(server.follow(&run, global.quiet)));
    let screen = Follow::new(global, run.clone(), !ask.no_stream, LEAVES);
    let watched = tokio::select! {
        records = follow(source, global, screen, &run) => records.map(Some),
        () = interrupt.received() => Ok(None),
        () = &mut patience => Ok(None),
    };
    match watched {
        Ok(Some(records)) => Ok(Exit::of(finish(global, &run, &records, &server.flags())?, ask.strict)),
        Err(failure) if failure.exit != Exit::Ok => Err(failure),
        Ok(None) | Err(_) => {
            detached(global, &run, &goes_on(&run, &server.flags()));
            Ok(Exit::Interrupted)
        }
    }
}

/// The id of a run that others work on, for whoever does not wait; a person learns how to look later.
fn left(global: &Global, run: &RunId, how_to_go_on: &str) -> Result<Exit, Failure> {
    match global.output {
        Output::Text | Output::Csv => print_line(run.as_str())?,
        Output::Json => print_json(&json!({"run_id": run.as_str()}).to_string())?,
        Output::Ndjson => print_json(&json!({"type": "run.detached", "run_id": run.as_str()}).to_string())?,
    }
    if !global.quiet {
        note(how_to_go_on);
    }
    Ok(Exit::Ok)
}

/// The tools that may be offered, if some are named.
fn tools(ask: &Ask) -> Option<Vec<ToolName>> {
    (!ask.tool.is_empty()).then(|| ask.tool.iter().map(|name| name.as_str().into()).collect())
}

/// The model that a server is to ask: one of its own.
fn model_there(global: &Global, server: &Server) -> Result<Option<String>, Failure> {
    match global.model.as_slice() {
        [] => Ok(None),
        [model] => Ok(Some(model.clone())),
        _ => {
            let url = server.url();
            Err(Failure::usage(format!("{url} asks one model if one is named with --model; name one of its own")))
        }
    }
}

fn fresh_id() -> Result<RequestId, Failure> {
    RequestId::new(&RealWorld.fresh_id()).map_err(Failure::unexpected)
}

fn tell_of_other_id(ask: &Ask, run: &RunId) {
    if ask.session.as_deref().is_some_and(|session| session != run.as_str()) {
        note(&format!("this session id belongs to another question; this run is {run}"));
    }
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

/// The conversation by its id, or that of the newest run.
async fn conversation(desk: &Desk, ask: &Ask) -> Result<String, Failure> {
    match ask.conversation.as_deref() {
        Some("last") => {
            let newest = desk.runs(&RunFilter::default(), None, 1).await?;
            let conversation = newest.runs.into_iter().find_map(|run| run.conversation_id);
            let none = || Failure::new(Exit::NotFound, "the newest run belongs to no conversation; give an id");
            conversation.map(|id| id.as_str().to_owned()).ok_or_else(none)
        }
        given => Ok(given.unwrap_or_default().to_owned()),
    }
}

async fn read_request(desk: &Desk, ask: &Ask, question: &str) -> Result<AgentRequest, Failure> {
    Ok(AgentRequest {
        question: question.to_owned(),
        group: (!ask.group.is_empty()).then(|| ask.group.clone()),
        collection: ask.collection.clone(),
        streaming: !ask.no_stream,
        session_id: ask.session.clone().unwrap_or_default(),
        conversation_id: conversation(desk, ask).await?,
        pattern: ask.pattern.clone().unwrap_or_default(),
        task_type: ask.task_type.clone().unwrap_or_default(),
        ..AgentRequest::default()
    })
}
