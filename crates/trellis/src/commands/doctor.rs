//! Is everything in order?

use crate::app;
use crate::cli::{Global, Output};
use crate::desk::folder_alone;
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::show::{clean, print_json, print_line};
use serde_json::json;
use trellis_domain::config::Settings;
use trellis_domain::counted;
use trellis_models::{Choice, choose};
use trellis_orchestrator::ports::{Config, Journal};
use trellis_store::AsideTurn;

/// One thing that was looked at.
struct Finding {
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
    fn of(settings: &Settings, operator_names_some: bool) -> Self {
        let mut named = Self { lines: Vec::new(), good: true };
        let of_workspace = if operator_names_some { "agent/model (--model counts before it)" } else { "agent/model" };
        named.add(of_workspace, &settings.models);
        for (id, prompt) in &settings.prompts {
            named.add(&format!("prompt/template.{id}"), &prompt.models);
        }
        for (key, task_type) in &settings.task_types {
            named.add(&format!("agent-task-type/{key}"), &task_type.models);
        }
        named
    }

    fn add(&mut self, place: &str, models: &[String]) {
        for model in models {
            let chosen = choose(std::slice::from_ref(model), &|name| std::env::var(name).ok());
            self.good &= chosen.is_ok();
            let says = chosen.map_or_else(|error| format!("{model} cannot be asked: {error}"), |list| listed(&list));
            self.lines.push(format!("{place}: {says}"));
        }
    }
}

pub(crate) async fn run(global: &Global) -> Result<Exit, Failure> {
    let app = folder_alone(global, "doctor", "stop the server and look at its folder")?;
    let settings = app.store.config.pin(app.workspace()).await?;
    let (_, items) = app.store.config.all(app.workspace()).await?;
    let problems: Vec<_> = super::config::problems(&settings, &items).iter().map(ToString::to_string).collect();
    let chain = app.store.check();
    let limits = limits::of_operator(global, &[]);
    let models = app::models(global).and_then(|_| app::chosen_models(global));
    let (open, lag) = (app.store.journal.open_runs(), app.store.graph.lag()?);
    let named = NamedModels::of(&settings, app::names_models(global));
    let aside = app.store.set_aside()?;
    let mut findings = vec![
        Finding {
            what: "data folder",
            good: true,
            says: format!("{} is ours and writable", app.store.path().display()),
        },
        Finding {
            what: "record",
            good: chain.is_ok(),
            says: match &chain {
                Ok(commits) => format!("{}, every hash is right", counted(commits, "commit")),
                Err(error) => error.to_string(),
            },
        },
        Finding {
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
        Finding {
            what: "limits",
            good: limits.is_ok(),
            says: match &limits {
                Ok(limits) => Some(limits::described(limits)).filter(|text| !text.is_empty()),
                Err(failure) => Some(failure.message.clone()),
            }
            .unwrap_or_else(|| "as built in".to_owned()),
        },
        Finding {
            what: "open runs",
            good: true,
            says: if open == 0 { "none".to_owned() } else { format!("{open}; `trellis resume` finishes them") },
        },
        Finding { what: "graph", good: true, says: format!("finished runs that wait to be indexed: {lag}") },
        Finding {
            what: "model",
            good: models.is_ok(),
            says: models.as_deref().map_or_else(|failure| failure.message.clone(), listed),
        },
    ];
    if !aside.is_empty() {
        let line = |turn: &AsideTurn| {
            let AsideTurn { workspace, run, session, turn, reason, time } = turn;
            format!("{time} run {run}, {session}/{turn} in workspace {workspace}: {reason}")
        };
        let says = aside.iter().map(line).collect::<Vec<_>>().join("\n");
        findings.push(Finding { what: "set aside", good: false, says });
    }
    if !named.lines.is_empty() {
        findings.push(Finding { what: "named models", good: named.good, says: named.lines.join("\n") });
    }
    if global.output == Output::Json {
        let list: Vec<_> = findings.iter().map(|f| json!({"what": f.what, "ok": f.good, "says": f.says})).collect();
        print_json(&json!({"ok": findings.iter().all(|f| f.good), "findings": list}).to_string())?;
    } else {
        for finding in &findings {
            let mark = if finding.good { "ok   " } else { "fault" };
            print_line(&format!(
                "{mark} {:<14} {}",
                finding.what,
                clean(&finding.says).replace('\n', "\n                     ")
            ))?;
        }
    }
    Ok(
        match (chain.is_ok() && aside.is_empty(), problems.is_empty() && limits.is_ok() && models.is_ok() && named.good)
        {
            (true, true) => Exit::Ok,
            (false, _) => Exit::DataFolder,
            (true, false) => Exit::InvalidConfig,
        },
    )
}
