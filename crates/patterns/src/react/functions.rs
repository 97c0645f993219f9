//! Tools as functions of a provider, so that a model calls them instead of writing which one it wants.
//!
//! Every function takes a thought first and then the tool's arguments; one more takes the final answer.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::ToolName;
use trellis_domain::config::{ArgumentItem, ToolItem};

/// The function that ends the work, and the member that holds the answer.
const FINAL_ANSWER: &str = "final_answer";
pub(super) const ANSWER: &str = "answer";
const THOUGHT: &str = "thought";
/// The longest name that every provider takes.
const LONGEST_NAME: usize = 64;
/// The longest description that every provider takes.
const LONGEST_DESCRIPTION: usize = 1024;

/// What a model may call in one reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Functions {
    list: Vec<Function>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Letters, digits, `_` and `-`: what every provider takes.
    pub name: String,
    pub description: String,
    pub(super) does: Does,
    /// The member that holds the thought; another name where the tool has an argument of this one.
    pub(super) thought: String,
    pub schema: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Does {
    /// Calls the tool of this name.
    Call(ToolName),
    Answer,
}

impl Functions {
    pub fn of(tools: &[Arc<ToolItem>]) -> Self {
        let names = simple_names(tools);
        let mut list: Vec<_> = tools.iter().zip(names).map(|(tool, name)| Function::of(tool, name)).collect();
        list.push(Function::final_answer());
        Self { list }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Function> {
        self.list.iter()
    }

    /// The function that calls this tool.
    pub(super) fn of_tool(&self, tool: &ToolName) -> Option<&Function> {
        self.list.iter().find(|function| matches!(&function.does, Does::Call(called) if called == tool))
    }

    /// The function that is meant; models also say the tool's own name.
    pub fn meant(&self, name: &str) -> Option<&Function> {
        let named = self.list.iter().find(|function| function.name == name);
        named.or_else(|| self.list.iter().find(|function| matches!(&function.does, Does::Call(tool) if *tool == name)))
    }
}

impl Function {
    fn of(tool: &ToolItem, name: String) -> Self {
        let ToolItem { name: of_tool, description, arguments, .. } = tool;
        let is_taken = |name: &String| arguments.iter().any(|argument| argument.name == *name);
        let thought = free_name(THOUGHT, usize::MAX, is_taken);
        let mut members =
            Map::from_iter([(thought.clone(), said("why this tool, and what you want to learn from it"))]);
        members.extend(arguments.iter().map(|argument| (argument.name.clone(), argument_schema(argument))));
        let description =
            if *of_tool == name.as_str() { description.clone() } else { format!("{of_tool}: {description}") };
        Self::new(name, &description, Does::Call(of_tool.clone()), thought, members)
    }

    fn final_answer() -> Self {
        let members = [(THOUGHT, "why what you know is enough"), (ANSWER, "the complete answer; it may use Markdown")];
        let members = members.map(|(name, description)| (name.to_owned(), said(description)));
        let description = "Gives the final answer to the question, when enough is known.";
        Self::new(FINAL_ANSWER.to_owned(), description, Does::Answer, THOUGHT.to_owned(), Map::from_iter(members))
    }

    fn new(name: String, description: &str, does: Does, thought: String, members: Map<String, Value>) -> Self {
        let required: Vec<_> = members.keys().cloned().collect();
        let schema = json!({
            "type": "object", "properties": members, "required": required, "additionalProperties": false,
        });
        let description = description.chars().take(LONGEST_DESCRIPTION).collect();
        Self { name, description, does, thought, schema }
    }
}

fn said(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// An argument's type in words becomes a schema; a type that nobody knows allows everything.
pub(crate) fn argument_schema(argument: &ArgumentItem) -> Value {
    let ArgumentItem { kind, description, .. } = argument;
    match kind.trim().to_lowercase().as_str() {
        "string" | "str" | "text" | "" => said(description),
        "integer" | "int" => json!({ "type": "integer", "description": description }),
        "number" | "float" => json!({ "type": "number", "description": description }),
        "boolean" | "bool" => json!({ "type": "boolean", "description": description }),
        "object" | "dict" => json!({ "type": "object", "description": description }),
        // Some providers insist on the members being described.
        "array" | "list" => json!({ "type": "array", "items": {}, "description": description }),
        _ => json!({ "description": format!("({kind}) {description}") }),
    }
}

/// A name that every provider takes.
pub(super) fn simplified(name: &str) -> String {
    let simple = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(LONGEST_NAME).map(simple).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

/// A name for each tool that every provider takes, no two alike. A tool whose name is simple keeps it.
fn simple_names(tools: &[Arc<ToolItem>]) -> Vec<String> {
    let simple_ones = tools.iter().map(|tool| &tool.name).filter(|name| **name == simplified(name).as_str());
    let mut taken: BTreeSet<_> = simple_ones.map(ToString::to_string).chain([FINAL_ANSWER.to_owned()]).collect();
    let mut kept = BTreeSet::new();
    let mut name_of = |tool: &Arc<ToolItem>| {
        let wish = simplified(&tool.name);
        if tool.name == wish.as_str() && wish != FINAL_ANSWER && kept.insert(wish.clone()) {
            return wish;
        }
        let name = free_name(&wish, LONGEST_NAME, |name| taken.contains(name));
        taken.insert(name.clone());
        name
    };
    tools.iter().map(&mut name_of).collect()
}

/// The name, or the first of `name_2`, `name_3`, … that is free.
fn free_name(wish: &str, longest: usize, is_taken: impl Fn(&String) -> bool) -> String {
    let numbered = (2_u64..).map(|n| {
        let number = format!("_{n}");
        let room = wish.floor_char_boundary(longest.saturating_sub(number.len()));
        format!("{}{number}", &wish[..room])
    });
    let mut names = std::iter::once(wish.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).expect("there are more numbers than names")
}

#[cfg(test)]
#[path = "functions_tests.rs"]
pub(crate) mod tests;
