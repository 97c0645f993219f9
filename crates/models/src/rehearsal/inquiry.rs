//! The tools that the script knows: why it asks them, and with which arguments.

use super::given::Given;
use super::line;
use serde_json::{Map, Value, json};

/// How much of a text is passed to a tool.
const ARGUMENT_CHARACTERS: usize = 400;

/// One tool, and why it is asked.
#[derive(Debug)]
pub(super) struct Inquiry {
    pub(super) tool: &'static str,
    /// What the tool tells about.
    pub(super) dimension: &'static str,
    /// `{}` stands for what is asked about.
    pub(super) thought: &'static str,
}

pub(super) const FINANCES: Inquiry = Inquiry {
    tool: "financial-data",
    dimension: "Financial",
    thought: "A partner has to be able to pay and to deliver, so I look at the finances of {} first.",
};
pub(super) const FILINGS: Inquiry = Inquiry {
    tool: "regulatory-filings",
    dimension: "Legal",
    thought: "I want to know what filings, sanctions and proceedings of {} show.",
};
pub(super) const NEWS: Inquiry = Inquiry {
    tool: "news-search",
    dimension: "Reputational",
    thought: "Figures and filings leave out what people say, so I look at what is reported about {}.",
};
pub(super) const SUPPLY: Inquiry = Inquiry {
    tool: "supply-chain",
    dimension: "Operational",
    thought: "Operations decide whether promises are kept, so I look at the supply chain of {}.",
};
pub(super) const ARCHIVE: Inquiry = Inquiry {
    tool: "archive-search",
    dimension: "History",
    thought: "The past of {} is in the archive, if anywhere, so I search there.",
};
pub(super) const REGISTER: Inquiry =
    Inquiry { tool: "market-register", dimension: "Market register", thought: "I look up {} in the market register." };
pub(super) const NOTES: Inquiry = Inquiry {
    tool: "search-notes",
    dimension: "Notes",
    thought: "I look for notes on this: somebody may have met it before.",
};
/// The documents in `examples/lighthouses`, if they were loaded.
pub(super) const LOADED: Inquiry = Inquiry {
    tool: "lighthouses",
    dimension: "Documents",
    thought: "There are documents that may say it, so I look into them.",
};
pub(super) const KNOWLEDGE: Inquiry =
    Inquiry { tool: "ask-model", dimension: "Knowledge", thought: "I also ask for general knowledge on the question." };

/// The dimensions of the specification's worked example.
pub(super) const RISK: [&Inquiry; 4] = [&FINANCES, &FILINGS, &NEWS, &SUPPLY];

const ALL: [&Inquiry; 9] = [&FINANCES, &FILINGS, &NEWS, &SUPPLY, &ARCHIVE, &REGISTER, &NOTES, &LOADED, &KNOWLEDGE];

/// Only these tools are ever called: a made-up call of somebody's own tool could do harm.
pub(super) fn known(tool: &str) -> Option<&'static Inquiry> {
    ALL.into_iter().find(|inquiry| inquiry.tool == tool)
}

impl Inquiry {
    /// The tool as it is offered, if it is.
    pub(super) fn offered(&self, given: Given<'_>) -> bool {
        given.names("tools").contains(&self.tool)
    }

    /// Whether the tool is asked the question itself, rather than about a company.
    pub(super) fn takes_questions(&self) -> bool {
        [NOTES.tool, LOADED.tool, KNOWLEDGE.tool].contains(&self.tool)
    }

    /// A value for every argument that the tool has here: the seeded tools take one text, one that replaces them may
    /// take more.
    pub(super) fn arguments(&self, given: Given<'_>, about: &str) -> Map<String, Value> {
        let tool = given.all("tools").find(|tool| tool.text("name") == self.tool);
        let arguments = tool.into_iter().flat_map(|tool| tool.all("arguments"));
        arguments
            .map(|argument| (argument.text("name").to_owned(), fitting_value(argument.text("type"), about)))
            .collect()
    }
}

fn fitting_value(kind: &str, about: &str) -> Value {
    match kind {
        "integer" | "number" => json!(1),
        "boolean" => json!(true),
        "array" => json!([about]),
        "object" => json!({}),
        _ => json!(line(about, ARGUMENT_CHARACTERS)),
    }
}
