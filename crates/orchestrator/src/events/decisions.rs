//! What could be chosen and what was, by models and by people.

use serde::Serialize;
use serde_json::{Map, Value};
use trellis_domain::Caller;
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement};
use trellis_domain::document::Document;
use trellis_domain::input::Form;
use trellis_domain::park::{Parked, Settled};
use trellis_domain::record::Name;
use utoipa::ToSchema;

/// A choice: what could be chosen, and what was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct OptionSet {
    /// What is chosen, such as `tool`
    #[schema(value_type = String)]
    pub decision: DecisionKind,
    pub options: Vec<String>,
    pub excluded: Vec<ExcludedOption>,
    /// Empty if the model named something outside the set
    pub chosen: Vec<String>,
    #[schema(value_type = String)]
    pub decided_by: DecidedBy,
    #[schema(value_type = String)]
    pub enforcement: Enforcement,
    /// Where the set came from
    pub source: String,
    pub config_version: u64,
    pub signals: Vec<String>,
    /// The reason that was given: a claim, not a fact
    #[schema(required)]
    pub rationale: Option<String>,
}

/// What could not be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExcludedOption {
    pub id: String,
    pub why_excluded: String,
}

impl OptionSet {
    pub(super) fn new(decision: &Decision) -> Self {
        let excluded = decision.excluded.iter();
        Self {
            decision: decision.kind,
            options: decision.options.clone(),
            excluded: excluded
                .map(|option| ExcludedOption { id: option.name.clone(), why_excluded: option.reason.clone() })
                .collect(),
            chosen: decision.chosen.clone(),
            decided_by: decision.decided_by,
            enforcement: decision.enforcement,
            source: decision.source.clone(),
            config_version: decision.config_version,
            signals: decision.signals.clone(),
            rationale: decision.rationale.as_ref().map(Document::text).map(str::to_owned),
        }
    }

    pub(super) fn all(decisions: &[Decision]) -> Vec<Self> {
        decisions.iter().map(Self::new).collect()
    }
}

/// One form of what a tool asks for. Its words are the tool's.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AskedForm {
    pub name: String,
    pub message: String,
    /// A JSON schema of the answer: an object with plain fields
    #[schema(value_type = Object)]
    pub schema: Map<String, Value>,
}

impl AskedForm {
    pub(crate) fn all(parked: &Parked) -> Vec<Self> {
        let form =
            |form: &Form| Self { name: form.name.clone(), message: form.message.clone(), schema: form.schema.clone() };
        parked.forms.iter().map(form).collect()
    }
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DecisionRequested {
    /// The name of the question within its session, such as `park/1`
    pub park: String,
    pub question: String,
    pub options: Vec<String>,
    /// The tool that would be called
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tool: Option<String>,
    /// What it would be called with
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub arguments: Option<Map<String, Value>>,
    /// What the tool asks for, if it is the tool that asks
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<AskedForm>,
    /// Who may answer, by name; left out if everybody may who may ask
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub who: Option<Vec<String>>,
    #[schema(format = DateTime)]
    pub expires: String,
    /// The option that is taken then
    pub otherwise: String,
}

impl DecisionRequested {
    pub(super) fn new(parked: &Parked) -> Self {
        Self {
            park: Name::park(parked.number).as_str().to_owned(),
            question: parked.question.text().to_owned(),
            options: parked.offered.options.clone(),
            tool: parked.tool.as_ref().map(ToString::to_string),
            arguments: parked.tool.as_ref().map(|_| parked.arguments.clone()),
            forms: AskedForm::all(parked),
            who: parked.who.clone(),
            expires: parked.expires.to_string(),
            otherwise: parked.otherwise.clone(),
        }
    }
}

/// A question to a person is decided: somebody has answered, or nobody has in time.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DecisionMade {
    pub park: String,
    /// What the tool is called with instead
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub arguments: Option<Map<String, Value>>,
    /// What the call has brought, as the answerer says
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub result: Option<String>,
    /// What the tool has asked for, by the names of its forms
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub content: Option<Map<String, Value>>,
    /// Who answered: `name`, if it is known, and `surface`, the way in; left out if nobody did in time
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub decided_by: Option<Caller>,
    pub option_sets: Vec<OptionSet>,
}

impl DecisionMade {
    pub(super) fn new(settled: &Settled) -> Self {
        Self {
            park: Name::park(settled.number).as_str().to_owned(),
            arguments: settled.arguments.clone(),
            result: settled.result.as_ref().map(|result| result.text().to_owned()),
            content: settled.content.clone(),
            decided_by: settled.by.clone(),
            option_sets: vec![OptionSet::new(&settled.decision)],
        }
    }
}
