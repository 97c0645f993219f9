//! The rehearsal as a ReAct agent: which step comes next.

use super::answer;
use super::given::Given;
use super::inquiry::{Inquiry, LOADED};
use super::line;
use super::loaded;
use super::scenario::Scenario;
use serde_json::Value;

/// More than this is not asked about one company's risk: the answer should show a gap that is named.
const RISK_STEPS: usize = 3;

/// The variables of `agent-react`, as far as the script needs them.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    given: Given<'a>,
    pub(super) question: &'a str,
    pub(super) history: Vec<PastStep<'a>>,
}

#[derive(Debug)]
pub(super) struct PastStep<'a> {
    pub(super) action: &'a str,
    pub(super) observation: &'a str,
}

impl<'a> PastStep<'a> {
    fn new(step: Given<'a>) -> Self {
        Self { action: step.text("action"), observation: step.text("observation") }
    }

    /// The reason, if the step failed.
    pub(super) fn error(&self) -> Option<&'a str> {
        self.observation.strip_prefix("Error:").map(str::trim)
    }
}

/// The next reply: a call of the first planned tool that was not tried yet, or the answer.
pub(super) fn step(given: Given<'_>) -> String {
    let history = given.all("history").map(PastStep::new).collect();
    let scene = Scene { given, question: given.question(), history };
    let scenario = Scenario::of(scene.question);
    let about = scenario.subject(scene.question);
    let planned = planned(given, &scenario);
    let tried = |inquiry: &Inquiry| scene.history.iter().any(|step| step.action == inquiry.tool);
    match planned.iter().find(|inquiry| !tried(inquiry)) {
        Some(inquiry) => scene.call(inquiry, &about),
        None if planned.is_empty() => scene.final_answer(&answer::summary(&scene)),
        None => match scene.history.iter().zip(1..).find_map(|(step, n)| loaded::answer(scene.question, step, n)) {
            Some(answer) => scene.final_answer(&answer),
            None => scene.final_answer(&answer(&scene, &scenario, &about)),
        },
    }
}

fn planned(given: Given<'_>, scenario: &Scenario) -> Vec<&'static Inquiry> {
    let most = match scenario {
        Scenario::PartnerRisk { .. } | Scenario::Comparison { .. } => RISK_STEPS,
        Scenario::Dimension { .. }
        | Scenario::Weighing { .. }
        | Scenario::Register { .. }
        | Scenario::Source { .. }
        | Scenario::Trace { .. }
        | Scenario::Other => usize::MAX,
    };
    if matches!(scenario, Scenario::Other) && LOADED.offered(given) && is_about_lighthouses(given.question()) {
        return vec![&LOADED];
    }
    scenario.inquiries().into_iter().filter(|inquiry| inquiry.offered(given)).take(most).collect()
}

/// Whether the documents of the example can say something about it.
fn is_about_lighthouses(question: &str) -> bool {
    let words = ["lighthouse", "pharos", "hercules", "cordouan", "fresnel", "eddystone", "bell rock", "keeper"];
    let lower = question.to_lowercase();
    words.iter().any(|word| lower.contains(word))
}

fn answer(scene: &Scene<'_>, scenario: &Scenario, about: &str) -> String {
    match scenario {
        Scenario::PartnerRisk { .. } | Scenario::Comparison { .. } => answer::risk_profile(scene, about),
        Scenario::Dimension { .. }
        | Scenario::Weighing { .. }
        | Scenario::Register { .. }
        | Scenario::Source { .. } => {
            answer::report(scene, &scenario.title(scene.question), &scenario.inquiries(), about)
        }
        Scenario::Trace { .. } | Scenario::Other => answer::summary(scene),
    }
}

impl Scene<'_> {
    /// What the agent says about a step that failed just now.
    fn regret(&self) -> String {
        let Some(step) = self.history.last() else { return String::new() };
        match step.error() {
            Some(error) if step.action.is_empty() || step.action.starts_with("__") => {
                format!("My last reply could not be read ({}). ", line(error, 120))
            }
            Some(error) => {
                format!("`{}` failed ({}), so I go on without it. ", line(step.action, 60), line(error, 120))
            }
            None => String::new(),
        }
    }

    fn call(&self, inquiry: &Inquiry, about: &str) -> String {
        let thought = inquiry.thought.replace("{}", &line(about, 120));
        let arguments = Value::Object(inquiry.arguments(self.given, about));
        format!("Thought: {}{thought}\nAction: {}\nArgs: {arguments}", self.regret(), inquiry.tool)
    }

    fn final_answer(&self, answer: &str) -> String {
        let asked = self.history.len();
        let failed = self.history.iter().filter(|step| step.error().is_some()).count();
        let thought = match (asked, failed) {
            (0, _) => "I know none of the tools here, so I answer at once.",
            (_, 0) => "I have what I asked for, so I answer now.",
            _ if asked == failed => "None of the steps brought a result, and I say so instead of guessing.",
            _ => "Not every step brought a result. I answer with what there is, and name the gaps.",
        };
        format!("Thought: {}{thought}\nFinal Answer: {answer}\n\n{}", self.regret(), super::NOTE)
    }
}
