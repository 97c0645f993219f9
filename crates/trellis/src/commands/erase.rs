//! Erasing what was said in a run. That something was erased, when, by whom and why, stays on record.

use crate::app::App;
use crate::cli::{Erase, Global, Output};
use crate::desk::{Desk, folder_alone};
use crate::failure::{Exit, Failure};
use crate::show::{note, print_json, print_line};
use crate::state::Purpose;
use serde_json::json;
use trellis_domain::document::Document;
use trellis_domain::run::RunSummary;
use trellis_domain::{ConversationId, counted};
use trellis_orchestrator::ports::RunFilter;
use trellis_orchestrator::summary::end_of;
use trellis_store::{Erased, ErasureRequest};

const INSTEAD: &str = "stop the server and erase in its folder";

pub(crate) async fn run(global: &Global, erase: &Erase) -> Result<Exit, Failure> {
    if erase.text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Failure::usage("--text is empty; leave it out to erase all that was said"));
    }
    let desk = Desk::Local(Box::new(folder_alone(global, "erase", Purpose::Write, INSTEAD)?));
    let named = match &erase.run {
        Some(wish) => Some(desk.find_run(wish).await?),
        None => None,
    };
    let Desk::Local(app) = desk else { return Err(Failure::unexpected("the folder is gone")) };
    let wishes = wishes(&app, erase, named.as_ref()).await?;
    // A crash may have left texts in the view's dictionary that nothing in the view leads to yet.
    let store = app.store.only_folder()?;
    store.graph.catch_up()?;
    if let Some(remote) = &app.store.remote {
        // An endpoint that is gone would keep what is erased here.
        remote.catch_up().await?;
    }
    let mut all = Erased::default();
    let mut entries = Vec::new();
    for wish in wishes {
        let run = wish.run.clone();
        let erased = store.journal.erase(wish).await?;
        if erased.entry.is_some() {
            store.graph.renew(app.workspace(), &run)?;
            if let Some(remote) = &app.store.remote {
                remote.renew(app.workspace(), &run).await?;
            }
        }
        all.texts += erased.texts;
        all.records += erased.records;
        entries.extend(erased.entry);
    }
    let kept = store.kept_logs();
    // What was written before still lies in the engine's files until they are written anew.
    store.shed()?;
    drop(app);
    if !folder_alone(global, "erase", Purpose::Write, INSTEAD)?.store.only_folder()?.has_empty_log() {
        let message =
            "what was erased is gone from the records, but may still lie in the engine's log; erase it once more";
        return Err(Failure::new(Exit::DataFolder, message));
    }
    if global.output == Output::Json {
        print_json(&json!({"texts": all.texts, "records": all.records, "entries": entries}).to_string())?;
    } else if entries.is_empty() {
        print_line("there is nothing to erase")?;
    } else {
        let (texts, records) = (counted(all.texts, "text"), counted(all.records, "record"));
        print_line(&format!("erased {texts} of {records}; the log says so, and everything else still verifies"))?;
    }
    for log in kept {
        note(&format!("{} was kept because it is damaged, and may still hold what was erased", log.display()));
    }
    Ok(Exit::Ok)
}

/// The runs that were meant, and the later ones of their conversation, which were shown what was said before.
async fn wishes(
    app: &App,
    erase: &Erase,
    named: Option<&trellis_domain::RunId>,
) -> Result<Vec<ErasureRequest>, Failure> {
    let (journal, workspace) = (&app.store.journal, app.workspace());
    let by = std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "operator".to_owned());
    let wish = |run: &RunSummary, containing: Vec<String>| ErasureRequest {
        workspace: workspace.clone(),
        run: run.run.clone(),
        containing,
        by: by.clone(),
        reason: erase.reason.clone(),
        time: app.world.now(),
    };
    let conversation = match (named, &erase.conversation) {
        (Some(run), _) => journal.run(workspace, run).await?.and_then(|run| run.conversation),
        (None, Some(id)) => Some(ConversationId::new(id).map_err(|error| Failure::usage(error.to_string()))?),
        (None, None) => None,
    };
    let mut runs = Vec::new();
    if let Some(run) = named {
        runs.extend(journal.run(workspace, run).await?);
    }
    if let Some(conversation) = conversation {
        let filter = RunFilter { conversation: Some(conversation), ..RunFilter::default() };
        let page = journal.runs(workspace, &filter, None, usize::MAX).await?;
        runs.extend(page.runs.into_iter().filter(|run| named.is_none_or(|named| run.run != *named)));
    }
    if runs.is_empty() {
        return Err(Failure::new(Exit::NotFound, "there is no such conversation; `trellis runs` lists them"));
    }
    if let Some(open) = runs.iter().find(|run| !run.state.is_end()) {
        let message = format!("run {} is not finished; cancel it with `trellis run cancel {}`", open.run, open.run);
        return Err(Failure::usage(message));
    }
    let mut wishes = Vec::new();
    for run in &runs {
        let meant = named.is_none_or(|named| run.run == *named);
        let containing = match (&erase.text, meant, named) {
            (Some(text), _, _) => vec![text.clone()],
            (None, true, _) | (None, false, None) => Vec::new(),
            (None, false, Some(named)) => said(app, named).await?,
        };
        if meant || !containing.is_empty() {
            wishes.push(wish(run, containing));
        }
    }
    // Others first: what they are searched for is read from the run that is erased last.
    wishes.reverse();
    Ok(wishes)
}

/// The question and the answer of a run. Too short, they would be found everywhere.
async fn said(app: &App, run: &trellis_domain::RunId) -> Result<Vec<String>, Failure> {
    const SHORTEST: usize = 8;
    let records = app.store.journal.events(app.workspace(), run, 0, usize::MAX).await?;
    let question = records.iter().find_map(|record| Some(record.body.as_accepted()?.question.text().to_owned()));
    let answer = end_of(&records, run).and_then(|ended| ended.answer.as_ref()).map(Document::text).map(str::to_owned);
    Ok(question.into_iter().chain(answer).filter(|text| text.trim().chars().count() >= SHORTEST).collect())
}
