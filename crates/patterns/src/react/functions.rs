//! Tools as functions of a provider, so that a model calls them instead of writing which one it wants.
//!
//! Every function takes a thought first and then the tool's arguments; one more takes the final answer.

use crate::inlined::inlined;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
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

/// One of them. What a provider is told about it is made when it is asked for: readers only want names.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Letters, digits, `_` and `-`: what every provider takes.
    pub name: String,
    pub(super) does: Does,
    /// The member that holds the thought; another name where the tool has an argument of this one.
    pub(super) thought: Cow<'static, str>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Does {
    /// Calls this tool.
    Call(Arc<ToolItem>),
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
        self.list.iter().find(|function| matches!(&function.does, Does::Call(called) if called.name == *tool))
    }

    /// The function that is meant; models also say the tool's own name.
    pub fn meant(&self, name: &str) -> Option<&Function> {
        let named = self.list.iter().find(|function| function.name == name);
        named.or_else(|| {
            self.list.iter().find(|function| matches!(&function.does, Does::Call(tool) if tool.name == name))
        })
    }
}

impl Function {
    fn of(tool: &Arc<ToolItem>, name: String) -> Self {
        let is_taken = |name: &str| tool.arguments.iter().any(|argument| argument.name == name);
        let thought = if is_taken(THOUGHT) {
            free_name(THOUGHT, usize::MAX, |name| is_taken(name)).into()
        } else {
            THOUGHT.into()
        };
        Self { name, does: Does::Call(Arc::clone(tool)), thought }
    }

    fn final_answer() -> Self {
        Self { name: FINAL_ANSWER.to_owned(), does: Does::Answer, thought: THOUGHT.into() }
    }

    pub fn description(&self) -> String {
        let description: Cow<'_, str> = match &self.does {
            Does::Call(tool) if tool.name == self.name.as_str() => tool.description.as_str().into(),
            Does::Call(tool) => format!("{}: {}", tool.name, tool.description).into(),
            Does::Answer => "Gives the final answer to the question, when enough is known.".into(),
        };
        description.chars().take(LONGEST_DESCRIPTION).collect()
    }

    /// The schema of its arguments.
    pub fn schema(&self) -> Value {
        let thought = |why: &str| (self.thought.to_string(), said(why));
        let members: Map<String, Value> = match &self.does {
            Does::Call(tool) => {
                let arguments = tool.arguments.iter();
                let arguments = arguments.map(|argument| (argument.name.clone(), argument_schema(argument)));
                std::iter::once(thought("why this tool, and what you want to learn from it")).chain(arguments).collect()
            }
            Does::Answer => {
                let answer = (ANSWER.to_owned(), said("the complete answer; it may use Markdown"));
                [thought("why what you know is enough"), answer].into_iter().collect()
            }
        };
        let may_be_left_out = |name: &String| match &self.does {
            Does::Call(tool) => tool.arguments.iter().any(|it| it.name == *name && it.required == Some(false)),
            Does::Answer => false,
        };
        let required: Vec<_> = members.keys().filter(|name| !may_be_left_out(name)).cloned().collect();
        json!({ "type": "object", "properties": members, "required": required, "additionalProperties": false })
    }
}

fn said(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// An argument's own schema, or its type in words as one; a type that nobody knows allows everything.
pub(crate) fn argument_schema(argument: &ArgumentItem) -> Value {
    let ArgumentItem { kind, description, .. } = argument;
    if let Some(Value::Object(schema)) = argument.schema.as_ref().map(inlined) {
        let described = std::iter::once(("description".to_owned(), json!(description)));
        return Value::Object(schema.into_iter().chain(described).collect());
    }
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
    if is_simple(name) {
        return name.to_owned();
    }
    let simple = |c: char| if is_allowed(c) { c } else { '_' };
    let name: String = name.chars().take(LONGEST_NAME).map(simple).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

fn is_simple(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_allowed)
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// A name for each tool that every provider takes, no two alike. A tool whose name is simple keeps it.
fn simple_names(tools: &[Arc<ToolItem>]) -> Vec<String> {
    if can_be_kept(tools) {
        return tools.iter().map(|tool| tool.name.to_string()).collect();
    }
    let simple_ones = tools.iter().map(|tool| &*tool.name).filter(|name| is_simple(name));
    let mut taken: HashSet<_> = simple_ones.map(Cow::Borrowed).chain([FINAL_ANSWER.into()]).collect();
    let mut kept = HashSet::new();
    let mut name_of = |tool: &'_ Arc<ToolItem>| {
        let name = &*tool.name;
        if is_simple(name) && name != FINAL_ANSWER && kept.insert(name.to_owned()) {
            return name.to_owned();
        }
        let name = free_name(&simplified(name), LONGEST_NAME, |name| taken.contains(name));
        taken.insert(name.clone().into());
        name
    };
    tools.iter().map(&mut name_of).collect()
}

/// Whether all names are simple and no two alike, as they usually are.
fn can_be_kept(tools: &[Arc<ToolItem>]) -> bool {
    /// Comparing so few with each other is faster than any set.
    const FEW: usize = 24;
    let is_free = |name: &str| is_simple(name) && name != FINAL_ANSWER;
    let is_first = |(place, tool): (usize, &Arc<ToolItem>)| tools[..place].iter().all(|other| other.name != tool.name);
    tools.len() <= FEW && tools.iter().all(|tool| is_free(&tool.name)) && tools.iter().enumerate().all(is_first)
}

/// The name, or the first of `name_2`, `name_3`, … that is free.
fn free_name(wish: &str, longest: usize, is_taken: impl Fn(&str) -> bool) -> String {
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
