//! The rehearsal's answers. They say nothing that the observations do not.

use super::line;
use super::react::{Inquiry, PastStep, RISK, Scene};

/// The signals that the sample data ends with, from good to bad.
const SIGNALS: [&str; 3] = ["low", "moderate", "elevated"];
/// How much of an observation is quoted.
const QUOTED_LINES: usize = 6;
const QUOTED_CHARACTERS: usize = 300;

/// The structured assessment of the specification's worked example.
pub(super) fn risk_profile(scene: &Scene, company: &str) -> String {
    let dimensions: Vec<_> = RISK.iter().map(|inquiry| (inquiry, observed(scene, inquiry))).collect();
    let sources: Vec<_> = dimensions.iter().filter_map(|(inquiry, step)| Some((*inquiry, answered(*step)?))).collect();
    let row = |(inquiry, step): &(&Inquiry, Option<&PastStep>)| {
        format!("| {} | `{}` | {} |\n", inquiry.dimension, inquiry.tool, status(*step))
    };
    let section = |(inquiry, step): &(&Inquiry, &PastStep)| {
        format!("### {}\n\n{}\n\n", inquiry.dimension, findings(&step.observation))
    };
    [
        format!("## Partner risk profile: {company}\n\n{}\n\n", verdict(&dimensions, &sources)),
        "| Dimension | Source | Signal |\n|---|---|---|\n".to_owned(),
        dimensions.iter().map(row).collect(),
        "\n".to_owned(),
        sources.iter().map(section).collect(),
        gaps(&dimensions),
    ]
    .concat()
    .trim_end()
    .to_owned()
}

/// The question, and what each step brought.
pub(super) fn summary(scene: &Scene) -> String {
    let question = line(&scene.question, QUOTED_CHARACTERS);
    if scene.history.is_empty() {
        return format!("You asked: {question}\n\nNo tool was called: none is offered that the script knows.");
    }
    let brought = |(index, step): (usize, &PastStep)| {
        let outcome = match step.error() {
            Some(error) => format!("failed: {}", line(error, QUOTED_CHARACTERS)),
            None => format!("brought this:\n\n{}", quotation(&step.observation)),
        };
        format!("{}. `{}` {outcome}\n\n", index + 1, line(&step.action, 60))
    };
    let steps: String = scene.history.iter().enumerate().map(brought).collect();
    format!("You asked: {question}\n\n{steps}A language model would weigh this now and answer the question.")
}

fn verdict(dimensions: &[(&Inquiry, Option<&PastStep>)], sources: &[(&Inquiry, &PastStep)]) -> String {
    let worst = sources.iter().filter_map(|(_, step)| signal(&step.observation)).max();
    let overall = worst.map_or("not known", |worst| SIGNALS[worst]);
    let asked = dimensions.iter().filter(|(_, step)| step.is_some()).count();
    format!(
        "**Overall: {overall}** ({} of {asked} sources answered, the worst signal counts). Confidence: low, because a \
         script and not an analysis wrote this.",
        sources.len()
    )
}

fn observed<'a>(scene: &'a Scene, inquiry: &Inquiry) -> Option<&'a PastStep> {
    scene.history.iter().rev().find(|step| step.action == inquiry.tool)
}

fn answered(step: Option<&PastStep>) -> Option<&PastStep> {
    step.filter(|step| step.error().is_none())
}

fn status(step: Option<&PastStep>) -> &'static str {
    match step {
        None => "not asked",
        Some(step) if step.error().is_some() => "failed",
        Some(step) => signal(&step.observation).map_or("not stated", |index| SIGNALS[index]),
    }
}

/// Where the stated signal stands between good and bad.
fn signal(observation: &str) -> Option<usize> {
    let word = observation.lines().rev().find_map(|line| line.trim().strip_prefix("Signal:"))?.trim();
    SIGNALS.iter().position(|signal| *signal == word)
}

fn findings(observation: &str) -> String {
    let lines: Vec<_> = observation.lines().map(str::trim).filter(|line| line.starts_with("- ")).collect();
    if lines.is_empty() {
        return quotation(observation);
    }
    let label = observation.lines().next().filter(|line| line.starts_with("Sample data"));
    let label = label.map(|label| format!("{}\n\n", line(label, QUOTED_CHARACTERS))).unwrap_or_default();
    format!("{label}{}", lines[..lines.len().min(QUOTED_LINES)].join("\n"))
}

fn quotation(observation: &str) -> String {
    let lines = observation.lines().filter(|line| !line.trim().is_empty()).take(QUOTED_LINES);
    lines.map(|text| format!("> {}", line(text, QUOTED_CHARACTERS))).collect::<Vec<_>>().join("\n")
}

fn gaps(dimensions: &[(&Inquiry, Option<&PastStep>)]) -> String {
    let gap = |(inquiry, step): &(&Inquiry, Option<&PastStep>)| match step {
        None => Some(format!("- {}: `{}` was not asked", inquiry.dimension, inquiry.tool)),
        Some(step) => {
            let error = line(step.error()?, QUOTED_CHARACTERS);
            Some(format!("- {}: `{}` failed: {error}", inquiry.dimension, inquiry.tool))
        }
    };
    let gaps: Vec<_> = dimensions.iter().filter_map(gap).collect();
    if gaps.is_empty() { String::new() } else { format!("### Gaps\n\n{}", gaps.join("\n")) }
}
