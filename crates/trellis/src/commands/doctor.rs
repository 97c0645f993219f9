//! Is everything in order?

use super::tools::left_out_line;
use crate::app::{self, App, Closed};
use crate::cli::{Global, Output};
use crate::cluster;
use crate::desk::{Desk, Origin, Server, folder_alone};
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::model_settings;
use crate::serving::Interrupt;
use crate::show::{clean, one_line, print_json, print_line};
use crate::state::Purpose;
use crate::tool_settings;
use serde_json::json;
use std::sync::Arc;
use trellis_domain::config::Settings;
use trellis_domain::counted;
use trellis_models::{Choice, ModelSettings, Models, Rehearsal, choose};
use trellis_orchestrator::ports::{RunFilter, ToolRunner};
use trellis_orchestrator::toolbox::{Discovery, discover};
use trellis_patterns::router::OperatorLimits;
use trellis_search::CheckedSearch;
use trellis_store::{AsideTurn, Checked, CheckedKnowledge, CheckedTables, CheckedView, Holder, Store};

const SEARCH_AGAIN: &str =
    "runs are not affected; remove the collection's folder named here, and load its documents again";
const ENTITIES_AGAIN: &str = "runs are not affected; remove the collection's folder named here, and load its knowledge again, which names its entities";

/// One thing that was looked at.
struct HealthCheck {
    what: &'static str,
    good: bool,
    says: String,
}

