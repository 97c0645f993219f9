//! Questions with options about a state: what a model is asked, and what its reply comes to.
//!
//! Three kinds, as TrustGraph's service has them: a `choice` among options, a `score` on levels in their order, and a
//! `noul`, which is how likely something is. All of them are a choice inside a set, and points for each option. Pure.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The prompt that decisions are asked with.
pub const PROMPT: &str = "decision-scoring";

/// Questions at once, options of one, and of all together.
const MOST_QUESTIONS: usize = 32;
const MOST_OPTIONS: usize = 100;
const MOST_OPTIONS_IN_ALL: usize = 400;
/// Bytes of what is said of a question or of an option.
const LONGEST: usize = 4_000;
/// What an option gets that fits fully.
const MOST_POINTS: u32 = 100;
/// Characters of a reason that are told.
const LONGEST_REASON: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Choice,
    Score,
    Noul,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Choice => "choice",
            Self::Score => "score",
            Self::Noul => "noul",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Choosable {
    /// What is chosen; for a level, its number.
    name: String,
    about: String,
}

/// A question with everything that may be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoredQuestion {
    name: String,
    kind: Kind,
    instructions: String,
    options: Vec<Choosable>,
}

/// All questions of a request. An error says which is wrong, and how it should be.
pub fn questions(given: &Map<String, Value>) -> Result<Vec<ScoredQuestion>, String> {
    if given.is_empty() {
        return Err(
            "`questions` has none; write {\"name\": {\"type\": \"choice\", \"options\": [\"a\", \"b\"]}}".to_owned()
        );
    }
    if given.len() > MOST_QUESTIONS {
        return Err(format!("{} questions; at most {MOST_QUESTIONS} are decided at once", given.len()));
    }
    let read = |(name, value): (&String, &Value)| {
        ScoredQuestion::read(name, value).map_err(|what| format!("the question `{name:.100}` {what}"))
    };
    let all: Vec<ScoredQuestion> = given.iter().map(read).collect::<Result<_, _>>()?;
    let options: usize = all.iter().map(|question| question.options.len()).sum();
    if options > MOST_OPTIONS_IN_ALL {
        return Err(format!("{options} options in all; at most {MOST_OPTIONS_IN_ALL} are weighed at once"));
    }
    Ok(all)
}

/// The questions as the prompt shows them.
pub fn shown(questions: &[ScoredQuestion]) -> Value {
    let option =
        |(at, option): (usize, &Choosable)| json!({"id": option_id(at), "name": option.name, "about": option.about});
    let question = |(at, question): (usize, &ScoredQuestion)| {
        json!({
            "id": question_id(at),
            "name": question.name,
            "type": question.kind.word(),
            "instructions": question.instructions,
            "options": question.options.iter().enumerate().map(option).collect::<Vec<_>>(),
        })
    };
    questions.iter().enumerate().map(question).collect()
}

/// What a reply may be: for each question one of its options, and points for all of them.
pub fn schema(questions: &[ScoredQuestion]) -> Value {
    let ids: Vec<String> = (0..questions.len()).map(question_id).collect();
    let properties: Map<_, _> = ids.iter().cloned().zip(questions.iter().map(ScoredQuestion::schema)).collect();
    json!({"type": "object", "properties": properties, "required": ids, "additionalProperties": false})
}

/// The answers by the names of their questions. An error says what a reply lacks.
pub fn answers(questions: &[ScoredQuestion], reply: &Value) -> Result<Map<String, Value>, String> {
    let answer = |(at, question): (usize, &ScoredQuestion)| {
        // A model that is asked one thing may leave the id away.
        let alone = Some(reply).filter(|reply| questions.len() == 1 && reply.get("choice").is_some());
        let said = reply.get(question_id(at)).or_else(|| reply.get(&question.name)).or(alone);
        let said = said.ok_or_else(|| format!("the model said nothing about `{}`", question.name))?;
        Ok((question.name.clone(), question.answer(said)?))
    };
    questions.iter().enumerate().map(answer).collect()
}

fn question_id(at: usize) -> String {
    format!("q{}", at + 1)
}

fn option_id(at: usize) -> String {
    format!("o{}", at + 1)
}

