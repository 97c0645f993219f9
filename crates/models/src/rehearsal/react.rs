//! The rehearsal as a ReAct agent: which step comes next.

use super::answer;
use super::company::company_in;
use super::line;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use trellis_domain::config::ArgumentItem;

/// The variables of `agent-react`, as far as the script needs them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Scene {
    pub(super) question: String,
    tools: Vec<OfferedTool>,
    pub(super) history: Vec<PastStep>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfferedTool {
    name: String,
    arguments: Vec<ArgumentItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PastStep {
    pub(super) action: String,
    pub(super) observation: String,
}

impl PastStep {
    /// The reason, if the step failed.
    pub(super) fn error(&self) -> Option<&str> {
        self.observation.strip_prefix("Error:").map(str::trim)
    }
}

/// One tool that the script knows, and why it is asked.
#[derive(Debug)]
pub(super) struct Inquiry {
    pub(super) tool: &'static str,
    /// What the tool tells about.
    pub(super) dimension: &'static str,
    /// `{}` stands for what the question is about.
    thought: &'static str,
}

/// The dimensions of the specification's worked example, the first three of which are played.
pub(super) const RISK: [Inquiry; 4] = [
    Inquiry {
        tool: "financial-data",
        dimension: "Financial",
        thought: "A partner has to be able to pay and to deliver, so I look at the finances of {} first.",
    },
    Inquiry {
        tool: "regulatory-filings",
        dimension: "Legal",
        thought: "Next I want to know which legal risks filings, sanctions and proceedings of {} show.",
    },
    Inquiry {
        tool: "news-search",
        dimension: "Reputational",
        thought: "Figures and filings leave out reputation, so I look at what is reported about {}.",
    },
    Inquiry {
        tool: "supply-chain",
        dimension: "Operational",
        thought: "Operations decide whether promises are kept, so I look at the supply chain of {}.",
    },
];
const RISK_STEPS: usize = 3;

const GENERAL: [Inquiry; 2] = [
    Inquiry {
        tool: "search-notes",
        dimension: "Notes",
        thought: "Before anything else I look for notes on the question.",
    },
    Inquiry { tool: "ask-model", dimension: "Knowledge", thought: "I also ask for general knowledge on the question." },
];

/// The next reply: a call of the first planned tool that was not tried yet, or the answer.
pub(super) fn step(variables: &Map<String, Value>) -> String {
    let scene: Scene = serde_json::from_value(Value::Object(variables.clone())).unwrap_or_default();
    let company = asks_for_partner_risk(&scene.question).then(|| company_in(&scene.question));
    let (plan, about) = match &company {
        Some(company) => (scene.offered(&RISK, RISK_STEPS), company.as_str()),
        None => (scene.offered(&GENERAL, GENERAL.len()), scene.question.as_str()),
    };
    let tried = |inquiry: &Inquiry| scene.history.iter().any(|step| step.action == inquiry.tool);
    match plan.iter().find(|(inquiry, _)| !tried(inquiry)) {
        Some((inquiry, tool)) => call(&scene, inquiry, tool, about),
        None => match &company {
            Some(company) if !plan.is_empty() => final_answer(&scene, &answer::risk_profile(&scene, company)),
            Some(_) | None => final_answer(&scene, &answer::summary(&scene)),
        },
    }
}

fn asks_for_partner_risk(question: &str) -> bool {
    let question = question.to_lowercase();
    question.contains("risk") && question.contains("partner")
}

impl Scene {
    /// The inquiries whose tools are on offer, at most so many.
    fn offered<'a>(&'a self, inquiries: &'a [Inquiry], most: usize) -> Vec<(&'a Inquiry, &'a OfferedTool)> {
        let tool = |inquiry: &Inquiry| self.tools.iter().find(|tool| tool.name == inquiry.tool);
        inquiries.iter().filter_map(|inquiry| Some((inquiry, tool(inquiry)?))).take(most).collect()
    }

    /// What the agent says about a step that failed just now.
    fn regret(&self) -> String {
        let Some(step) = self.history.last() else { return String::new() };
        match step.error() {
            Some(error) if step.action.is_empty() || step.action.starts_with("__") => {
                format!("My last reply could not be read ({}). ", line(error, 120))
            }
            Some(error) => {
                format!("`{}` failed ({}), so I go on without it. ", line(&step.action, 60), line(error, 120))
            }
            None => String::new(),
        }
    }
}

fn call(scene: &Scene, inquiry: &Inquiry, tool: &OfferedTool, about: &str) -> String {
    let arguments: Map<String, Value> =
        tool.arguments.iter().map(|argument| (argument.name.clone(), fitting_value(argument, about))).collect();
    let thought = inquiry.thought.replace("{}", about);
    format!("Thought: {}{thought}\nAction: {}\nArgs: {}", scene.regret(), inquiry.tool, Value::Object(arguments))
}

/// The seeded tools take texts only; one that replaces them may take more.
fn fitting_value(argument: &ArgumentItem, about: &str) -> Value {
    match argument.kind.as_str() {
        "integer" | "number" => json!(1),
        "boolean" => json!(true),
        "array" => json!([about]),
        "object" => json!({}),
        _ => json!(line(about, 400)),
    }
}

fn final_answer(scene: &Scene, answer: &str) -> String {
    let asked = scene.history.len();
    let failed = scene.history.iter().filter(|step| step.error().is_some()).count();
    let thought = match (asked, failed) {
        (0, _) => "I know none of the tools here, so I answer at once.".to_owned(),
        (_, 0) => "I have what I asked for, so I answer now.".to_owned(),
        _ if asked == failed => "None of the steps brought a result, and I say so instead of guessing.".to_owned(),
        _ => "Not every step brought a result. I answer with what there is, and name the gaps.".to_owned(),
    };
    format!("Thought: {}{thought}\nFinal Answer: {answer}\n\n{}", scene.regret(), super::NOTE)
}
