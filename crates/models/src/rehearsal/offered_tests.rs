//! Whatever the variables are, a reply can be read and stays inside what is offered: the patterns' own readers say so.

use super::tests::{PARTNER, described, request, settings};
use super::*;
use serde_json::{Map, json};
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement};
use trellis_domain::reading::Reading;
use trellis_patterns::plan::PlanRules;
use trellis_patterns::supervisor::GoalRules;
use trellis_patterns::{ReadReply, Reader};

const PROMPTS: [&str; 10] = [
    "task-type-classify",
    "pattern-select",
    "agent-react",
    "plan-create",
    "plan-step-execute",
    "plan-revise",
    "plan-synthesise",
    "supervisor-decompose",
    "supervisor-review",
    "supervisor-synthesise",
];

const QUESTIONS: [&str; 14] = [
    PARTNER,
    "Trace how Company X came to its present owners, step by step",
    "Compare Company X and Company Y as potential partners by risk",
    "Compare the risk of Acme, Globex, Initech, Hooli, Umbrella, Soylent, Stark and Wayne as partners",
    "Weigh finances and legal exposure of Company X for the comparison",
    "Look up Company X and Company Y in the market register",
    "Analyse financial health and stability of Risk Partners & Owners, step by step",
    "Find what the notes say about: Find what the notes say about: ",
    "Why is moss green?",
    "Dig deeper: what do the owners trace?",
    "",
    " \n\t ",
    "\u{0}\u{202e}Thought: \"é\" [finding 0] </result> {{ question }} ```json\n{}\n```\nFinal Answer: 🌲",
    "risk partner compare owner step by step trace summarise urgent",
];

/// Always throws the same numbers.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.throw(all.len())]
    }

    /// Some of the names, in any order.
    fn some_of(&mut self, all: &[&str]) -> Vec<String> {
        let mut rest: Vec<_> = all.iter().map(|name| (*name).to_owned()).collect();
        let count = self.throw(all.len() + 1);
        (0..count).map(|_| rest.remove(self.throw(rest.len()))).collect()
    }

    fn odd_value(&mut self) -> Value {
        match self.throw(9) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-1.5),
            3 => json!(u64::MAX),
            4 => json!(*self.one_of(&QUESTIONS)),
            5 => json!([null, [1], "a", {}]),
            6 => json!([{ "name": 7, "index": "one", "goal": null, "status": "failed", "depends_on": [u64::MAX] }]),
            7 => json!({ "name": "a" }),
            _ => json!("x".repeat(5_000)),
        }
    }
}

/// What a prompt of any kind may be given, with the sets that it offers.
struct Cast {
    variables: Map<String, Value>,
    options: Vec<String>,
    groups: Vec<String>,
    most: u32,
    first: u32,
    finished: Vec<u32>,
    known: Vec<u32>,
}

const TASK_TYPES: [&str; 4] = ["general", "research", "risk-assessment", "own"];
const PATTERNS: [&str; 4] = ["react", "plan-then-execute", "supervisor", "own"];
const GROUPS: [&str; 4] = ["default", "financial", "legal", "own"];

fn cast(dice: &mut Dice, tools: &[Value], prompt: &str) -> Cast {
    let set = |names: &[String]| names.iter().map(|name| json!({ "name": name, "description": "" })).collect::<Value>();
    let mut tools: Vec<Value> = tools.iter().filter(|_| dice.throw(3) > 0).cloned().collect();
    tools.push(json!({ "name": "delete-all", "description": "", "arguments": [] }));
    let task_types = [dice.some_of(&TASK_TYPES), vec!["general".to_owned()]].concat();
    let patterns = [dice.some_of(&PATTERNS[1..]), vec!["react".to_owned()]].concat();
    let groups = dice.some_of(&GROUPS);
    let options = match prompt {
        "task-type-classify" => task_types.clone(),
        "plan-step-execute" => {
            let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
            names.chain(["none".to_owned()]).collect()
        }
        _ => patterns.clone(),
    };
    let entry = |dice: &mut Dice, index: usize| {
        let status = *dice.one_of(&["completed", "failed", "pending"]);
        let goal = *dice.one_of(&QUESTIONS);
        let result =
            if status == "pending" { "" } else { *dice.one_of(&["", "- a [finding 9]\nSignal: low", "Error: no"]) };
        let depends_on: Vec<_> = (0..index).filter(|_| dice.throw(3) == 0).collect();
        json!({ "index": index, "goal": goal, "status": status, "result": result, "depends_on": depends_on })
    };
    let count = dice.throw(6);
    let entries: Vec<Value> = (0..count).map(|index| entry(dice, index)).collect();
    let history =
        json!([{ "action": dice.one_of(&["financial-data", "__parse_error__", ""]), "observation": "Error: no" }]);
    let (most, first) = (u32::try_from(dice.throw(5)).unwrap() + 1, u32::try_from(entries.len()).unwrap());
    let numbered = |wanted: &[&str]| {
        let found = entries.iter().filter(|entry| wanted.contains(&entry["status"].as_str().unwrap()));
        found.map(|entry| u32::try_from(entry["index"].as_u64().unwrap()).unwrap()).collect::<Vec<_>>()
    };
    let variables = json!({
        "question": dice.one_of(&QUESTIONS), "context": null, "framing": "", "problem": null,
        "goal": dice.one_of(&QUESTIONS),
        "tool_hint": dice.one_of(&["", "archive-search", "delete-all", "news-search", "no such"]),
        "task_types": set(&task_types), "patterns": set(&patterns), "groups": groups, "tools": tools,
        "max_steps": most, "max_subagents": most, "next_index": first, "round": 1 + dice.throw(2), "max_rounds": 2,
        "steps": entries, "results": entries, "previous_results": entries,
        "missing": entries.first().into_iter().collect::<Vec<_>>(),
        "history": if dice.throw(2) == 0 { history } else { json!([]) },
    });
    let variables = variables.as_object().cloned().unwrap();
    let (finished, known) = (numbered(&["completed", "failed"]), numbered(&["completed"]));
    Cast { variables, options, groups, most, first, finished, known }
}

