//! What a question asks for, as far as the script can tell. Its own goals are recognised by their wording, so that a
//! subagent plays on where its supervisor left off.

use super::company::{companies_in, company_in};
use super::inquiry::{ARCHIVE, FILINGS, FINANCES, Inquiry, KNOWLEDGE, NEWS, NOTES, REGISTER, RISK, SUPPLY};
use super::line;

/// How much of a question goes into a goal.
const GOAL_CHARACTERS: usize = 300;

/// A sentence around its subject.
#[derive(Debug)]
pub(super) struct Wording {
    before: &'static str,
    after: &'static str,
}

impl Wording {
    pub(super) fn of(&self, subject: &str) -> String {
        let subject = line(subject, GOAL_CHARACTERS);
        let subject = if subject.is_empty() { "nothing in particular" } else { &subject };
        format!("{}{subject}{}", self.before, self.after)
    }

    fn subject_in(&self, text: &str) -> Option<String> {
        let subject = text.trim().strip_prefix(self.before)?.strip_suffix(self.after)?.trim();
        (!subject.is_empty()).then(|| subject.to_owned())
    }
}

/// One of the four parts of the specification's worked example.
#[derive(Debug)]
pub(super) struct Dimension {
    pub(super) goal: Wording,
    /// The tool group that suffices for it.
    pub(super) group: &'static str,
    pub(super) inquiries: &'static [&'static Inquiry],
}

pub(super) static DIMENSIONS: [Dimension; 4] = [
    Dimension {
        goal: Wording { before: "Analyse financial health and stability of ", after: "" },
        group: "financial",
        inquiries: &[&FINANCES, &NOTES],
    },
    Dimension {
        goal: Wording { before: "Review regulatory filings, sanctions, and legal exposure for ", after: "" },
        group: "legal",
        inquiries: &[&FILINGS],
    },
    Dimension {
        goal: Wording { before: "Analyse news sentiment and public reputation of ", after: "" },
        group: "reputation",
        inquiries: &[&NEWS],
    },
    Dimension {
        goal: Wording { before: "Assess supply chain dependencies and operational risks for ", after: "" },
        group: "operations",
        inquiries: &[&SUPPLY],
    },
];

impl Dimension {
    /// What it is called, such as `Financial`.
    pub(super) fn name(&self) -> &'static str {
        self.inquiries.first().map_or("", |inquiry| inquiry.dimension)
    }
}

/// The dimensions that a company gets inside a comparison.
pub(super) fn in_short() -> &'static [Dimension] {
    &DIMENSIONS[..2]
}

/// The part of a comparison that falls to one company.
pub(super) const WEIGHING: Wording =
    Wording { before: "Weigh finances and legal exposure of ", after: " for the comparison" };
pub(super) const LOOKING_UP: Wording = Wording { before: "Look up ", after: " in the market register" };
/// What one source says about any question.
pub(super) const IN_NOTES: Wording = Wording { before: "Find what the notes say about: ", after: "" };
pub(super) const IN_GENERAL: Wording = Wording { before: "Find what is generally known about: ", after: "" };

/// Whether a question asks for one step after the other.
pub(super) fn wants_steps(question: &str) -> bool {
    let lower = question.to_lowercase();
    lower.contains("step by step") || lower.split(|c: char| !c.is_alphanumeric()).any(|word| word == "trace")
}

#[derive(Debug)]
pub(super) enum Scenario {
    /// A goal of the worked example.
    Dimension {
        dimension: &'static Dimension,
        company: String,
    },
    /// A goal of the comparison.
    Weighing {
        company: String,
    },
    /// The goal of the comparison whose tool never answers.
    Register {
        companies: String,
    },
    /// A goal for any other question.
    Source {
        inquiry: &'static Inquiry,
        about: String,
    },
    /// Companies compared as partners: a supervisor below a supervisor, and one sibling that stays silent.
    Comparison {
        companies: Vec<String>,
    },
    /// The specification's worked example.
    PartnerRisk {
        company: String,
    },
    /// How somebody came to own a company: a plan with a step that fails, and its revision.
    Trace {
        company: String,
    },
    Other,
}

impl Scenario {
    pub(super) fn of(question: &str) -> Self {
        Self::own_goal(question).unwrap_or_else(|| Self::asked(question))
    }

    fn own_goal(text: &str) -> Option<Self> {
        if let Some(company) = WEIGHING.subject_in(text) {
            return Some(Self::Weighing { company });
        }
        if let Some(companies) = LOOKING_UP.subject_in(text) {
            return Some(Self::Register { companies });
        }
        let sources = [(&IN_NOTES, &NOTES), (&IN_GENERAL, &KNOWLEDGE)];
        let source = sources.into_iter().find_map(|(wording, inquiry)| Some((inquiry, wording.subject_in(text)?)));
        if let Some((inquiry, about)) = source {
            return Some(Self::Source { inquiry, about });
        }
        let part = |dimension: &'static Dimension| Some((dimension, dimension.goal.subject_in(text)?));
        let (dimension, company) = DIMENSIONS.iter().find_map(part)?;
        Some(Self::Dimension { dimension, company })
    }

    fn asked(question: &str) -> Self {
        let lower = question.to_lowercase();
        let says = |words: &[&str]| words.iter().all(|word| lower.contains(word));
        if says(&["compar", "partner", "risk"]) {
            return Self::Comparison { companies: companies_in(question) };
        }
        if says(&["partner", "risk"]) {
            return Self::PartnerRisk { company: company_in(question) };
        }
        if says(&["owner"]) && wants_steps(question) {
            return Self::Trace { company: company_in(question) };
        }
        Self::Other
    }

    /// What a single agent asks, in this order and as far as it is offered.
    pub(super) fn inquiries(&self) -> Vec<&'static Inquiry> {
        match self {
            Self::Dimension { dimension, .. } => dimension.inquiries.to_vec(),
            Self::Weighing { .. } => {
                in_short().iter().filter_map(|dimension| dimension.inquiries.first().copied()).collect()
            }
            Self::Register { .. } => vec![&REGISTER],
            Self::Source { inquiry, .. } => vec![inquiry],
            Self::Comparison { .. } | Self::PartnerRisk { .. } => RISK.to_vec(),
            Self::Trace { .. } => vec![&NEWS, &ARCHIVE, &FILINGS],
            Self::Other => vec![&NOTES, &KNOWLEDGE],
        }
    }

    /// What it asks about.
    pub(super) fn subject(&self, question: &str) -> String {
        match self {
            Self::Dimension { company, .. }
            | Self::Weighing { company }
            | Self::PartnerRisk { company }
            | Self::Trace { company } => company.clone(),
            Self::Register { companies } => companies.clone(),
            Self::Comparison { companies } => companies.join(" and "),
            Self::Source { about, .. } => about.clone(),
            Self::Other => question.to_owned(),
        }
    }

    /// A few words for the heading of a section.
    pub(super) fn title(&self, question: &str) -> String {
        match self {
            Self::Dimension { dimension, .. } => dimension.name().to_owned(),
            Self::Weighing { company } => company.clone(),
            Self::Register { .. } => REGISTER.dimension.to_owned(),
            Self::Source { inquiry, .. } => inquiry.dimension.to_owned(),
            Self::Comparison { .. } | Self::PartnerRisk { .. } | Self::Trace { .. } | Self::Other => {
                line(question, 100)
            }
        }
    }
}
