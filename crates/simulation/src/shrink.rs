//! Cuts a failing scenario down to what it takes to fail.

use crate::breakage::Breakage;
use crate::promises::broken;
use crate::scenario::{Faults, Scenario, ScheduledEvent, What};
use crate::simulation::play;

/// So many worlds are tried. One that never ends takes a second or two.
const MOST: u32 = 60;

/// A smaller scenario that still breaks the same promise.
pub fn shrink(scenario: &Scenario, breakage: Option<Breakage>, promise: &str) -> Scenario {
    let fails =
        |candidate: &Scenario| broken(&play(candidate, breakage)).iter().any(|breach| breach.promise == promise);
    let (mut smallest, mut tries) = (scenario.clone(), 0);
    loop {
        let mut simpler = candidates(&smallest).into_iter().inspect(|_| tries += 1);
        let Some(smaller) = simpler.find(fails) else { return smallest };
        smallest = smaller;
        if tries > MOST {
            return smallest;
        }
    }
}

/// Everything that is one step simpler. Each has less of something, so this comes to an end.
fn candidates(scenario: &Scenario) -> Vec<Scenario> {
    let mut simpler = Vec::new();
    let mut try_one = |change: &dyn Fn(&mut Scenario)| {
        let mut candidate = scenario.clone();
        change(&mut candidate);
        if candidate != *scenario {
            simpler.push(candidate);
        }
    };
    for number in 0..scenario.events.len() {
        try_one(&|candidate| candidate.events = without(&candidate.events, number));
    }
    if scenario.processes.len() > 1 {
        try_one(&|candidate| candidate.processes.truncate(candidate.processes.len() - 1));
    }
    for (number, process) in scenario.processes.iter().enumerate() {
        let dies_at = process.dies_at.len().saturating_sub(1);
        try_one(&|candidate| candidate.processes[number].dies_at.truncate(dies_at));
    }
    // Only the last: events name questions by their number.
    if scenario.questions.len() > 1 {
        try_one(&|candidate| candidate.questions.truncate(candidate.questions.len() - 1));
    }
    for number in 0..scenario.questions.len() {
        try_one(&|candidate| candidate.questions[number].again = false);
    }
    let quieter: [fn(&mut Faults); 12] = [
        |faults| faults.wake_up_lost = 0,
        |faults| faults.wake_up_doubled = 0,
        |faults| faults.wake_up_delayed_ms = 0,
        |faults| faults.queue_fails = 0,
        |faults| faults.notice_lost = 0,
        |faults| faults.notice_doubled = 0,
        |faults| faults.notice_delayed_ms = 0,
        |faults| faults.store_fails = 0,
        |faults| faults.store_takes_ms = 0,
        |faults| faults.model_fails = 0,
        |faults| faults.model_takes_ms = faults.model_takes_ms.min(1),
        |faults| faults.tool_takes_ms = faults.tool_takes_ms.min(1),
    ];
    for change in quieter {
        try_one(&|candidate| change(&mut candidate.faults));
    }
    let questions = scenario.questions.len();
    simpler.retain(|candidate| {
        candidate.events.iter().all(|event| match event.what {
            What::Cancel { question } | What::Tell { question } => question < candidate.questions.len().min(questions),
            What::Crash { process } | What::Pause { process, .. } => process < candidate.processes.len(),
            What::Jump { .. } | What::Configure => true,
        })
    });
    simpler
}

fn without(events: &[ScheduledEvent], number: usize) -> Vec<ScheduledEvent> {
    let others = events.iter().enumerate().filter(|(place, _)| *place != number);
    others.map(|(_, event)| event.clone()).collect()
}
