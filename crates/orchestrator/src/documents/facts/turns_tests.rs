//! Documents that wait for their facts, one that is loaded twice at once, and what attempts cost.

use super::tests::{extracting, facts, try_load};
use super::{FactsBudget, FactsBudgets, FactsSpending};
use crate::documents::load::tests::{file, loader};
use crate::documents::{Extraction, LoadError, NewDocument};
use crate::memory::MemoryConfig;
use crate::memory::scripted::{SILENT, ScriptedPrompter};
use crate::ports::{BoxFuture, PromptCall, PromptError, PromptReply, Prompter, RealWorld, ReplySink};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use trellis_domain::record::FailedAttempt;
use trellis_domain::{Collection, Workspace};

fn people() -> NewDocument {
    let lines = (0..40).map(|n| format!("Person{n} lives in London")).collect::<Vec<_>>().join("\n");
    file("a.txt", &lines)
}

/// Nobody answers the first two. Two more wait with all their passages; for others there is no room, and they wait for
/// nothing.
#[tokio::test(start_paused = true)]
async fn so_many_documents_of_a_workspace_wait_and_the_others_are_told_at_once() {
    let prompter = ScriptedPrompter::new(|_| Err::<String, _>(SILENT.to_owned()));
    let extraction = Extraction::new(Arc::new(prompter), Arc::new(MemoryConfig::new(Arc::new(RealWorld))), "test/m");
    let loader = loader(None).extracting(Some(extraction));
    let started = tokio::time::Instant::now();
    let load = |n: usize| {
        let loader = loader.clone();
        async move { (try_load(&loader, file(&format!("{n}.txt"), "Ada lives in London")).await, n) }
    };
    let mut loads: FuturesUnordered<_> = (0..6).map(load).collect();
    for _ in 0..2 {
        let (refused, _) = loads.next().await.unwrap();
        assert!(matches!(&refused, Err(LoadError::FactsBusy)), "{refused:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    let listed = loader.search().documents(&Workspace::default(), &Collection::default(), None, 10).await.unwrap();
    assert_eq!(listed.len(), 6, "all of them can be searched");
}

/// Each passage is paid for once.
#[tokio::test]
async fn the_same_document_is_asked_about_by_one_load_at_a_time() {
    let (loader, model) = extracting();
    let second = Arc::new(Mutex::new(None));
    let (meanwhile, came) = (loader.clone(), Arc::clone(&second));
    let happens = move || *came.lock() = Some(try_load(&meanwhile, people()).now_or_never());
    *model.meanwhile.lock() = Some((3, Box::new(happens)));
    assert_eq!(facts(&loader, people()).await.asked, 40);
    assert_eq!(model.asked().len(), 40);
    let second = second.lock().take().flatten();
    assert!(matches!(&second, Some(Err(LoadError::FactsBusy))), "{second:?}");
    assert_eq!(facts(&loader, people()).await.asked, 0, "afterwards there is nothing to ask for");
}

/// A model that answers when it is asked for the third time, or not at all.
#[derive(Debug)]
struct Stubborn(ScriptedPrompter);

impl Prompter for Stubborn {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        let attempt = |is_sent: bool| FailedAttempt { asked: is_sent.then(Box::default), ..FailedAttempt::default() };
        let failures = vec![attempt(true), attempt(false), attempt(true)];
        Box::pin(async move {
            match self.0.ask(call, sink).await {
                Ok(reply) => Ok(PromptReply { failures, ..reply }),
                Err(error) => Err(PromptError::Provider { reason: error.to_string(), failures }),
            }
        })
    }
}

#[tokio::test]
async fn attempts_that_brought_nothing_count_in_the_budget() {
    for (is_there, asked) in [(true, 4), (false, 5)] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let prompter = ScriptedPrompter::new(move |_| {
            let n = counted.fetch_add(1, Ordering::Relaxed);
            // Not so often in a row that nobody is taken to be there.
            if is_there || n.is_multiple_of(3) { Ok("I cannot say".to_owned()) } else { Err("hiccup".to_owned()) }
        });
        let config = Arc::new(MemoryConfig::new(Arc::new(RealWorld)));
        let budget = FactsBudget { calls: 12, tokens: u64::MAX };
        let budgets = FactsBudgets { of_load: budget, of_day: budget };
        let extraction = Extraction::new(Arc::new(Stubborn(prompter)), config, "test/m");
        let loader = loader(None).extracting(Some(extraction.within(budgets, FactsSpending::default())));
        // Those in flight are not counted yet.
        facts(&loader, people()).await;
        let made = calls.load(Ordering::Relaxed);
        assert!(made >= asked && made < asked + 4, "{made} of about {asked}");
    }
}
