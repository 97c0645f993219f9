//! What the seeded tools return in a rehearsal: always the same, always labelled.

use serde_json::{Map, Value};

/// The first words of everything that is not from a source.
pub(super) const LABEL: &str = "Sample data (scripted).";

const FINANCIAL: &str = "\
- Revenue: 412 million in the last year, 6 % more than the year before
- Operating margin: 9.1 %, stable for three years
- Net debt: 1.4 times the yearly operating result
- Liquidity: current assets cover 1.6 times the current liabilities
- Largest customer: 18 % of revenue
Signal: low";

const FILINGS: &str = "\
- Annual report: filed on time, without reservations of the auditor
- Proceedings: one civil case about a late delivery, 2.3 million claimed
- Sanctions lists: no entry
- Licences: the export licence has to be renewed within eight months
- Ownership: 22 % of the shares changed hands last year
Signal: moderate";

const NEWS: &str = "\
- March: opens a second plant, 140 new jobs (positive)
- May: a trade paper reports late deliveries to two customers (negative)
- June: wins a prize for packaging without plastics (positive)
- August: the finance director leaves, the successor is not named yet (neutral)
- October: a family fund says that it holds a third of the shares now (neutral)
Signal: moderate";

const SUPPLY: &str = "\
- Largest supplier: 34 % of all purchases
- Single sources: two electronic components have no second supplier
- Regions: 61 % of purchases come from one country
- Interruptions: eleven days of standstill in the last two years
Signal: elevated";

const NOTES: &str = "\
- Note of a project lead: the topic came up before, and no decision was written down
- Note of a librarian: two newer documents on it are announced and not collected yet";

const KNOWLEDGE: &str = "\
- A language model would answer here from what it has learned
- Nothing was looked up, and nothing is claimed";

/// The sample for a seeded prompt.
pub(super) fn reply(prompt: &str, variables: &Map<String, Value>) -> Option<String> {
    let (data, argument) = match prompt {
        "sample-financial-data" => (FINANCIAL, "company"),
        "sample-regulatory-filings" => (FILINGS, "company"),
        "sample-news-search" => (NEWS, "query"),
        "sample-supply-chain" => (SUPPLY, "company"),
        "sample-notes" => (NOTES, "query"),
        "question" => (KNOWLEDGE, "question"),
        _ => return None,
    };
    let about = match variables.get(argument) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "nothing in particular".to_owned(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => other.to_string(),
    };
    Some(format!("{LABEL} Asked for: {}\n{data}", super::line(&about, 200)))
}
