//! Steps that were taken elsewhere, told in words: for models that are shown them, and for people who read the graph.

use crate::message::{AgentStep, PlanStep};

/// The steps in their order, each part that says something on a line of its own. `shown` may cut what is long.
///
/// ```
/// use trellis_domain::{history::in_words, message::AgentStep};
///
/// let step = AgentStep { action: "search".into(), observation: "Nothing.".into(), ..AgentStep::default() };
/// assert_eq!(in_words(&[step], str::to_owned), "Step 1\nAction: search\nArgs: {}\nObservation: Nothing.");
/// ```
pub fn in_words(steps: &[AgentStep], shown: impl Fn(&str) -> String) -> String {
    let steps = steps.iter().zip(1..).map(|(step, number): (_, u32)| step_in_words(step, number, &shown));
    steps.collect::<Vec<_>>().join("\n\n")
}

fn step_in_words(step: &AgentStep, number: u32, shown: &impl Fn(&str) -> String) -> String {
    let AgentStep { thought, action, arguments, observation, step_type: _, plan, subagent_results } = step;
    let mut lines = vec![format!("Step {number}")];
    let mut line = |label: &str, text: &str| {
        if !text.is_empty() {
            lines.push(format!("{label}: {}", shown(text)));
        }
    };
    line("Thought", thought);
    if !action.is_empty() {
        line("Action", action);
        line("Args", &serde_json::to_string(arguments).expect("texts under names are always JSON"));
    }
    for (number, PlanStep { goal, result, .. }) in plan.iter().enumerate() {
        line(&format!("Planned step {number}"), goal);
        line(&format!("Result of step {number}"), result);
    }
    for (goal, result) in subagent_results {
        line(&format!("Found for {goal:?}"), result);
    }
    line("Observation", observation);
    lines.join("\n")
}
