//! The rehearsal as its own critic: what it thinks of a step.

use super::given::Given;
use super::line;
use serde_json::{Value, json};

/// The reply to `reflexion-critique`: a failure is worth nothing, and everything else is worth going on with.
pub(super) fn critique(given: Given<'_>) -> Value {
    let step = given.object("step");
    let (action, observation) = (step.text("action"), step.text("observation"));
    if let Some(error) = observation.strip_prefix("Error:") {
        let problem = format!("Scripted critique: `{action}` brought nothing ({}).", line(error, 120));
        return json!({ "sound": false, "problem": problem, "advice": "Try another source." });
    }
    let advice = format!("Scripted critique: `{action}` brought sample data only; hold it against another source.");
    json!({ "sound": true, "problem": "", "advice": advice })
}
