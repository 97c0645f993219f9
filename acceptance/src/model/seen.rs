//! What a model can see of a request: which prompt it is, and the words in it.

use serde_json::{Map, Value, json};

/// One request.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) prompt: &'a str,
    /// The last message of the user.
    pub(crate) text: &'a str,
    request: &'a Value,
}

/// A tool that is offered, with the names of its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
}

impl Tool {
    /// Every argument filled with the same words.
    pub(crate) fn filled(&self, words: &str) -> Value {
        self.arguments.iter().map(|name| (name.clone(), json!(words))).collect::<Map<_, _>>().into()
    }
}

impl<'a> Scene<'a> {
    pub(crate) fn new(prompt: &'a str, request: &'a Value) -> Self {
        let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        // A conversation begins with the prompt; what follows it are results.
        let said = messages.iter().find(|message| message["role"] == "user");
        let text = said.and_then(|message| message["content"].as_str()).unwrap_or_default();
        Self { prompt, text, request }
    }

    /// What was asked, wherever the prompt puts it.
    pub(crate) fn question(&self) -> &'a str {
        // The mark is drawn anew for each run.
        let marked = self.text.split_once("\n<question-").and_then(|(_, rest)| rest.split_once(">\n"));
        let marked = marked.and_then(|(_, rest)| rest.split_once("\n</question-")).map(|(question, _)| question);
        let section = || between(self.text, "\n# Question\n\n", "\n\n").or(after(self.text, "\n# Question\n\n"));
        marked.or_else(section).unwrap_or(self.text).trim()
    }

    /// The goal of a plan's step.
    pub(crate) fn goal(&self) -> &'a str {
        between(self.text, "\n# The goal of this step\n\n", "\n").unwrap_or_default()
    }

    /// Whether a tool has already been used.
    pub(crate) fn has_observation(&self) -> bool {
        let messages = self.request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let told = messages.iter().any(|one| one["role"] == "tool");
        told || messages.iter().filter(|one| one["role"] == "user").count() > 1
    }

    /// All of it.
    pub(crate) fn request(&self) -> &'a Value {
        self.request
    }

    /// Whether tools are offered as functions that can be called.
    pub(crate) fn calls_functions(&self) -> bool {
        self.request["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    /// The schema that the reply has to follow.
    pub(crate) fn schema(&self) -> Option<&'a Value> {
        let schema = &self.request["response_format"]["json_schema"]["schema"];
        schema.is_object().then_some(schema)
    }

    /// The tools on offer, as functions or listed in the text.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        if self.calls_functions() { self.functions() } else { listed(self.text) }
    }

    fn functions(&self) -> Vec<Tool> {
        let offered = self.request["tools"].as_array().into_iter().flatten();
        let tool = |tool: &Value| {
            let function = &tool["function"];
            let properties = function["parameters"]["properties"].as_object();
            let arguments = properties.map(|all| all.keys().cloned().collect()).unwrap_or_default();
            Some(Tool { name: function["name"].as_str()?.to_owned(), arguments })
        };
        offered.filter_map(tool).collect()
    }
}

/// `- name: …` with `- argument "x" (string): …` below it, in the section about tools.
fn listed(text: &str) -> Vec<Tool> {
    let section = after(text, "\n# Tools\n").unwrap_or_default();
    let section = section.split_once("\n# ").map_or(section, |(own, _)| own);
    let mut tools: Vec<Tool> = Vec::new();
    for line in section.lines() {
        if let Some((name, _)) = line.strip_prefix("- ").and_then(|rest| rest.split_once(": ")) {
            tools.push(Tool { name: name.to_owned(), arguments: Vec::new() });
        } else if let (Some(argument), Some(tool)) = (between(line, "- argument \"", "\""), tools.last_mut()) {
            tool.arguments.push(argument.to_owned());
        }
    }
    tools
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark).map(|(_, rest)| rest)
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (inside, _) = after(text, begin)?.split_once(end)?;
    Some(inside)
}

#[cfg(test)]
#[path = "seen_tests.rs"]
mod tests;