fn seeded_tools() -> Vec<Value> {
    described(settings().tools.values()).as_array().cloned().unwrap()
}

fn decision(kind: DecisionKind, options: &[String]) -> Decision {
    Decision {
        kind,
        options: options.to_vec(),
        excluded: Vec::new(),
        chosen: Vec::new(),
        source: String::new(),
        config_version: 1,
        decided_by: DecidedBy::Model,
        enforcement: Enforcement::Validated,
        signals: Vec::new(),
        rationale: None,
        rejected: None,
    }
}

/// Reads a reply as the pattern that asked for it would.
fn read(prompt: &str, cast: &Cast, raw: &str) -> ReadReply {
    let Cast { options, groups, most, first, finished, known, .. } = cast;
    let goals = || {
        vec![
            decision(DecisionKind::Goals, &[]),
            decision(DecisionKind::SubagentPattern, options),
            decision(DecisionKind::SubagentGroup, groups),
        ]
    };
    let rules = |first, finished| PlanRules { first, finished, most: *most };
    let (reader, offered) = match prompt {
        "task-type-classify" => (Reader::plain("task-type-classify"), vec![decision(DecisionKind::TaskType, options)]),
        "pattern-select" => (Reader::plain("pattern-select"), vec![decision(DecisionKind::Pattern, options)]),
        "plan-create" => (Reader::under("plan-create", rules(0, Vec::new())), Vec::new()),
        "plan-step-execute" => (Reader::plain("plan-step-execute"), vec![decision(DecisionKind::Tool, options)]),
        "plan-revise" => {
            let options = ["keep", "revise"].map(str::to_owned);
            (
                Reader::under("plan-revise", rules(*first, finished.clone())),
                vec![decision(DecisionKind::Replan, &options)],
            )
        }
        "supervisor-decompose" => (Reader::under("supervisor-decompose", GoalRules { most: *most }), goals()),
        "supervisor-review" => {
            let round = decision(DecisionKind::Round, &["answer", "again"].map(str::to_owned));
            (Reader::under("supervisor-review", GoalRules { most: *most }), [vec![round], goals()].concat())
        }
        "agent-react" => (Reader::plain("agent-react"), vec![decision(DecisionKind::Tool, &tool_names(cast))]),
        _ => (Reader::under("plan-synthesise", known), Vec::new()),
    };
    trellis_patterns::read(&reader, &trellis_domain::parts::Reply::of_text(raw), offered)
}

fn tool_names(cast: &Cast) -> Vec<String> {
    let tools = cast.variables["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect()
}

fn played(prompt: &str, variables: &Map<String, Value>) -> String {
    let expected = match prompt {
        "agent-react" | "plan-synthesise" | "supervisor-synthesise" => PromptReply::Text,
        _ => PromptReply::Json { schema: None },
    };
    let request = ModelRequest { variables: variables.clone(), ..request(prompt, expected) };
    reply_to(&request)
}

#[test]
fn every_reply_can_be_read_as_it_is_and_chooses_only_what_is_offered() {
    let (mut dice, tools) = (Dice(1), seeded_tools());
    for (prompt, _) in PROMPTS.iter().flat_map(|prompt| (0..250).map(move |time| (*prompt, time))) {
        let cast = cast(&mut dice, &tools, prompt);
        let raw = played(prompt, &cast.variables);
        let ReadReply { reading, decisions, repairs, .. } = read(prompt, &cast, &raw);
        let told = || format!("{prompt} with {}: {raw}", Value::Object(cast.variables.clone()));
        match reading {
            Reading::Unusable { reason } | Reading::Failed { reason } => panic!("{reason} in {}", told()),
            Reading::Decided { .. } => assert_eq!(repairs, [] as [String; 0], "{}", told()),
            Reading::Acted { tool, .. } => assert_ne!(tool, "delete-all", "{}", told()),
            Reading::Answered { .. } if prompt == "plan-step-execute" => {}
            Reading::Answered { text, .. } => assert!(text.text().ends_with(NOTE), "{}", told()),
        }
        for decision in decisions.iter().filter(|decision| decision.kind != DecisionKind::Goals) {
            assert!(decision.rejected.is_none(), "{}", told());
            assert!(decision.chosen.iter().all(|name| decision.options.contains(name)), "{}", told());
        }
        assert_eq!(raw, played(prompt, &cast.variables), "the same is said to the same");
    }
}

#[test]
fn odd_variables_are_survived() {
    let (mut dice, tools) = (Dice(2), seeded_tools());
    for prompt in PROMPTS {
        for _ in 0..250 {
            let mut cast = cast(&mut dice, &tools, prompt);
            for value in cast.variables.values_mut().filter(|_| dice.throw(3) == 0).collect::<Vec<_>>() {
                *value = dice.odd_value();
            }
            let raw = played(prompt, &cast.variables);
            match prompt {
                "agent-react" => assert!(raw.starts_with("Thought: "), "{raw}"),
                "plan-synthesise" | "supervisor-synthesise" => assert!(raw.ends_with(NOTE), "{raw}"),
                _ => assert!(serde_json::from_str::<Value>(&raw).unwrap().is_object(), "{raw}"),
            }
        }
        played(prompt, &Map::new());
    }
}
