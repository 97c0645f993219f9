//! A model says which edges help to answer a question. What it says is held against what it was shown.

use super::models::{LONGEST_STEP, Models, Use};
use crate::ports::ReplyContent;
use crate::unheard::Unheard;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use trellis_domain::decision::Enforcement;

/// The prompt that edges are scored with.
const PROMPT: &str = "kg-edge-scoring";
/// What the best edge gets.
const HIGHEST: u32 = 10;
/// Characters of a reason that are kept.
const LONGEST_REASON: usize = 500;

/// An edge as it is shown: what its ends and its property are called.
pub(super) type Shown = [String; 3];

/// What a model says of an edge.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Score {
    /// Which of those that it was shown.
    pub(super) edge: usize,
    /// Above 0, at most 1.
    pub(super) points: f64,
    pub(super) reason: Option<String>,
}

/// Scores for the edges that fit, the best first, and how it was made sure that it names no others. An error says why
/// there are none.
pub(super) async fn scores(
    models: &mut Models<'_>,
    query: &str,
    concepts: &[String],
    edges: &[Shown],
) -> Result<(Vec<Score>, Enforcement), String> {
    let shown = edges.iter().enumerate().map(|(at, [s, p, o])| json!({"id": id(at), "s": s, "p": p, "o": o}));
    let variables =
        [("query", json!(query)), ("concepts", json!(concepts)), ("knowledge", Value::Array(shown.collect()))];
    let reply = models
        .ask((PROMPT, Use::Step), variables, Some(schema(edges.len())), &mut Unheard::up_to(LONGEST_STEP))
        .await?;
    let said = match &reply.content {
        ReplyContent::Object(value) => Some(vec![value.clone()]),
        ReplyContent::List(values) => Some(values.clone()),
        // A line for each edge is what TrustGraph's own prompts ask for.
        ReplyContent::Text | ReplyContent::Wrong { .. } => Some(lines(&reply.raw)).filter(|lines| !lines.is_empty()),
    };
    let scores = said.and_then(|said| read(&listed(said), edges.len())).ok_or("the model's reply names no edges")?;
    Ok((scores, if reply.enforced { Enforcement::Decoding } else { Enforcement::Validated }))
}

/// How an edge is named in front of the model.
pub(super) fn id(at: usize) -> String {
    format!("e{}", at + 1)
}

fn schema(count: usize) -> Value {
    let ids: Vec<String> = (0..count).map(id).collect();
    json!({
        "type": "object",
        "properties": {"edges": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "enum": ids},
                "score": {"type": "integer", "minimum": 0, "maximum": HIGHEST},
                "reason": {"type": "string"},
            },
            "required": ["id", "score", "reason"],
            "additionalProperties": false,
        }}},
        "required": ["edges"],
        "additionalProperties": false,
    })
}

fn lines(text: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line.trim().trim_end_matches(',')).ok();
    let holds = |value: &Value| value.is_object() || value.is_array();
    match serde_json::from_str(text.trim()) {
        Ok(value) => Some(value).into_iter().filter(holds).collect(),
        Err(_) => text.lines().filter_map(parse).filter(holds).collect(),
    }
}

/// The edges of a reply, whether it lists them as it was asked to, or in some other way.
fn listed(said: Vec<Value>) -> Vec<Value> {
    let edges = |value: Value| match value {
        Value::Array(values) => values,
        Value::Object(mut object) => match object.remove("edges") {
            Some(Value::Array(values)) => values,
            Some(other) => vec![other],
            None => vec![Value::Object(object)],
        },
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => vec![other],
    };
    said.into_iter().flat_map(edges).collect()
}

/// What can be used of what a model wrote. Edges that it was not shown, or has named before, are left out; none at all
/// is a reply too, unless there is nothing in it that looks like one.
fn read(values: &[Value], count: usize) -> Option<Vec<Score>> {
    let (mut named, highest) = (BTreeSet::new(), f64::from(HIGHEST));
    let mut scores: Vec<Score> = values
        .iter()
        .filter_map(|value| {
            let edge = number_of(value.get("id")?)?.checked_sub(1).filter(|at| *at < count)?;
            let score = value.get("score").map_or(Some(highest / 2.0), points)?.clamp(0.0, highest) / highest;
            let reason = ["reason", "reasoning"].iter().find_map(|name| value.get(name)?.as_str());
            let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
            let reason = reason.map(|reason| reason.chars().take(LONGEST_REASON).collect());
            named.insert(edge).then_some(Score { edge, points: score, reason })
        })
        .collect();
    if scores.is_empty() && !values.is_empty() {
        return None;
    }
    scores.retain(|score| score.points > 0.0);
    // Stable: those that fit the question better come first among equals.
    scores.sort_by(|one, other| other.points.total_cmp(&one.points).then(one.edge.cmp(&other.edge)));
    Some(scores)
}

fn number_of(id: &Value) -> Option<usize> {
    match id {
        Value::String(id) => id.trim().trim_start_matches(['e', 'E']).parse().ok(),
        Value::Number(id) => id.as_u64().and_then(|id| usize::try_from(id).ok()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn points(score: &Value) -> Option<f64> {
    match score {
        Value::Number(score) => score.as_f64(),
        Value::String(score) => score.trim().parse().ok().filter(|score: &f64| score.is_finite()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(values: &Value) -> Option<Vec<(usize, f64)>> {
        read(values.as_array().unwrap(), 3)
            .map(|scores| scores.iter().map(|score| (score.edge, score.points)).collect())
    }

    #[test]
    fn the_best_come_first_and_what_was_not_shown_is_left_out() {
        let values = json!([
            {"id": "e1", "score": 4}, {"id": "e3", "score": "8", "reasoning": " it says so "},
            {"id": "e9", "score": 10}, {"id": "e3", "score": 1}, {"id": 2, "score": 0}, {"id": {}, "score": 3}, "e1",
        ]);
        assert_eq!(edges(&values), Some(vec![(2, 0.8), (0, 0.4)]));
        let reason = read(values.as_array().unwrap(), 3).unwrap().remove(0).reason;
        assert_eq!(reason.as_deref(), Some("it says so"));
    }

    #[test]
    fn nothing_fits_is_a_reply_and_nonsense_is_none() {
        assert_eq!(edges(&json!([])), Some(Vec::new()));
        assert_eq!(edges(&json!([{"id": "e1", "score": 0}])), Some(Vec::new()));
        assert_eq!(edges(&json!([{"id": "e7", "score": 9}, 5])), None);
    }

    #[test]
    fn scores_stay_within_their_bounds() {
        assert_eq!(edges(&json!([{"id": "1", "score": 1e300}, {"id": "2", "score": -5}])), Some(vec![(0, 1.0)]));
    }

    #[test]
    fn a_line_for_each_edge_is_read_as_well() {
        let text = "Here they are:\n{\"id\": \"e2\", \"score\": 7},\n{\"id\": \"e1\", \"sc\n";
        assert_eq!(read(&lines(text), 3).unwrap().len(), 1);
        let edges = |text: &str| read(&listed(lines(text)), 3).map(|scores| scores.len());
        assert_eq!(edges(r#"{"edges": [{"id": "e1", "score": 5}, {"id": "e2", "score": 5}]}"#), Some(2));
        assert_eq!(edges(r#"[{"id": "e1", "score": 5}]"#), Some(1));
        assert_eq!(edges(r#"{"edges": []}"#), Some(0));
        assert_eq!(edges(r#"{"edges": 7}"#), None);
        assert!(lines("I do not know.").is_empty());
    }
}
