//! The rehearsal as a supervisor, with its subagents played as the loop would.

use super::NOTE;
use super::stage_tests::{COMPARE, TRACE, cited, json_of, routed};
use super::tests::{ALL, PARTNER, ask, described, play, settings};
use serde_json::{Value, json};

async fn goals_of(question: &str, groups: &[&str]) -> Vec<Value> {
    let settings = settings();
    let patterns = settings.patterns.keys().map(|name| json!({ "name": name }));
    let variables = json!({
        "question": question, "context": null, "framing": "", "max_subagents": 8, "groups": groups,
        "patterns": patterns.collect::<Value>(), "tools": described(settings.tools.values()), "problem": null,
    });
    json_of(&settings, "supervisor-decompose", variables).await["goals"].as_array().unwrap().clone()
}

/// A supervisor's session: its goals with their patterns, and the answer. Some subagents never come back.
async fn supervised(question: &str, silent: &[usize]) -> (Vec<String>, String) {
    let settings = settings();
    let goals = goals_of(question, &["default"]).await;
    let (mut named, mut results, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (index, draft) in goals.iter().enumerate() {
        let (goal, pattern) = (draft["goal"].as_str().unwrap(), draft["pattern"].as_str().unwrap());
        named.push(format!("{pattern}: {goal}"));
        if silent.contains(&index) {
            missing.push(json!({ "index": index, "goal": goal, "reason": "nothing came in time" }));
            continue;
        }
        let answer = match pattern {
            "supervisor" => {
                let (below, answer) = Box::pin(supervised(goal, &[])).await;
                named.extend(below.into_iter().map(|below| format!("  {below}")));
                answer
            }
            _ => play(goal, &ALL, &[]).await.answer,
        };
        results.push(json!({ "index": index, "goal": goal, "status": "completed", "result": answer }));
    }
    let variables = json!({
        "question": question, "round": 1, "max_rounds": 3, "max_subagents": 8, "results": results, "missing": missing,
    });
    let review = json_of(&settings, "supervisor-review", variables).await;
    assert_eq!(review["decision"], "answer", "{review}");
    let variables = json!({ "question": question, "framing": "", "results": results, "missing": missing });
    (named, ask(&settings, "supervisor-synthesise", variables).await.raw)
}

#[tokio::test]
async fn the_worked_example_sends_out_four_agents_and_assesses_what_they_bring() {
    let (goals, answer) = supervised(PARTNER, &[]).await;
    assert_eq!(
        goals,
        [
            "react: Analyse financial health and stability of Company X",
            "react: Review regulatory filings, sanctions, and legal exposure for Company X",
            "react: Analyse news sentiment and public reputation of Company X",
            "react: Assess supply chain dependencies and operational risks for Company X",
        ]
    );
    let overview = "\
## Partner risk profile: Company X

**Overall: elevated** (4 of 4 findings came, the worst signal counts). A script and not an analysis wrote this.

| Part | Finding | Signal |
|---|---|---|
| Financial | [finding 0] | low |
| Legal | [finding 1] | moderate |
| Reputational | [finding 2] | moderate |
| Operational | [finding 3] | elevated |

### Financial [finding 0]

Sample data (scripted). Asked for: Company X

- Revenue: 412 million in the last year, 6 % more than the year before
";
    assert!(answer.starts_with(overview), "{answer}");
    let end = "\
### Confidence

- [finding 0] confidence: medium (2 sources, sample data)
- [finding 1] confidence: low (a single source, sample data)
- [finding 2] confidence: low (a single source, sample data)
- [finding 3] confidence: low (a single source, sample data)

";
    assert!(answer.ends_with(&format!("{end}{NOTE}")), "{answer}");
    assert!(!answer.contains("What is missing"));
    let confidences = ["medium", "low", "low", "low"].map(str::to_owned);
    assert_eq!(cited(&answer, vec![0, 1, 2, 3]), (0..).zip(confidences).collect::<Vec<_>>());
}

#[tokio::test]
async fn each_agent_asks_its_own_tools() {
    let expected = [
        vec![r#"financial-data {"company":"Company X"}"#, r#"search-notes {"query":"Company X"}"#],
        vec![r#"regulatory-filings {"company":"Company X"}"#],
        vec![r#"news-search {"query":"Company X"}"#],
        vec![r#"supply-chain {"company":"Company X"}"#],
    ];
    for (draft, expected) in goals_of(PARTNER, &["default"]).await.iter().zip(expected) {
        let played = play(draft["goal"].as_str().unwrap(), &ALL, &[]).await;
        assert_eq!(played.calls, expected);
        assert!(played.answer.contains("\nSignal: ") && played.answer.ends_with(NOTE), "{}", played.answer);
    }
    let failed = play("Analyse financial health and stability of Company X", &ALL, &ALL).await.answer;
    assert!(failed.contains("No source answered.\n\n### Gaps\n\n- Financial: `financial-data` failed"), "{failed}");
}

#[tokio::test]
async fn a_finding_that_is_missing_is_named_and_not_made_up() {
    let (_, answer) = supervised(PARTNER, &[3]).await;
    assert!(answer.contains("**Overall: moderate** (3 of 4 findings came"), "{answer}");
    assert!(answer.contains(
        "### What is missing\n\n- finding 3 (Assess supply chain dependencies and operational risks for Company X): \
         nothing came in time\n"
    ));
    assert!(!answer.contains("Largest supplier") && !answer.contains("[finding 3]"));
    let (_, nothing) = supervised(PARTNER, &[0, 1, 2, 3]).await;
    assert!(nothing.contains("No finding came back, so there is no answer."), "{nothing}");
}

#[tokio::test]
async fn a_goal_gets_its_own_tool_group_only_where_it_is_offered() {
    let groups = |goals: Vec<Value>| goals.into_iter().map(|mut goal| goal["group"].take()).collect::<Vec<_>>();
    assert!(groups(goals_of(PARTNER, &["default"]).await).iter().all(Value::is_null));
    assert_eq!(
        groups(goals_of(PARTNER, &["default", "financial", "operations"]).await),
        [json!(["financial"]), Value::Null, Value::Null, json!(["operations"])]
    );
    let settings = settings();
    let tools = settings.tools.values().filter(|tool| tool.groups.contains(&"financial".into()));
    assert_eq!(tools.map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["financial-data", "search-notes"]);
}

#[tokio::test]
async fn a_comparison_nests_a_supervisor_and_does_without_the_register() {
    let (task_type, pattern) = routed(COMPARE).await;
    assert_eq!((&task_type["task_type"], &pattern["pattern"]), (&json!("risk-assessment"), &json!("supervisor")));
    let (goals, answer) = supervised(COMPARE, &[2]).await;
    assert_eq!(
        goals,
        [
            "supervisor: Weigh finances and legal exposure of Company X for the comparison",
            "  react: Analyse financial health and stability of Company X",
            "  react: Review regulatory filings, sanctions, and legal exposure for Company X",
            "react: Weigh finances and legal exposure of Company Y for the comparison",
            "react: Look up Company X and Company Y in the market register",
        ]
    );
    for words in [
        "## Partner risks compared: Company X and Company Y\n\n**Overall: moderate** (2 of 3 findings came",
        "| Company X | [finding 0] | moderate |\n| Company Y | [finding 1] | moderate |",
        "- finding 2 (Look up Company X and Company Y in the market register): nothing came in time",
    ] {
        assert!(answer.contains(words), "{words} is missing in {answer}");
    }
    // What the nested answer cites is its own business.
    assert_eq!(cited(&answer, vec![0, 1, 2]).iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(answer.matches("confidence:").count(), 2);
    let calls = play("Look up Company X and Company Y in the market register", &ALL, &ALL).await.calls;
    assert_eq!(calls, [r#"market-register {"query":"Company X and Company Y"}"#]);
}

#[tokio::test]
async fn any_question_can_be_supervised() {
    for question in ["Why is moss green?", TRACE, "", "Find what the notes say about: moss"] {
        let (goals, answer) = supervised(question, &[]).await;
        assert_eq!(goals.len(), 2, "{question}");
        assert!(answer.contains("### Notes [finding 0]") && answer.ends_with(NOTE), "{answer}");
    }
}

/// What is quoted cites nothing: numbers in brackets inside it are not those of the answer.
#[tokio::test]
async fn quotations_do_not_pass_for_citations() {
    let finding = json!({ "index": 0, "goal": "a [finding 1]", "result": "- b [finding 1]\nc [finding 1]" });
    let missing = json!({ "index": 2, "goal": "d [finding 1]", "reason": "e [finding 1]" });
    let variables = json!({ "question": "Why [finding 1]?", "results": [finding], "missing": [missing] });
    let answer = ask(&settings(), "supervisor-synthesise", variables).await.raw;
    assert_eq!(cited(&answer, vec![0, 1, 2]), [(0, "low".to_owned())], "{answer}");
}

#[tokio::test]
async fn another_round_is_played_on_request_and_only_once() {
    let settings = settings();
    let review = async |round: u64, most: u64| {
        let patterns = json!([{ "name": "react" }]);
        let question = "Dig deeper into moss";
        json_of(
            &settings,
            "supervisor-review",
            json!({
                "question": question, "round": round, "max_rounds": most, "max_subagents": 2, "patterns": patterns,
            }),
        )
        .await
    };
    let again = review(1, 3).await;
    assert_eq!((&again["decision"], again["goals"].as_array().unwrap().len()), (&json!("again"), 1));
    assert_eq!(review(2, 3).await["decision"], "answer");
    assert_eq!(review(1, 1).await["decision"], "answer");
}
