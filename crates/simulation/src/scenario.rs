//! What happens in a simulated world: questions, processes, faults. Made from a seed, and itself a text that can be kept,
//! cut down and played again.

use crate::chance::Chance;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One course of events. Everything that is left to chance while it is played comes from its seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    pub seed: u64,
    pub questions: Vec<Asked>,
    pub processes: Vec<ProcessPlan>,
    pub faults: Faults,
    pub events: Vec<ScheduledEvent>,
}

/// A question and its caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub at_ms: u64,
    pub workspace: u8,
    /// What is played; see the contract suites' `play`. Of a plan `begun` says how many steps others have taken.
    pub scene: Value,
    /// Empty: the router decides.
    pub pattern: String,
    /// The caller sends the same request again, to another process.
    pub again: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessPlan {
    pub agent: bool,
    pub aggregator: bool,
    pub concurrency: usize,
    /// It dies at the so-manieth call of a port, counted from its last start. One number per life.
    pub dies_at: Vec<u64>,
}

/// How often something goes wrong, of a thousand times, and how long things take.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Faults {
    pub wake_up_lost: u32,
    pub wake_up_doubled: u32,
    pub wake_up_delayed_ms: u64,
    pub queue_fails: u32,
    pub store_fails: u32,
    pub store_takes_ms: u64,
    pub model_fails: u32,
    pub model_takes_ms: u64,
    pub tool_takes_ms: u64,
    /// Messages between processes.
    #[serde(default)]
    pub notice_lost: u32,
    #[serde(default)]
    pub notice_doubled: u32,
    #[serde(default)]
    pub notice_delayed_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduledEvent {
    pub at_ms: u64,
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A process is gone from one moment to the next, wherever its tasks are.
    Crash {
        process: usize,
    },
    /// A process stands still for so long. Its claims may expire meanwhile, and it does not know.
    Pause {
        process: usize,
        ms: u64,
    },
    /// The clock is put forward or back.
    Jump {
        ms: i64,
    },
    /// The configuration changes: new sessions see the change.
    Configure,
    Cancel {
        question: usize,
    },
    /// Somebody tells a run something.
    Tell {
        question: usize,
    },
}

/// After this time nothing goes wrong any more: whatever is still open has to come to its end.
pub const CALM_MS: u64 = 240_000;

const PATTERNS: [&str; 6] = ["react", "plan-then-execute", "supervisor", "reflexion", "dispatch", "debate"];

impl Scenario {
    pub fn from_seed(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let mut questions = (0..chance.between(1, 4)).map(|number| asked(&mut chance, number)).collect::<Vec<_>>();
        let processes = processes(&mut chance);
        let mut faults = faults(&mut chance);
        let events = events(&mut chance, processes.len(), questions.len());
        faults.notice_lost = *chance.pick(&[0, 100, 500, 1_000]);
        faults.notice_doubled = *chance.pick(&[0, 300]);
        faults.notice_delayed_ms = *chance.pick(&[0, 50, 3_000]);
        for plan in questions.iter_mut().filter(|asked| asked.pattern == "plan-then-execute") {
            let steps = plan.scene["plan"].as_array().map_or(0, Vec::len) as u64;
            if chance.one_in(3) {
                plan.scene["begun"] = chance.between(1, steps).into();
            }
        }
        Self { seed, questions, processes, faults, events }
    }

    /// Nothing in it keeps a process from renewing a claim, or from recording what it has paid for.
    pub fn interrupts_nobody(&self) -> bool {
        let hurts = |event: &ScheduledEvent| {
            matches!(event.what, What::Crash { .. } | What::Pause { .. } | What::Jump { .. } | What::Cancel { .. })
        };
        self.faults.store_fails == 0
            && !self.events.iter().any(hurts)
            && self.processes.iter().all(|process| process.dies_at.is_empty())
    }
}

fn asked(chance: &mut Chance, number: u64) -> Asked {
    let pattern = *chance.pick(&PATTERNS);
    let scene = scene(chance, pattern, &format!("q{number}"), 0);
    let routed = chance.one_in(5) && matches!(pattern, "react" | "plan-then-execute" | "supervisor");
    Asked {
        at_ms: chance.below(30_000),
        workspace: u8::from(chance.one_in(3)),
        scene,
        pattern: if routed { String::new() } else { pattern.to_owned() },
        again: chance.one_in(4),
    }
}

/// What an agent of that pattern does. `mark` is in its answer, so that it can be told whose it was.
fn scene(chance: &mut Chance, pattern: &str, mark: &str, depth: u32) -> Value {
    match pattern {
        "plan-then-execute" => plan(chance, mark),
        "supervisor" if depth < 2 => team(chance, mark, depth),
        "debate" if depth == 0 => json!({"sides": ["for", "against"], "rounds": chance.between(1, 2), "answer": mark}),
        "dispatch" if depth == 0 && chance.one_in(2) => {
            json!({"to": "agent:react", "ask": scene(chance, "react", mark, 1), "answer": mark})
        }
        "reflexion" => json!({"tools": chance.below(3), "unsound": chance.one_in(2), "answer": mark}),
        _ => agent(chance, mark),
    }
}