impl ScoredQuestion {
    fn read(name: &str, value: &Value) -> Result<Self, String> {
        let spec = value.as_object().ok_or("must be an object with `type` and `options`")?;
        let kind = match spec.get("type").map_or(Some("choice"), Value::as_str) {
            Some("choice") => Kind::Choice,
            Some("score") => Kind::Score,
            Some("noul" | "bool" | "boolean") => Kind::Noul,
            _ => return Err("has no known `type`; it is one of choice, score, noul".to_owned()),
        };
        let given = spec.get("options").or_else(|| spec.get("criteria")).unwrap_or(&Value::Null);
        let options = match kind {
            Kind::Choice => named(given)?,
            Kind::Score => levels(given)?,
            Kind::Noul => truth(given),
        };
        if options.len() < 2 {
            return Err("needs at least two `options`".to_owned());
        }
        if options.len() > MOST_OPTIONS {
            return Err(format!("has {} options; at most {MOST_OPTIONS} are possible", options.len()));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = options.iter().find(|option| !seen.insert(&option.name)) {
            return Err(format!("has the option `{:.100}` twice", twice.name));
        }
        let instructions = spec.get("instructions").or_else(|| spec.get("description")).map(text_of);
        let instructions = instructions.unwrap_or_default();
        let texts = options.iter().flat_map(|option| [&option.name, &option.about]).chain([&instructions]);
        if texts.into_iter().any(|text| text.len() > LONGEST) || name.len() > LONGEST {
            return Err(format!("says more than {LONGEST} bytes in one text"));
        }
        Ok(Self { name: name.to_owned(), kind, instructions, options })
    }

    fn schema(&self) -> Value {
        let names: Vec<&str> = self.options.iter().map(|option| option.name.as_str()).collect();
        let ids: Vec<String> = (0..names.len()).map(option_id).collect();
        let points = json!({"type": "integer", "minimum": 0, "maximum": MOST_POINTS});
        let each: Map<_, _> = ids.iter().map(|id| (id.clone(), points.clone())).collect();
        json!({
            "type": "object",
            "properties": {
                "reason": {"type": "string"},
                "choice": {"type": "string", "enum": names},
                "points": {"type": "object", "properties": each, "required": ids, "additionalProperties": false},
            },
            "required": ["reason", "choice", "points"],
            "additionalProperties": false,
        })
    }

    /// The option that is meant: the one of that name, else the only one that differs in nothing but case and spaces.
    fn position(&self, choice: &str) -> Option<usize> {
        let is_alike = |name: &str| name.trim().eq_ignore_ascii_case(choice.trim());
        let exact = self.options.iter().position(|option| option.name == choice);
        exact.or_else(|| {
            let mut alike = (0..).zip(&self.options).filter(|(_, option)| is_alike(&option.name));
            let (first, _) = alike.next()?;
            alike.next().is_none().then_some(first)
        })
    }

    /// What was chosen counts; the points say how sure that is.
    fn answer(&self, said: &Value) -> Result<Value, String> {
        let outside = || {
            let names: Vec<&str> = self.options.iter().map(|option| option.name.as_str()).collect();
            format!("the model chose none of the options of `{}`: {:.500}", self.name, names.join(", "))
        };
        let choice = said.get("choice").map(text_of).ok_or_else(outside)?;
        let chosen = self.position(&choice).ok_or_else(outside)?;
        let probabilities = self.probabilities(said.get("points"), chosen);
        let by_name: Map<_, _> = self
            .options
            .iter()
            .zip(&probabilities)
            .map(|(option, share)| (option.name.clone(), json!(share)))
            .collect();
        let confidence = probabilities[chosen];
        let mut answer = match self.kind {
            Kind::Choice => json!({
                "type": "choice", "choice": self.options[chosen].name, "probabilities": by_name,
                "confidence": confidence,
            }),
            Kind::Noul => json!({"type": "noul", "noul": probabilities[0], "confidence": confidence}),
            Kind::Score => {
                let legend: Map<_, _> =
                    self.options.iter().map(|level| (level.name.clone(), json!(level.about))).collect();
                let weighed = (0_u32..).zip(&probabilities).map(|(level, share)| f64::from(level) * share);
                let score = rounded(weighed.sum());
                json!({
                    "type": "score", "score": score, "probabilities": by_name, "legend": legend,
                    "confidence": confidence,
                })
            }
        };
        if let Some(reason) = said.get("reason").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
        {
            answer["reason"] = json!(reason.chars().take(LONGEST_REASON).collect::<String>());
        }
        Ok(answer)
    }

    /// Shares of all options, which add up to one. The chosen one has at least as much as any other; a model that gives
    /// no points is taken at its word.
    fn probabilities(&self, points: Option<&Value>, chosen: usize) -> Vec<f64> {
        let given = |at: usize| {
            let points = points?;
            let found = points.get(option_id(at)).or_else(|| points.get(&self.options[at].name))?.as_f64()?;
            Some(found.clamp(0.0, f64::from(MOST_POINTS)))
        };
        let mut all: Vec<f64> = (0..self.options.len()).map(|at| given(at).unwrap_or(0.0)).collect();
        let most = all.iter().copied().fold(0.0, f64::max);
        all[chosen] = if most > 0.0 { most } else { 1.0 };
        let sum: f64 = all.iter().sum();
        all.into_iter().map(|share| rounded(share / sum)).collect()
    }
}

/// Points are no more exact than this.
fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

/// A text as it is; anything else as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
    }
}

/// A list of names, or an object from names to what is said of them.
fn named(given: &Value) -> Result<Vec<Choosable>, String> {
    let option = |name: String, about: String| {
        if name.trim().is_empty() {
            Err("has an option without a name".to_owned())
        } else {
            Ok(Choosable { name, about })
        }
    };
    match given {
        Value::Array(list) => list
            .iter()
            .map(|one| match one.get("name") {
                Some(name) => option(text_of(name), one.get("description").map(text_of).unwrap_or_default()),
                None => option(text_of(one), String::new()),
            })
            .collect(),
        Value::Object(by_name) => by_name.iter().map(|(name, about)| option(name.clone(), text_of(about))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err("needs `options`: a list of names, or an object from names to descriptions".to_owned())
        }
    }
}

/// A list of levels from the lowest to the highest.
fn levels(given: &Value) -> Result<Vec<Choosable>, String> {
    let list = given.as_array().ok_or("needs `criteria`: a list of levels, the lowest first")?;
    let level = |(at, about): (usize, &Value)| Choosable { name: at.to_string(), about: text_of(about) };
    Ok(list.iter().enumerate().map(level).collect())
}

/// That something holds comes first.
fn truth(given: &Value) -> Vec<Choosable> {
    let option = |name: &str, about: &str| {
        let about = given.get(name).map_or_else(|| about.to_owned(), text_of);
        Choosable { name: name.to_owned(), about }
    };
    vec![option("true", "it holds"), option("false", "it does not hold")]
}

#[cfg(test)]
#[path = "decision_scoring_tests.rs"]
mod tests;
