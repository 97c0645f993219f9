//! Processes that live, die and begin again.

use crate::breakage::Breakage;
use crate::effects::Effects;
use crate::gate::Gate;
use crate::journal::Passage;
use crate::queue::{Broker, Connection};
use crate::scenario::Process;
use crate::stream::{Line, Wire};
use crate::weather::Weather;
use crate::witness::Witness;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use trellis_orchestrator::contract::layer::Layered;
use trellis_orchestrator::memory::{MemoryConfig, MemoryJournal, VirtualWorld};
use trellis_orchestrator::ports::Role;
use trellis_orchestrator::workers::{WorkerOptions, Workers};
use trellis_orchestrator::{Hub, Options, Orchestrator, Ports};

/// What all processes share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) world: Arc<VirtualWorld>,
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) config: Arc<MemoryConfig>,
    pub(crate) broker: Arc<Broker>,
    pub(crate) wire: Arc<Wire>,
    pub(crate) weather: Arc<Weather>,
    pub(crate) witness: Arc<Witness>,
    pub(crate) breakage: Option<Breakage>,
}

/// A process that is alive.
#[derive(Debug, Clone)]
pub(crate) struct Alive {
    pub(crate) orchestrator: Arc<Orchestrator>,
    pub(crate) gate: Arc<Gate>,
}

/// Who is alive, by number.
#[derive(Debug)]
pub(crate) struct Processes {
    pub(crate) common: Common,
    alive: Mutex<Vec<Option<Alive>>>,
}

/// Claims last this long. A model may take twice as long, and a pause, too.
pub(crate) const CLAIM_LIFE: Duration = Duration::from_secs(30);

impl Processes {
    pub(crate) fn new(common: Common, count: usize) -> Self {
        Self { common, alive: Mutex::new(vec![None; count]) }
    }

    fn set(&self, number: usize, process: Option<Alive>) {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)[number] = process;
    }

    pub(crate) fn get(&self, number: usize) -> Option<Alive> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned().flatten()
    }

    /// Any that is alive.
    pub(crate) fn any(&self) -> Option<Alive> {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        let living: Vec<_> = alive.iter().flatten().cloned().collect();
        (!living.is_empty()).then(|| self.common.weather.chance().pick(&living).clone())
    }

    fn begin(&self, number: usize, gate: &Arc<Gate>) -> Arc<Orchestrator> {
        let Common { world, journal, config, broker, wire, weather, witness, breakage } = &self.common;
        let line = Line { wire: Arc::clone(wire), gate: Arc::clone(gate) };
        let effects = Arc::new(Effects::new(number, Arc::clone(gate), Arc::clone(weather), Arc::clone(witness)));
        let passage = Passage {
            process: number,
            journal: Arc::clone(journal),
            world: Arc::clone(world),
            gate: Arc::clone(gate),
            weather: Arc::clone(weather),
            witness: Arc::clone(witness),
            breakage: *breakage,
        };
        let ports = Ports {
            journal: Arc::new(Layered(passage)),
            queue: Arc::new(Connection {
                broker: Arc::clone(broker),
                gate: Arc::clone(gate),
                world: Arc::clone(world),
            }),
            config: Arc::clone(config) as _,
            prompter: Arc::clone(&effects) as _,
            tools: effects,
            hub: Arc::new(Hub::shared(Arc::new(line), Arc::clone(world) as _)),
            world: Arc::clone(world) as _,
        };
        Arc::new(Orchestrator::new(ports, Options::default()))
    }

    /// One process after the other under the same number, until the world ends.
    pub(crate) async fn live(self: Arc<Self>, number: usize, plan: Process) {
        let mut deaths = plan.dies_at.iter();
        loop {
            let gate = Arc::new(Gate::new(deaths.next().copied()));
            let orchestrator = self.begin(number, &gate);
            self.set(number, Some(Alive { orchestrator: Arc::clone(&orchestrator), gate: Arc::clone(&gate) }));
            let roles = [(plan.agent, Role::Agent), (plan.aggregator, Role::Aggregator)];
            let options = WorkerOptions {
                concurrency: plan.concurrency,
                roles: roles.into_iter().filter_map(|(has, role)| has.then_some(role)).collect(),
                claim_life: CLAIM_LIFE,
                ..WorkerOptions::default()
            };
            let workers = Workers::new(orchestrator, options);
            let (stop, stopped) = watch::channel(None);
            let serving = tokio::spawn(async move { workers.run(stopped).await });
            gate.died().await;
            self.common.witness.count("processes that died");
            self.set(number, None);
            serving.abort();
            drop(serving.await);
            drop(stop);
            let pause = self.common.weather.chance().between(1, 15_000);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
}
