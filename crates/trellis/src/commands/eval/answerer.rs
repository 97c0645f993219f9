//! Who answers the questions: a model, or what it replied before.

use crate::app::{self, App};
use crate::cli::{Eval, Global};
use crate::failure::Failure;
use crate::limits;
use std::sync::Arc;
use trellis_models::{RecordedReplies, RecordedRun};
use trellis_orchestrator::ports::Prompter;
use trellis_patterns::router::OperatorLimits;

/// One of those that are compared.
pub(super) struct Answerer {
    pub(super) name: String,
    pub(super) limits: OperatorLimits,
    pub(super) prompter: Arc<dyn Prompter>,
    /// The same, if it answers from a recording.
    pub(super) recorded: Option<Arc<RecordedReplies>>,
}

impl Answerer {
    /// Each model by itself, as it would be named for all commands.
    pub(super) fn of_models(app: &App, global: &Global, eval: &Eval) -> Result<Vec<Self>, Failure> {
        let one = |global: &Global| -> Result<Self, Failure> {
            let models = app::models(global)?;
            let (name, limits) = (models.names().join(", then "), limits::of_operator(global, &[])?);
            Ok(Self { name, limits, prompter: app.prompter(models), recorded: None })
        };
        if eval.models.is_empty() {
            return Ok(vec![one(global)?]);
        }
        eval.models.iter().map(|model| one(&Global { model: vec![model.clone()], ..global.clone() })).collect()
    }

    /// The models that were recorded, or those of them that are named. A run belongs to the model that it asked first.
    pub(super) fn of_recording(global: &Global, eval: &Eval, runs: Vec<RecordedRun>) -> Result<Vec<Self>, Failure> {
        let mut models: Vec<&str> = Vec::new();
        for run in &runs {
            if !models.contains(&run.model()) {
                models.push(run.model());
            }
        }
        if let Some(unknown) = eval.models.iter().find(|name| !models.contains(&name.as_str())) {
            let known = models.join(", ");
            return Err(Failure::usage(format!(
                "no reply of {unknown} is recorded; name some of {known}, or none for all"
            )));
        }
        let names = models.into_iter().filter(|name| eval.models.is_empty() || eval.models.iter().any(|it| it == name));
        let one = |name: &str| -> Result<Self, Failure> {
            let limits = limits::of_operator(global, &[])?;
            let of_model = runs.iter().filter(|run| run.model() == name).cloned();
            let replies = Arc::new(RecordedReplies::new(of_model));
            Ok(Self { name: name.to_owned(), limits, prompter: Arc::clone(&replies) as _, recorded: Some(replies) })
        };
        names.map(one).collect()
    }
}
