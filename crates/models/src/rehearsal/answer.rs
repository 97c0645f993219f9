//! The answers of a single agent. They say nothing that the observations do not.

use super::inquiry::{Inquiry, RISK};
use super::line;
use super::quote::{QUOTED_CHARACTERS, SIGNALS, findings, quotation, signal, worst};
use super::react::{PastStep, Scene};

/// What an inquiry brought, if it was made.
type Inquired<'a> = (&'static Inquiry, Option<&'a PastStep<'a>>);

/// The specification's worked example, played by one agent.
pub(super) fn risk_profile(scene: &Scene<'_>, company: &str) -> String {
    let dimensions = inquired(scene, &RISK);
    let row = |(inquiry, step): &Inquired<'_>| {
        format!("| {} | `{}` | {} |\n", inquiry.dimension, inquiry.tool, status(*step))
    };
    let section = |(inquiry, step): (&Inquiry, &PastStep<'_>)| {
        format!("### {}\n\n{}\n\n", inquiry.dimension, findings(step.observation))
    };
    [
        format!("## Partner risk profile: {company}\n\n{}\n\n", verdict(&dimensions)),
        "| Dimension | Source | Signal |\n|---|---|---|\n".to_owned(),
        dimensions.iter().map(row).collect(),
        "\n".to_owned(),
        answered(&dimensions).map(section).collect(),
        gaps(&dimensions),
    ]
    .concat()
    .trim_end()
    .to_owned()
}

/// What a subagent brings back about its goal: one section per source, and the worst of their signals.
pub(super) fn report(scene: &Scene<'_>, title: &str, inquiries: &[&'static Inquiry], about: &str) -> String {
    let asked: Vec<_> = inquired(scene, inquiries).into_iter().filter(|(_, step)| step.is_some()).collect();
    let signal = worst(answered(&asked).map(|(_, step)| step.observation));
    let signal = signal.map(|signal| format!("Signal: {signal}\n\n")).unwrap_or_default();
    let section = |(inquiry, step): (&Inquiry, &PastStep<'_>)| {
        format!("### `{}`\n\n{}\n\n", inquiry.tool, findings(step.observation))
    };
    let sections: String = answered(&asked).map(section).collect();
    let sections = if sections.is_empty() { "No source answered.\n\n".to_owned() } else { sections };
    let heading = if title == about { title.to_owned() } else { format!("{title}: {about}") };
    format!("## {heading}\n\n{signal}{sections}{}", gaps(&asked)).trim_end().to_owned()
}

/// The question, and what each step brought.
pub(super) fn summary(scene: &Scene<'_>) -> String {
    let question = line(scene.question, QUOTED_CHARACTERS);
    if scene.history.is_empty() {
        return format!("You asked: {question}\n\nNo tool was called: none is offered that the script knows.");
    }
    let brought = |(index, step): (usize, &PastStep<'_>)| {
        let outcome = match step.error() {
            Some(error) => format!("failed: {}", line(error, QUOTED_CHARACTERS)),
            None => format!("brought this:\n\n{}", quotation(step.observation)),
        };
        format!("{}. `{}` {outcome}\n\n", index + 1, line(step.action, 60))
    };
    let steps: String = scene.history.iter().enumerate().map(brought).collect();
    format!("You asked: {question}\n\n{steps}A language model would weigh this now and answer the question.")
}

fn inquired<'a>(scene: &'a Scene<'_>, inquiries: &[&'static Inquiry]) -> Vec<Inquired<'a>> {
    let made = |inquiry: &Inquiry| scene.history.iter().rev().find(|step| step.action == inquiry.tool);
    inquiries.iter().map(|inquiry| (*inquiry, made(inquiry))).collect()
}

fn answered<'a>(inquired: &'a [Inquired<'a>]) -> impl Iterator<Item = (&'static Inquiry, &'a PastStep<'a>)> {
    inquired.iter().filter_map(|(inquiry, step)| Some((*inquiry, (*step)?))).filter(|(_, step)| step.error().is_none())
}

fn verdict(dimensions: &[Inquired<'_>]) -> String {
    let overall = worst(answered(dimensions).map(|(_, step)| step.observation)).unwrap_or("not known");
    let asked = dimensions.iter().filter(|(_, step)| step.is_some()).count();
    format!(
        "**Overall: {overall}** ({} of {asked} sources answered, the worst signal counts). Confidence: low, because a \
         script and not an analysis wrote this.",
        answered(dimensions).count()
    )
}

fn status(step: Option<&PastStep<'_>>) -> &'static str {
    match step {
        None => "not asked",
        Some(step) if step.error().is_some() => "failed",
        Some(step) => signal(step.observation).map_or("not stated", |index| SIGNALS[index]),
    }
}

fn gaps(inquired: &[Inquired<'_>]) -> String {
    let gap = |(inquiry, step): &Inquired<'_>| match step {
        None => Some(format!("- {}: `{}` was not asked", inquiry.dimension, inquiry.tool)),
        Some(step) => {
            let error = line(step.error()?, QUOTED_CHARACTERS);
            Some(format!("- {}: `{}` failed: {error}", inquiry.dimension, inquiry.tool))
        }
    };
    let gaps: Vec<_> = inquired.iter().filter_map(gap).collect();
    if gaps.is_empty() { String::new() } else { format!("### Gaps\n\n{}", gaps.join("\n")) }
}
