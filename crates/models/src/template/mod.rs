//! Templates in Jinja syntax, lenient where prompts need it: what is missing or null prints nothing.
//!
//! Anybody who may change prompts writes templates, so nothing in one may harm the process: whatever makes a value
//! larger pays first (see [`meter`]), nothing nests without end, and there is nothing to include.
#![expect(clippy::wildcard_enum_match_arm, reason = "an operation suits a kind or two of values, and refuses the rest")]

mod checks;
mod evaluate;
mod expressions;
mod fault;
mod filters;
mod lexer;
mod meter;
mod operators;
mod parser;
mod render;
mod show;
mod tree;
mod value;

use crate::prompt_text::PromptText;
use fault::{Fault, Outcome};
use parking_lot::Mutex;
use serde_json::Map;
use std::collections::HashMap;
use std::sync::Arc;
use tree::Tree;
use trellis_domain::Hash;

/// Parts of all templates that are kept together; a workspace has a dozen templates of some hundred parts.
const KEPT_PARTS: usize = 200_000;
/// The longest template; what a prompt says about a question comes in its variables.
const LONGEST_TEMPLATE: usize = 1 << 20;

/// Renders templates. Reading one costs more than rendering it, so what was read is kept.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    trees: HashMap<Hash, Template>,
    parts: usize,
}

/// A template that was read, and the text that its renderings share.
#[derive(Debug, Clone)]
struct Template {
    tree: Arc<Tree>,
    shared: Option<Arc<str>>,
}

impl Templates {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The reason why it cannot be rendered says where and how to mend it.
    pub(crate) fn render(&self, text: &str, variables: &Map<String, serde_json::Value>) -> Result<PromptText, String> {
        self.render_known(Hash::of(text), text, variables)
    }

    /// The same for a text whose hash is known already.
    pub(crate) fn render_known(
        &self,
        key: Hash,
        text: &str,
        variables: &Map<String, serde_json::Value>,
    ) -> Result<PromptText, String> {
        let Template { tree, mut shared } = self.read(key, text).map_err(|fault| fault.to_string())?;
        let rendered = render::render(&tree, variables).map_err(|fault| fault.to_string())?;
        // Comparing takes a while, and others want to render, too.
        let before = shared.clone();
        let rendered = PromptText::sharing(rendered, &mut shared);
        let is_another = before.as_ref().map(Arc::as_ptr) != shared.as_ref().map(Arc::as_ptr);
        if is_another && let Some(template) = self.kept.lock().trees.get_mut(&key) {
            template.shared = shared;
        }
        Ok(rendered)
    }

    fn read(&self, key: Hash, text: &str) -> Outcome<Template> {
        if let Some(template) = self.kept.lock().trees.get(&key) {
            return Ok(template.clone());
        }
        let tree = Arc::new(read(text)?);
        // What text and line breaks take is small beside what the parts take.
        let parts = tree.parts + text.len() / 64;
        let mut kept = self.kept.lock();
        if kept.parts + parts > KEPT_PARTS {
            *kept = Kept::default();
        }
        kept.parts += parts;
        let template = Template { tree, shared: None };
        kept.trees.insert(key, template.clone());
        Ok(template)
    }
}

fn read(text: &str) -> Outcome<Tree> {
    if text.len() > LONGEST_TEMPLATE {
        let bytes = text.len();
        return Err(Fault::new(format!("it has {bytes} bytes; a template has at most {LONGEST_TEMPLATE}")));
    }
    Tree::of(text)
}

/// Whether a template can be read; if not, where it is wrong and how to mend it.
pub fn check_template(text: &str) -> Result<(), String> {
    read(text).map(|_| ()).map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod jinja_tests;
#[cfg(test)]
mod render_tests;
