//! Processes that live, die and begin again.

use crate::breakage::Breakage;
use crate::effects::Effects;
use crate::fault_source::FaultSource;
use crate::process_journal::ProcessJournal;
use crate::process_life::ProcessLife;
use crate::queue::{Broker, BrokerConnection};
use crate::recorder::Recorder;
use crate::scenario::ProcessPlan;
use crate::stream::{Line, Wire};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_orchestrator::contract::layer::Layered;
use trellis_orchestrator::memory::{MemoryConfig, MemoryJournal, VirtualWorld};
use trellis_orchestrator::ports::Role;
use trellis_orchestrator::workers::{WorkerOptions, Workers};
use trellis_orchestrator::{Hub, Options, Orchestrator, Ports, RunService};

/// What all processes share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) world: Arc<VirtualWorld>,
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) config: Arc<MemoryConfig>,
    pub(crate) broker: Arc<Broker>,
    pub(crate) wire: Arc<Wire>,
    pub(crate) fault_source: Arc<FaultSource>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) breakage: Option<Breakage>,
}

/// A process that is alive.
#[derive(Debug, Clone)]
pub(crate) struct Alive {
    pub(crate) runs: RunService,
    pub(crate) hub: Arc<Hub>,
    pub(crate) life: Arc<ProcessLife>,
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
        self.alive.lock()[number] = process;
    }

    pub(crate) fn get(&self, number: usize) -> Option<Alive> {
        self.alive.lock().get(number).cloned().flatten()
    }

    /// Any that is alive.
    pub(crate) fn any(&self) -> Option<Alive> {
        let alive = self.alive.lock();
        let living: Vec<_> = alive.iter().flatten().cloned().collect();
        (!living.is_empty()).then(|| self.common.fault_source.chance().pick(&living).clone())
    }

    fn begin(&self, number: usize, life: &Arc<ProcessLife>) -> Arc<Orchestrator> {
        let Common { world, journal, config, broker, wire, fault_source, recorder, breakage } = &self.common;
        let stream = Line { wire: Arc::clone(wire), life: Arc::clone(life) };
        let effects = Arc::new(Effects::new(number, Arc::clone(life), Arc::clone(fault_source), Arc::clone(recorder)));
        let process_journal = ProcessJournal {
            process: number,
            journal: Arc::clone(journal),
            world: Arc::clone(world),
            life: Arc::clone(life),
            fault_source: Arc::clone(fault_source),
            recorder: Arc::clone(recorder),
            breakage: *breakage,
        };
        let ports = Ports {
            journal: Arc::new(Layered(process_journal)),
            queue: Arc::new(BrokerConnection {
                broker: Arc::clone(broker),
                life: Arc::clone(life),
                world: Arc::clone(world),
            }),
            config: Arc::clone(config) as _,
            prompter: Arc::clone(&effects) as _,
            tools: effects,
            hub: Arc::new(Hub::shared(Arc::new(stream), Arc::clone(world) as _)),
            world: Arc::clone(world) as _,
        };
        Arc::new(Orchestrator::new(ports, Options::default()))
    }

    /// One process after the other under the same number, until the world ends.
    pub(crate) async fn live(self: Arc<Self>, number: usize, plan: ProcessPlan) {
        let mut deaths = plan.dies_at.iter();
        loop {
            let life = Arc::new(ProcessLife::new(deaths.next().copied()));
            let orchestrator = self.begin(number, &life);
            let (runs, hub) = (RunService::new(&orchestrator), Arc::clone(&orchestrator.ports.hub));
            self.set(number, Some(Alive { runs, hub, life: Arc::clone(&life) }));
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
            life.died().await;
            self.common.recorder.count("processes that died");
            self.set(number, None);
            serving.abort();
            drop(serving.await);
            drop(stop);
            let pause = self.common.fault_source.chance().between(1, 15_000);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
}
