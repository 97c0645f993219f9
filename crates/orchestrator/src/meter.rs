//! Counts what models read and write while this process runs, for whoever watches it.

use crate::permits::CallCapacity;
use crate::ports::{BoxFuture, Completion, PromptCall, PromptError, PromptNeed, PromptReply, Prompter, ReplySink};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trellis_domain::config::Settings;

/// Tokens since the process began, of all workspaces.
#[derive(Debug, Default)]
pub struct TokenMeter {
    read: AtomicU64,
    written: AtomicU64,
}

impl TokenMeter {
    /// What models were given to read.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// What they wrote.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// What a provider does not count is not counted here either.
    fn count(&self, reply: &PromptReply) {
        self.read.fetch_add(reply.in_token.unwrap_or_default(), Ordering::Relaxed);
        self.written.fetch_add(reply.out_token.unwrap_or_default(), Ordering::Relaxed);
    }
}

/// Somebody who answers prompts, with a meter.
#[derive(Debug)]
pub struct Metered {
    prompter: Arc<dyn Prompter>,
    meter: Arc<TokenMeter>,
}

impl Metered {
    pub fn new(prompter: Arc<dyn Prompter>, meter: Arc<TokenMeter>) -> Self {
        Self { prompter, meter }
    }

    async fn counted(
        &self,
        asked: BoxFuture<'_, Result<PromptReply, PromptError>>,
    ) -> Result<PromptReply, PromptError> {
        let reply = asked.await?;
        self.meter.count(&reply);
        Ok(reply)
    }
}

impl Prompter for Metered {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(self.counted(self.prompter.ask(call, sink)))
    }

    fn complete<'a>(
        &'a self,
        call: Completion,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(self.counted(self.prompter.complete(call, sink)))
    }

    fn capacity(&self, need: PromptNeed<'_>) -> Option<Arc<CallCapacity>> {
        self.prompter.capacity(need)
    }

    fn routes_in_one_call(&self, need: PromptNeed<'_>) -> bool {
        self.prompter.routes_in_one_call(need)
    }

    fn room<'a>(&'a self, need: PromptNeed<'a>) -> BoxFuture<'a, Option<u64>> {
        self.prompter.room(need)
    }

    fn models(&self) -> Vec<String> {
        self.prompter.models()
    }

    fn choosable(&self, settings: &Settings) -> Vec<String> {
        self.prompter.choosable(settings)
    }
}
