//! `doctor --models`: what each configured model can do, by asking it.

use crate::app;
use crate::cli::{Global, Output};
use crate::failure::{Exit, Failure};
use crate::model_settings;
use crate::show::{clean, print_json, print_line};
use serde_json::json;
use std::sync::Arc;
use trellis_domain::config::Settings;
use trellis_models::{Can, Choice, Connections, Examination, Finding, examine};
use trellis_orchestrator::ports::RealWorld;

/// Asks the operator's models, those that configuration names, and those that have settings of their own.
pub(super) async fn run(global: &Global, settings: &Settings) -> Result<Exit, Failure> {
    let operator = model_settings::of_operator(global)?;
    let mut names: Vec<String> = Vec::new();
    let chosen = app::chosen_models(global)?.into_iter().filter_map(|choice| match choice {
        Choice::Remote(choice) => Some(choice.name()),
        Choice::Rehearsal => None,
    });
    let by_prompt = settings.prompts.values().flat_map(|prompt| prompt.models.clone());
    let by_task = settings.task_types.values().flat_map(|task_type| task_type.models.clone());
    let by_settings = operator.models.keys().cloned();
    for name in chosen.chain(settings.models.clone()).chain(by_prompt).chain(by_task).chain(by_settings) {
        if name != "rehearsal" && !names.contains(&name) {
            names.push(name);
        }
    }
    let connections = Connections::new(operator, |name| std::env::var(name).ok(), Arc::new(RealWorld));
    let mut all_reached = true;
    let mut listed = Vec::new();
    for name in &names {
        let examined = match connections.named(name) {
            Ok(model) => examine(&*model).await,
            Err(error) => unknown(name, error.to_string()),
        };
        all_reached &= examined.is_reached;
        if global.output == Output::Json {
            listed.push(as_json(&examined));
        } else {
            print(&examined)?;
        }
    }
    if global.output == Output::Json {
        print_json(&json!({ "ok": all_reached, "models": listed }).to_string())?;
    } else if names.is_empty() {
        print_line("no model is configured; the rehearsal plays scripted replies")?;
    }
    Ok(if all_reached { Exit::Ok } else { Exit::Unreachable })
}

/// One that cannot even be asked.
fn unknown(name: &str, says: String) -> Examination {
    let finding = Finding { what: "reply", can: Can::No, says, refused: Vec::new() };
    Examination { model: name.to_owned(), is_reached: false, findings: vec![finding] }
}

fn word(can: Can) -> &'static str {
    match can {
        Can::Yes => "yes",
        Can::Partly => "partly",
        Can::No => "no",
    }
}

fn as_json(examined: &Examination) -> serde_json::Value {
    let findings = examined.findings.iter().map(|finding| {
        let Finding { what, can, says, refused } = finding;
        json!({ "what": what, "can": word(*can), "says": says, "refused": refused })
    });
    let findings: Vec<_> = findings.collect();
    json!({ "model": examined.model, "reached": examined.is_reached, "findings": findings })
}

fn print(examined: &Examination) -> std::io::Result<()> {
    print_line(&clean(&examined.model))?;
    for Finding { what, can, says, refused } in &examined.findings {
        print_line(&format!("  {what:<10} {:<7} {}", word(*can), clean(says)))?;
        for words in refused {
            print_line(&format!("  {:<10} {:<7} refused before: {}", "", "", clean(words)))?;
        }
    }
    Ok(())
}
