//! The loop: decide, perform, commit. Ports to the outside world, each with an in-memory twin.
//!
//! This crate owns when things happen and that nothing unrecorded is acted on. It does not know how
//! anything is stored, which model answers or what a tool does: adapters do, behind [`ports`].
//!
//! A question, accepted, worked on and followed to its end, with everything in memory:
//!
//! ```
//! use std::sync::Arc;
//! use tokio::sync::watch;
//! use trellis_domain::limits::SomeLimits;
//! use trellis_domain::message::AgentRequest;
//! use trellis_domain::{RequestId, Scope};
//! use trellis_orchestrator::accept::UnknownNames;
//! use trellis_orchestrator::memory::scripted::{ScriptedPrompter, ScriptedTools};
//! use trellis_orchestrator::memory::{MemoryConfig, MemoryJournal};
//! use trellis_orchestrator::ports::{RealWorld, World};
//! use trellis_orchestrator::queue::FairQueue;
//! use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};
//! use trellis_orchestrator::{Hub, Item, Options, Orchestrator, Ports, Question, RunService};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let world: Arc<dyn World> = Arc::new(RealWorld);
//! let ports = Ports {
//!     journal: Arc::new(MemoryJournal::default()),
//!     queue: Arc::new(FairQueue::new(Arc::clone(&world))),
//!     config: Arc::new(MemoryConfig::new(Arc::clone(&world))),
//!     prompter: Arc::new(ScriptedPrompter::replies(&["Thought: easy\nFinal Answer: Forty-two."])),
//!     tools: Arc::new(ScriptedTools::new(|_| Ok("a fact".to_owned()))),
//!     hub: Arc::new(Hub::default()),
//!     world,
//! };
//! let orchestrator = Arc::new(Orchestrator::new(ports, Options::default()));
//! let runs = RunService::new(&orchestrator);
//! let workers = Workers::new(orchestrator, WorkerOptions::default());
//! let (stop, stopped) = watch::channel(None);
//! let working = tokio::spawn(async move { workers.run(stopped).await });
//!
//! let scope = Scope::default();
//! let question = Question {
//!     scope: scope.clone(),
//!     request_id: RequestId::new("request-1")?,
//!     request: AgentRequest { question: "What is the answer?".to_owned(), ..AgentRequest::default() },
//!     limits: SomeLimits::default(),
//!     names: UnknownNames::Refuse,
//!     selection: trellis_domain::Selection::default(),
//!     by: None,
//! };
//! let run = runs.accept(question).await?.run;
//! let mut listening = runs.follow(&scope.workspace, &run, 0);
//! let answer = loop {
//!     if let Item::Record(record) = listening.next().await?
//!         && let Some(end) = record.body.as_ended()
//!     {
//!         break end.answer.as_ref().map(|answer| answer.text().to_owned());
//!     }
//! };
//! assert_eq!(answer.as_deref(), Some("Forty-two."));
//! stop.send_replace(Some(Stop::Drain));
//! working.await?;
//! # Ok(())
//! # }
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test waits for what it tests"))]

pub mod accept;
mod answer;
pub mod audit;
mod cancel;
pub mod checkpoint;
mod claims;
#[cfg(feature = "testing")]
pub mod contract;
mod decide;
pub mod decision_scoring;
pub mod dialog;
pub mod documents;
mod driver;
pub mod events;
pub mod evidence;
mod fan_in;
mod given_up;
pub mod graph_rag;
mod handling;
mod hear;
pub mod hub;
pub mod knowledge;
pub mod leaf;
pub mod ledger;
pub mod library;
pub mod log_key;
pub mod memory;
mod messages;
pub mod meter;
pub mod orchestrator;
mod park;
mod perform;
pub mod permits;
pub mod ports;
#[cfg(feature = "testing")]
pub mod promises;
pub mod queue;
pub mod reach;
mod repetition;
pub mod replay;
pub mod schema;
pub mod service;
pub mod status;
mod step;
pub mod summary;
mod suspects;
pub mod tables;
mod tell;
pub mod toolbox;
mod trials;
mod unheard;
mod unread;
mod worker;
pub mod workers;

pub use accept::{AcceptError, Acceptance, Earlier, Question};
pub use answer::{Answered, Answering, DecideError};
pub use cancel::Cancelling;
pub use hub::{Hub, Item};
pub use orchestrator::{Options, Orchestrator, Ports, TurnError};
pub use service::{RunService, RunSubscription};
pub use tell::{TellError, Telling};
pub use workers::Workers;
