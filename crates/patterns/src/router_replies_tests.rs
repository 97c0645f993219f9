//! Whatever a model replies, no choice lies outside its set.

use super::model_tests::{route_by, seeded};
use crate::fixture::question;
use proptest::prelude::*;

/// Replies of every wrong kind, and some that are right in a strange way.
fn strange_replies() -> Vec<String> {
    let mut replies: Vec<String> = [
        "",
        " ",
        "\n\n",
        "I do not know.",
        "The best is risk-assessment, or react.",
        "0",
        "-1",
        "3.5",
        "true",
        "null",
        "[]",
        "{}",
        "[1, 2]",
        r#"["research", "general"]"#,
        r#"["react"]"#,
        "poetry",
        "delphi",
        "telepathy",
        "\"poetry\"",
        r#"{"task_type": 3, "pattern": 3}"#,
        r#"{"task_type": null, "pattern": null}"#,
        r#"{"task_type": ["research"], "pattern": ["react"]}"#,
        r#"{"task_type": {"name": "research"}}"#,
        r#"{"answer": 42}"#,
        r#"{"task_type": "", "pattern": ""}"#,
        r#"{"task_type": "research""#,
        "research",
        "'Research'",
        "**RESEARCH**",
        "`react`",
        "“Supervisor”",
        "React.",
        r#"Sure! {"task_type": "research", "pattern": "react"} Hope it helps."#,
        "```json\n{\"task_type\": \"research\", \"pattern\": \"react\"}\n```",
        "```\nsupervisor\n```",
        "Thought: hm\nAction: research\nArgs: {}",
        "research\0",
        "\u{202e}hcraeser",
        "general general",
        "общий",
    ]
    .map(str::to_owned)
    .into();
    replies.push("x".repeat(100_000));
    replies.push(format!("{{\"task_type\": \"{}\"}}", "y".repeat(100_000)));
    replies.push("[".repeat(100_000));
    replies.push(format!("{{\"signals\": {}1{}}}", "{\"a\":".repeat(5_000), "}".repeat(5_000)));
    replies
}

#[test]
fn whatever_a_model_replies_the_choice_is_in_the_set() {
    let replies = strange_replies();
    for (i, reply) in replies.iter().enumerate() {
        let other = &replies[(i * 7 + 3) % replies.len()];
        for script in [[reply, reply, reply, reply], [reply, other, reply, other], [other, reply, other, reply]] {
            route_by(&mut seeded(question("why?")), &script.map(String::as_str));
        }
    }
}

proptest! {
    #[test]
    fn whatever_text_a_model_replies_the_choice_is_in_the_set(first in any::<String>(), second in ".{0,40}") {
        route_by(&mut seeded(question("why?")), &[&first, &second, &second, &first]);
    }
}