/// The models in the order in which they are asked.
fn listed(choices: &[Choice]) -> String {
    choices.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The models that configuration names, and where.
struct NamedModels {
    lines: Vec<String>,
    good: bool,
}

impl NamedModels {
    fn of(settings: &Settings, models: &ModelSettings, operator_names_some: bool) -> Self {
        let mut named = Self { lines: Vec::new(), good: true };
        let of_workspace = if operator_names_some { "agent/model (--model counts before it)" } else { "agent/model" };
        named.add(of_workspace, &settings.models, models);
        for (id, prompt) in &settings.prompts {
            named.add(&format!("prompt/template.{id}"), &prompt.models, models);
        }
        for (key, task_type) in &settings.task_types {
            named.add(&format!("agent-task-type/{key}"), &task_type.models, models);
        }
        named
    }

    fn add(&mut self, place: &str, names: &[String], models: &ModelSettings) {
        for model in names {
            let chosen = choose(std::slice::from_ref(model), models, &|name| std::env::var(name).ok());
            self.good &= chosen.is_ok();
            let says = chosen.map_or_else(|error| format!("{model} cannot be asked: {error}"), |list| listed(&list));
            self.lines.push(format!("{place}: {says}"));
        }
    }
}

/// What was read, or what is wrong with it.
fn summary_of(checked: &Checked) -> String {
    if checked.wrong == 0 {
        let counts = [
            counted(checked.runs, "run"),
            counted(checked.records, "record"),
            counted(checked.texts, "large text"),
            counted(checked.documents, "document"),
        ];
        return format!("{}: all read, every hash is right", counts.join(", "));
    }
    let more = checked.wrong - checked.faults.len();
    let more = (more > 0).then(|| format!("and {more} more")).into_iter();
    checked.faults.iter().cloned().chain(more).collect::<Vec<_>>().join("\n")
}

fn log_line(checked: &Checked) -> String {
    let root = checked.root.map_or_else(|| "cannot be computed".to_owned(), |root| root.to_string());
    format!("{}, root {root}", counted(checked.entries, "entry"))
}

/// What can be done with the folder. That it cannot be written is no damage.
fn folder_line(store: &Store) -> String {
    let folder = store.path().display();
    match store.only_read() {
        Some(reason) => format!("{folder} can be read, but not written: {reason}"),
        None => format!("{folder} is ours and writable"),
    }
}

/// What the graph's view has, or what is wrong with it and what to do.
fn graph_line(view: &CheckedView) -> String {
    if view.faults.is_empty() {
        let (runs, quads) = (counted(view.runs, "run"), counted(view.quads, "quad"));
        let waiting = view.waiting;
        return format!("{runs}, {quads}: as the records say; finished runs that wait to be indexed: {waiting}");
    }
    let told = view.faults.join("\n");
    format!("{told}\nqueries over several runs may be answered wrongly; `trellis graph rebuild` derives the graph anew")
}

/// What is loaded, or what is wrong with it and what to do.
fn knowledge_line(knowledge: &CheckedKnowledge) -> String {
    if knowledge.faults.is_empty() {
        let (quads, collections) = (counted(knowledge.quads, "quad"), counted(knowledge.collections, "collection"));
        return format!("{quads} in {collections}");
    }
    let told = knowledge.faults.join("\n");
    format!("{told}\nrestore the folder from a copy, or remove the collection and load it again")
}

fn tables_line(tables: &CheckedTables) -> String {
    if tables.faults.is_empty() {
        return format!("{} in {}", counted(tables.rows, "row"), counted(tables.tables, "table"));
    }
    let told = tables.faults.join("\n");
    format!("{told}\nrestore the folder from a copy, or remove the table and load it again")
}

/// What is found by words: where its files are damaged, and how they come to be again.
fn search_line(search: &CheckedSearch, again: &str) -> String {
    if search.faults.is_empty() {
        return counted(search.collections, "collection");
    }
    format!("{}\n{again}", search.faults.join("\n"))
}

/// Which tools no model is offered here, and why. That is no fault: it may be what the operator wants.
fn tools_line(app: &App, global: &Global, settings: &Settings) -> Result<String, String> {
    let outside = tool_settings::outside(global).map_err(|failure| failure.message)?;
    let nobody = || Models::new(Arc::new(Rehearsal::default()));
    let tools = app.tools(&app.prompter(app::models(global).unwrap_or_else(|_| nobody())), outside);
    let not_here = settings.tools.values().filter_map(|tool| {
        let why = tools.obstacle(app.workspace(), tool, settings)?;
        Some(format!("{} is not offered: {why}", tool.name))
    });
    let not_here: Vec<_> = not_here.collect();
    let offered = format!("{} can be called", counted(settings.tools.len() - not_here.len(), "tool"));
    Ok(std::iter::once(offered).chain(not_here).collect::<Vec<_>>().join("\n"))
}

/// What the operator's MCP servers have, which of it cannot be used and why, and which of them do not answer. None if none
/// is named.
async fn mcp_servers(global: &Global) -> Result<Option<HealthCheck>, Failure> {
    let check = |good, says| Ok(Some(HealthCheck { what: "MCP servers", good, says }));
    let mcp = match tool_settings::outside(global) {
        Ok(outside) => outside.mcp,
        Err(failure) => return check(false, failure.message),
    };
    let workspace = app::workspace(global)?.unwrap_or_default();
    // Programs that are started are not in the terminal's group: they end when what is done here is let go.
    let mut interrupt = Interrupt::new()?;
    let discovered = tokio::select! {
        discovered = discover(Some(&mcp), &workspace, None, &[]) => discovered,
        () = interrupt.received() => return Err(Failure::new(Exit::Interrupted, "interrupted")),
    };
    // Who asks all of them for everything can only be told that there are none.
    let Ok(Discovery { tools, left_out, asked, failed }) = discovered else { return Ok(None) };
    let answered = format!("{} with {}", counted(asked.len(), "server"), counted(tools.len(), "tool"));
    let left_out = left_out.iter().map(left_out_line);
    let silent = failed.iter().map(|(server, why)| format!("{}: {}", clean(server), one_line(&clean(why))));
    let says: Vec<_> = std::iter::once(answered).chain(left_out).chain(silent).collect();
    check(failed.is_empty(), says.join("\n"))
}

/// The model for facts, if one is set.
fn extraction(global: &Global) -> Option<HealthCheck> {
    let (good, says) = match app::extraction_model(global) {
        Ok(model) => (true, model?.0),
        Err(failure) => (false, failure.message),
    };
    Some(HealthCheck { what: "extraction model", good, says })
}

fn listed_paths(paths: &[std::path::PathBuf]) -> String {
    if paths.is_empty() {
        return "none".to_owned();
    }
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    format!("damaged ones, kept as they were found: {}", paths.join(", "))
}

pub(crate) async fn run(global: &Global, asks_models: bool) -> Result<Exit, Failure> {
    if !asks_models && global.url.is_none() {
        match App::open_existing(global, "doctor", Purpose::Read) {
            Err(Closed::Served { url, holder, .. }) => return beside(global, &url, holder).await,
            Err(Closed::Failed(failure)) if failure.exit == Exit::NotFound => return at_first(global, &failure).await,
            Err(Closed::Failed(failure)) => return Err(failure),
            Ok(app) => return whole(global, &app).await,
        }
    }
    let opened = folder_alone(global, "doctor", Purpose::Read, "stop the server and look at its folder");
    if asks_models {
        // Where there is no folder yet, or a server has it, configuration names none.
        let (version, items) = match &opened {
            Ok(app) => app.store.config.all(app.workspace()).await.unwrap_or_default(),
            Err(_) => Default::default(),
        };
        return super::examine::run(global, &Settings::take(version, items).0).await;
    }
    whole(global, &opened?).await
}

/// There is no folder yet: what is set on this machine can be looked at all the same.
async fn at_first(global: &Global, failure: &Failure) -> Result<Exit, Failure> {
    let mut findings = vec![HealthCheck { what: "data folder", good: true, says: failure.message.clone() }];
    findings.extend(of_this_machine(global).await?);
    told_as_settings(global, &findings)
}

/// A server has the folder: whether it answers, and what is set on this machine.
async fn beside(global: &Global, url: &str, holder: Holder) -> Result<Exit, Failure> {
    let says = format!("in use by {holder}; stop it to have everything in the folder read");
    let mut findings = vec![HealthCheck { what: "data folder", good: true, says }];
    let server = Server::new(url, Origin::Lock(holder), app::workspace(global)?)?;
    let page = Desk::Remote(server).runs(&RunFilter::default(), None, 1).await;
    let says = match &page {
        Ok(_) => format!("{url} answers"),
        Err(failure) => failure.message.clone(),
    };
    findings.push(HealthCheck { what: "server", good: page.is_ok(), says });
    findings.extend(of_this_machine(global).await?);
    if let Err(failure) = page {
        tell(global, &findings)?;
        return Ok(failure.exit);
    }
    told_as_settings(global, &findings)
}

fn told_as_settings(global: &Global, findings: &[HealthCheck]) -> Result<Exit, Failure> {
    tell(global, findings)?;
    Ok(if findings.iter().all(|finding| finding.good) { Exit::Ok } else { Exit::InvalidConfig })
}

async fn of_this_machine(global: &Global) -> Result<Vec<HealthCheck>, Failure> {
    let limits = limits::of_operator(global, &[]);
    let models = app::models(global).and_then(|_| app::chosen_models(global));
    let mut findings = vec![limits_check(&limits), model_check(&models)];
    findings.extend(extraction(global));
    findings.extend(graph_named(global));
    findings.extend(mcp_servers(global).await?);
    Ok(findings)
}

/// The endpoint that is to keep the graph, if one is named. It is not asked here.
fn graph_named(global: &Global) -> Option<HealthCheck> {
    let (good, says) = match cluster::graph_address(global) {
        Ok(address) => (true, format!("{} keeps the graph of finished runs", address?)),
        Err(failure) => (false, failure.message),
    };
    Some(HealthCheck { what: "remote graph", good, says })
}

/// The endpoint that keeps the graph, if there is one: whether it answers, and how far it is.
async fn remote_graph(app: &App) -> Option<HealthCheck> {
    let remote = app.store.remote.as_ref()?;
    let (good, says) = match remote.lag().await {
        Ok(waiting) => {
            (true, format!("{} answers; finished runs that wait to be taken in: {waiting}", remote.address()))
        }
        Err(error) => (false, error.to_string()),
    };
    Some(HealthCheck { what: "remote graph", good, says })
}

fn limits_check(limits: &Result<OperatorLimits, Failure>) -> HealthCheck {
    let says = match limits {
        Ok(limits) => Some(limits::described(limits)).filter(|text| !text.is_empty()),
        Err(failure) => Some(failure.message.clone()),
    };
    HealthCheck { what: "limits", good: limits.is_ok(), says: says.unwrap_or_else(|| "as built in".to_owned()) }
}

fn model_check(models: &Result<Vec<Choice>, Failure>) -> HealthCheck {
    let says = models.as_deref().map_or_else(|failure| failure.message.clone(), listed);
    HealthCheck { what: "model", good: models.is_ok(), says }
}

/// Everything in the folder.
async fn whole(global: &Global, app: &App) -> Result<Exit, Failure> {
    // What cannot be read is named with the rest of the damage.
    let (version, items) = app.store.config.all(app.workspace()).await.unwrap_or_default();
    let settings = Settings::take(version, items.clone()).0;
    let problems: Vec<_> = super::config::problems(&settings, &items).iter().map(ToString::to_string).collect();
    let store = app.store.only_folder()?;
    let checked = store.check();
    let view = store.check_view();
    let knowledge = store.check_knowledge();
    let tables = store.check_tables();
    let [search, entities] = ["search", "entities"].map(|name| trellis_search::check(&store.path().join(name)));
    let kept = store.kept_logs();
    let limits = limits::of_operator(global, &[]);
    let models = app::models(global).and_then(|_| app::chosen_models(global));
    let open = app.store.journal.open_runs().await?;
    // What is wrong with them is told with the operator's models.
    let of_operator = model_settings::of_operator(global).unwrap_or_default();
    let named = NamedModels::of(&settings, &of_operator, app::names_models(global));
    let aside = store.set_aside().unwrap_or_default();
    let tools = tools_line(app, global, &settings);
    let mut findings = vec![
        HealthCheck { what: "data folder", good: true, says: folder_line(store) },
        HealthCheck { what: "record", good: checked.wrong == 0, says: summary_of(&checked) },
        HealthCheck { what: "log", good: checked.root.is_some(), says: log_line(&checked) },
        HealthCheck { what: "kept logs", good: true, says: listed_paths(&kept) },
        HealthCheck {
            what: "configuration",
            good: problems.is_empty(),
            says: if problems.is_empty() {
                let (tools, prompts) = (settings.tools.len(), settings.prompts.len());
                let (tools, prompts) = (counted(tools, "tool"), counted(prompts, "prompt"));
                format!("version {}, {tools}, {prompts}, no problem", settings.version)
            } else {
                problems.join("\n")
            },
        },
        limits_check(&limits),
        HealthCheck {
            what: "open runs",
            good: true,
            says: if open == 0 { "none".to_owned() } else { format!("{open}; `trellis resume` finishes them") },
        },
        HealthCheck { what: "graph", good: view.faults.is_empty(), says: graph_line(&view) },
        HealthCheck { what: "knowledge", good: knowledge.faults.is_empty(), says: knowledge_line(&knowledge) },
        HealthCheck { what: "search", good: search.faults.is_empty(), says: search_line(&search, SEARCH_AGAIN) },
        HealthCheck {
            what: "entities",
            good: entities.faults.is_empty(),
            says: search_line(&entities, ENTITIES_AGAIN),
        },
        HealthCheck { what: "tables", good: tables.faults.is_empty(), says: tables_line(&tables) },
        model_check(&models),
        HealthCheck { what: "tools", good: tools.is_ok(), says: tools.clone().unwrap_or_else(|wrong| wrong) },
    ];
    if !aside.is_empty() {
        let line = |turn: &AsideTurn| {
            let AsideTurn { workspace, run, session, turn, reason, time } = turn;
            format!("{time} run {run}, {session}/{turn} in workspace {workspace}: {reason}")
        };
        let says = aside.iter().map(line).collect::<Vec<_>>().join("\n");
        findings.push(HealthCheck { what: "set aside", good: false, says });
    }
    let extraction = extraction(global);
    let extracts = extraction.as_ref().is_none_or(|finding| finding.good);
    findings.extend(extraction);
    let remote = remote_graph(app).await;
    let answers = remote.as_ref().is_none_or(|finding| finding.good);
    findings.extend(remote);
    // What is wrong with the file that names them is told with the tools.
    let servers = if tools.is_ok() { mcp_servers(global).await? } else { None };
    let speak = servers.as_ref().is_none_or(|finding| finding.good);
    findings.extend(servers);
    if !named.lines.is_empty() {
        findings.push(HealthCheck { what: "named models", good: named.good, says: named.lines.join("\n") });
    }
    tell(global, &findings)?;
    let loaded = knowledge.faults.is_empty() && tables.faults.is_empty();
    let found = search.faults.is_empty() && entities.faults.is_empty();
    let sound = checked.wrong == 0 && aside.is_empty() && view.faults.is_empty() && loaded && found;
    let set = limits.is_ok() && models.is_ok() && tools.is_ok() && named.good && extracts && answers && speak;
    Ok(match (sound, problems.is_empty() && set) {
        (true, true) => Exit::Ok,
        (false, _) => Exit::DataFolder,
        (true, false) => Exit::InvalidConfig,
    })
}

fn tell(global: &Global, findings: &[HealthCheck]) -> Result<(), Failure> {
    if global.output == Output::Json {
        let list: Vec<_> = findings.iter().map(|f| json!({"what": f.what, "ok": f.good, "says": f.says})).collect();
        print_json(&json!({"ok": findings.iter().all(|f| f.good), "findings": list}).to_string())?;
    } else {
        for finding in findings {
            let mark = if finding.good { "ok   " } else { "fault" };
            print_line(&format!(
                "{mark} {:<14} {}",
                finding.what,
                clean(&finding.says).replace('\n', "\n                     ")
            ))?;
        }
    }
    Ok(())
}
