//! The rehearsal as the host of a debate: who argues, whether enough was said, and the judge.

use super::given::Given;
use super::{NOTE, line};
use serde_json::{Value, json};

/// The reply to `debate-stances`.
pub(super) fn stances(given: Given<'_>) -> Value {
    let about = line(given.question(), 120);
    json!({ "stances": [
        { "stance": "for", "brief": format!("Scripted stance: argues for a yes to \"{about}\".") },
        { "stance": "against", "brief": format!("Scripted stance: argues for a no to \"{about}\".") },
    ] })
}

/// The reply to `debate-moderate`: one rebuttal is enough.
pub(super) fn moderate() -> Value {
    json!({ "decision": "answer", "reason": "Scripted decision: every side has answered the other once." })
}

/// The reply to `debate-judge`. It agrees with nobody: there is nothing real to agree on.
pub(super) fn judge(given: Given<'_>) -> String {
    let cite = |said: Given<'_>| said.number("index").map(|index| (index, line(said.text("who"), 100)));
    let said: Vec<_> = given.all("statements").filter_map(cite).collect();
    let heard: Vec<_> = said.iter().map(|(index, who)| format!("- {who} [finding {index}]")).collect();
    let sure = said.iter().map(|(index, _)| format!("- [finding {index}] confidence: low (scripted sample data)"));
    let sure: Vec<_> = sure.collect();
    let apart = "- What follows from it: each side draws its own conclusion.".to_owned();
    let lost = given.all("missing").map(|lost| format!("- not heard: {}", line(lost.text("who"), 100)));
    let apart: Vec<_> = std::iter::once(apart).chain(lost).collect();
    let (heard, apart, sure) = (heard.join("\n"), apart.join("\n"), sure.join("\n"));
    format!(
        "No side has the better case: everything that was said rests on sample data (scripted).\n\n{heard}\n\n\
         ## Agreement\n\n- All sides had the same sample data, and none claims that it is real.\n\n\
         ## Dissent\n\n{apart}\n\n## Confidence\n\n{sure}\n\n{NOTE}"
    )
}