fn agent(chance: &mut Chance, mark: &str) -> Value {
    match chance.below(14) {
        0 => json!({"fail": true}),
        1 => json!({"silent": true}),
        2 => json!({"panic": true}),
        3 => json!({"rubbish": true}),
        4 | 5 => json!({"tools": chance.between(2, 5), "at_once": chance.between(2, 3), "answer": mark}),
        6 | 7 => {
            let agents: Vec<_> =
                (0..chance.between(1, 3)).map(|n| colleague(chance, &format!("{mark}-c{n}"))).collect();
            json!({"agents": agents, "at_once": chance.below(3), "answer": mark})
        }
        _ => json!({"tools": chance.below(4), "answer": mark}),
    }
}

/// An agent that is called like a tool.
fn colleague(chance: &mut Chance, mark: &str) -> Value {
    match chance.below(6) {
        0 => json!({"fail": true}),
        1 => json!({"silent": true}),
        2 => json!({"agents": [{"tools": 1, "answer": format!("{mark}-below")}], "answer": mark}),
        _ => json!({"tools": chance.below(3), "answer": mark}),
    }
}

fn plan(chance: &mut Chance, mark: &str) -> Value {
    let count = chance.between(1, 5);
    let steps: Vec<_> = (0..count)
        .map(|place| {
            let needs: Vec<_> = (0..place).filter(|_| chance.one_in(3)).collect();
            if chance.one_in(6) {
                return json!({"agent": colleague(chance, &format!("{mark}-{place}")), "needs": needs});
            }
            json!({
                "say": format!("{mark}-{place}"), "needs": needs, "tool": chance.one_in(2), "fail": chance.one_in(6),
                "surprise": chance.one_in(8),
            })
        })
        .collect();
    let again: Vec<_> = if chance.one_in(2) {
        vec![json!([{"say": format!("{mark}-again"), "needs": [0], "tool": true}])]
    } else {
        vec![]
    };
    json!({"plan": steps, "revisions": again})
}

fn team(chance: &mut Chance, mark: &str, depth: u32) -> Value {
    let rounds: Vec<_> = (0..chance.between(1, 2))
        .map(|round| {
            let mut goals: Vec<Value> = Vec::new();
            for place in 0..chance.between(1, 4) {
                let mark = format!("{mark}-{round}{place}");
                let goal = match (goals.last(), chance.below(6)) {
                    // Equal goals must be told apart.
                    (Some(last), 0 | 1) => last.clone(),
                    (_, 2) => scene(chance, "supervisor", &mark, depth + 1),
                    (_, 3) => plan(chance, &mark),
                    _ => agent(chance, &mark),
                };
                goals.push(goal);
            }
            json!(goals)
        })
        .collect();
    json!({"team": rounds})
}

fn processes(chance: &mut Chance) -> Vec<ProcessPlan> {
    let mut processes: Vec<_> = (0..chance.between(1, 3))
        .map(|number| ProcessPlan {
            agent: true,
            // The first has both roles, so that somebody has each.
            aggregator: number == 0 || chance.one_in(2),
            concurrency: *chance.pick(&[1, 2, 8, 64]),
            dies_at: Vec::new(),
        })
        .collect();
    if chance.one_in(3) {
        processes.push(ProcessPlan { agent: false, aggregator: true, concurrency: 4, dies_at: Vec::new() });
    }
    if chance.one_in(2) {
        for process in &mut processes {
            process.dies_at = (0..chance.below(4)).map(|_| chance.between(1, 300)).collect();
        }
    }
    processes
}

fn faults(chance: &mut Chance) -> Faults {
    let mut rate = |usual: &[u32]| *chance.pick(usual);
    Faults {
        wake_up_lost: rate(&[0, 0, 100, 500]),
        wake_up_doubled: rate(&[0, 0, 200, 600]),
        queue_fails: rate(&[0, 0, 0, 50]),
        store_fails: rate(&[0, 0, 20, 60]),
        model_fails: rate(&[0, 0, 50, 200]),
        wake_up_delayed_ms: *chance.pick(&[0, 10, 2_000]),
        store_takes_ms: *chance.pick(&[0, 1, 50]),
        model_takes_ms: *chance.pick(&[1, 1_000, 10_000, 60_000]),
        tool_takes_ms: *chance.pick(&[1, 100, 20_000]),
        // Chosen last, so that a seed goes on meaning what it meant.
        ..Faults::default()
    }
}

fn events(chance: &mut Chance, processes: usize, questions: usize) -> Vec<ScheduledEvent> {
    let count = if chance.one_in(3) { 0 } else { chance.between(1, 8) };
    let mut events: Vec<_> = (0..count)
        .map(|_| {
            let process = usize::try_from(chance.below(processes as u64)).unwrap_or(0);
            let what = match chance.below(10) {
                0..=2 => What::Crash { process },
                3 | 4 => What::Pause { process, ms: chance.between(1_000, 80_000) },
                5 => What::Jump { ms: i64::try_from(chance.below(120_000)).unwrap_or(0) - 60_000 },
                6 => What::Configure,
                7 | 8 => What::Tell { question: usize::try_from(chance.below(questions as u64)).unwrap_or(0) },
                _ => What::Cancel { question: usize::try_from(chance.below(questions as u64)).unwrap_or(0) },
            };
            // Most come while there is most to do.
            let until = *chance.pick(&[40_000, 40_000, CALM_MS]);
            ScheduledEvent { at_ms: chance.below(until), what }
        })
        .collect();
    events.sort_by_key(|event| event.at_ms);
    events
}
