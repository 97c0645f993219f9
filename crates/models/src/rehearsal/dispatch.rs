//! The rehearsal as a switchboard: who gets the question.

use super::given::Given;
use super::scenario::Scenario;
use serde_json::{Value, json};

const NEWS: &str = "news-search";

/// The reply to `dispatch-choose`: news come from the one tool that has them, everything else goes to an agent.
pub(super) fn choose(given: Given<'_>) -> Value {
    let question = given.question();
    let wants_news = ["news", "reported", "headline"].iter().any(|word| question.to_lowercase().contains(word));
    let (tools, agents) = (given.names("tools"), given.names("agents"));
    if wants_news && tools.contains(&NEWS) {
        let about = Scenario::of(question).subject(question);
        let reason = "Scripted choice: the question is about news, and one tool has them.";
        return json!({ "choice": NEWS, "arguments": { "query": about }, "question": null, "reason": reason });
    }
    let agent = agents.iter().find(|agent| agent.ends_with(":react")).or(agents.first());
    let reason = "Scripted choice: more than one step is needed, so an agent gets it.";
    json!({ "choice": agent, "arguments": {}, "question": null, "reason": reason })
}
