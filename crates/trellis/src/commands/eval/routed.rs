//! Runs of which only the choice of task type and pattern is judged.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use trellis_domain::RunId;
use trellis_domain::config::Settings;
use trellis_domain::record::{Core, Name};
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{
    BoxFuture, CallLabels, Completion, PromptCall, PromptError, PromptNeed, PromptReply, Prompter, ReplySink,
};

/// Whoever answers prompts, without those that a run asks once it is routed and before it is cancelled: a model would work
/// for nobody, and a recorded reply would be missing elsewhere.
#[derive(Debug)]
pub(crate) struct RoutedOnly {
    inner: Arc<dyn Prompter>,
    runs: Mutex<HashSet<RunId>>,
}

impl RoutedOnly {
    pub(crate) fn new(inner: Arc<dyn Prompter>) -> Self {
        Self { inner, runs: Mutex::default() }
    }

    /// Nobody follows this run once it is routed.
    pub(crate) fn begin(&self, run: RunId) {
        self.runs.lock().insert(run);
    }

    pub(super) fn forget(&self, run: &RunId) {
        self.runs.lock().remove(run);
    }

    fn is_over(&self, labels: Option<&CallLabels>) -> bool {
        labels.is_some_and(|labels| !is_routing(&labels.step) && self.runs.lock().contains(&labels.run))
    }
}

impl Prompter for RoutedOnly {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        if self.is_over(call.labels.as_ref()) {
            let reason = "only the choice of task type and pattern is evaluated".to_owned();
            return Box::pin(std::future::ready(Err(PromptError::Provider { reason, failures: Vec::new() })));
        }
        self.inner.ask(call, sink)
    }

    fn complete<'a>(
        &'a self,
        call: Completion,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        self.inner.complete(call, sink)
    }

    fn capacity(&self, need: PromptNeed<'_>) -> Option<Arc<CallCapacity>> {
        self.inner.capacity(need)
    }

    fn routes_in_one_call(&self, need: PromptNeed<'_>) -> bool {
        self.inner.routes_in_one_call(need)
    }

    fn room<'a>(&'a self, need: PromptNeed<'a>) -> BoxFuture<'a, Option<u64>> {
        self.inner.room(need)
    }

    fn models(&self) -> Vec<String> {
        self.inner.models()
    }

    fn choosable(&self, settings: &Settings) -> Vec<String> {
        self.inner.choosable(settings)
    }
}

fn is_routing(step: &Name) -> bool {
    matches!(step.first_asking().core(), Some(Core::Route | Core::RouteTaskType | Core::RoutePattern))
}
