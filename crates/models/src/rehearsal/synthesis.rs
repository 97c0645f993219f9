//! The rehearsal's last word: the findings of subagents or the results of steps, put together and cited.

use super::NOTE;
use super::given::Given;
use super::quote::{SIGNALS, defused, findings, labelled, points, signal, worst};
use super::scenario::Scenario;

/// A finding or a result that came.
struct Part<'a> {
    index: u64,
    title: String,
    text: &'a str,
}

/// One that did not.
struct Gap {
    index: u64,
    goal: String,
    reason: String,
}

/// The reply to `supervisor-synthesise`.
pub(super) fn of_findings(given: Given<'_>) -> String {
    let scenario = Scenario::of(given.question());
    let (parts, gaps) = split(given, "results");
    let section = |part: &Part<'_>| format!("### {} [finding {}]\n\n{}", part.title, part.index, findings(part.text));
    let confidence = |part: &Part<'_>| {
        let (word, why) = confidence(part.text);
        format!("- [finding {}] confidence: {word} ({why})", part.index)
    };
    let confidence: Vec<_> = parts.iter().map(confidence).collect();
    let mut text = vec![heading(given.question(), &scenario)];
    text.extend(overview(&scenario, &parts, gaps.len()));
    text.extend(parts.iter().map(section));
    text.extend(missing("finding", &gaps));
    if !confidence.is_empty() {
        text.push(format!("### Confidence\n\n{}", confidence.join("\n")));
    }
    text.push(NOTE.to_owned());
    text.join("\n\n")
}

/// The reply to `plan-synthesise`.
pub(super) fn of_steps(given: Given<'_>) -> String {
    let scenario = Scenario::of(given.question());
    let (parts, gaps) = split(given, "steps");
    let section = |part: &Part<'_>| {
        let all = points(part.text);
        let (some, chosen) = (!all.is_empty(), relevant(&scenario, all));
        let body = match (some, chosen.is_empty()) {
            (false, _) => findings(part.text),
            (true, true) => "Nothing in this result is about the question.".to_owned(),
            (true, false) => labelled(part.text, &chosen),
        };
        format!("### {} [step {}]\n\n{body}", part.title, part.index)
    };
    let mut text = vec![heading(given.question(), &scenario)];
    if parts.is_empty() {
        text.push("No step brought a result, so there is no answer.".to_owned());
    }
    text.extend(parts.iter().map(section));
    text.extend(missing("step", &gaps));
    text.push(NOTE.to_owned());
    text.join("\n\n")
}

/// Where a question is about something special, only the points on that; all of them elsewhere.
pub(super) fn relevant(scenario: &Scenario, points: Vec<String>) -> Vec<String> {
    let on_owners = |point: &String| {
        let lower = point.to_lowercase();
        ["owner", "share", "stake"].iter().any(|word| lower.contains(word))
    };
    match scenario {
        Scenario::Trace { .. } => points.into_iter().filter(on_owners).collect(),
        Scenario::Dimension { .. }
        | Scenario::Weighing { .. }
        | Scenario::Register { .. }
        | Scenario::Source { .. }
        | Scenario::Comparison { .. }
        | Scenario::PartnerRisk { .. }
        | Scenario::Other => points,
    }
}

/// What came, and what did not: what is listed as missing, and what has no text.
fn split<'a>(given: Given<'a>, name: &str) -> (Vec<Part<'a>>, Vec<Gap>) {
    let (mut parts, mut gaps) = (Vec::new(), Vec::new());
    for entry in given.all("missing") {
        gaps.push(gap(entry, entry.text("reason")));
    }
    for entry in given.all(name) {
        let (index, goal, text) = (entry.number("index").unwrap_or_default(), entry.text("goal"), entry.text("result"));
        let listed = gaps.iter().any(|gap: &Gap| gap.index == index);
        let failed = entry.text("status") == "failed";
        if listed || failed || text.trim().is_empty() {
            if !listed {
                gaps.push(gap(entry, if text.trim().is_empty() { entry.text("status") } else { text }));
            }
        } else {
            let title = Scenario::of(goal).title(goal).replace(['|', '[', ']'], " ");
            parts.push(Part { index, title, text });
        }
    }
    (parts, gaps)
}

fn gap(entry: Given<'_>, reason: &str) -> Gap {
    let reason = if reason.trim().is_empty() { "no reason is given" } else { reason };
    Gap { index: entry.number("index").unwrap_or_default(), goal: defused(entry.text("goal")), reason: defused(reason) }
}

fn heading(question: &str, scenario: &Scenario) -> String {
    match scenario {
        Scenario::PartnerRisk { company } => format!("## Partner risk profile: {company}"),
        Scenario::Comparison { companies } => format!("## Partner risks compared: {}", companies.join(" and ")),
        Scenario::Weighing { company } => format!("## {company}"),
        Scenario::Trace { company } => format!("## How {company} came to its present owners"),
        Scenario::Dimension { .. } | Scenario::Register { .. } | Scenario::Source { .. } | Scenario::Other => {
            format!("You asked: {}", defused(question))
        }
    }
}

/// The verdict and the table of signals, where risks are weighed.
fn overview(scenario: &Scenario, parts: &[Part<'_>], missing: usize) -> Vec<String> {
    if parts.is_empty() {
        return vec!["No finding came back, so there is no answer.".to_owned()];
    }
    match scenario {
        Scenario::PartnerRisk { .. } | Scenario::Comparison { .. } | Scenario::Weighing { .. } => {
            let overall = worst(parts.iter().map(|part| part.text)).unwrap_or("not known");
            let verdict = format!(
                "**Overall: {overall}** ({} of {} findings came, the worst signal counts). A script and not an \
                 analysis wrote this.",
                parts.len(),
                parts.len() + missing
            );
            let row = |part: &Part<'_>| {
                let signal = signal(part.text).map_or("not stated", |signal| SIGNALS[signal]);
                format!("\n| {} | [finding {}] | {signal} |", part.title, part.index)
            };
            let rows: String = parts.iter().map(row).collect();
            vec![verdict, format!("| Part | Finding | Signal |\n|---|---|---|{rows}")]
        }
        Scenario::Dimension { .. }
        | Scenario::Register { .. }
        | Scenario::Source { .. }
        | Scenario::Trace { .. }
        | Scenario::Other => Vec::new(),
    }
}

/// Numbers without brackets: what did not come is nothing to cite.
fn missing(noun: &str, gaps: &[Gap]) -> Option<String> {
    let gap = |gap: &Gap| format!("- {noun} {} ({}): {}", gap.index, gap.goal, gap.reason);
    let gaps: Vec<_> = gaps.iter().map(gap).collect();
    (!gaps.is_empty()).then(|| format!("### What is missing\n\n{}", gaps.join("\n")))
}

/// By how many sources a finding names, and whether it names gaps.
fn confidence(text: &str) -> (&'static str, String) {
    let source = |line: &&str| line.starts_with("### `") || line.starts_with("- [finding ");
    let sources = text.lines().filter(source).count();
    let gaps = text.lines().any(|line| line == "### Gaps" || line == "### What is missing");
    let sample = if text.contains("Sample data") { ", sample data" } else { "" };
    match (sources, gaps) {
        (0, _) => ("low", "it names no source".to_owned()),
        (1, _) => ("low", format!("a single source{sample}")),
        (_, true) => ("low", format!("{sources} sources and gaps{sample}")),
        (_, false) => ("medium", format!("{sources} sources{sample}")),
    }
}
