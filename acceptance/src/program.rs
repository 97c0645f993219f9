//! A data folder of its own, for programs that others start on it.

use crate::model::{MODEL, ScriptedModel};
use crate::server::{connect_notes, program};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A data folder with the usual tool, and everything that our program has to be told to work on it.
#[derive(Debug)]
pub struct Folder {
    folder: TempDir,
    model_url: String,
}

impl Folder {
    /// An empty one, whose program asks this model.
    pub fn new(model: &ScriptedModel) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        std::fs::write(folder.path().join("settings.toml"), "").expect("a temporary folder can be written to");
        connect_notes(folder.path());
        Self { folder, model_url: model.url().to_owned() }
    }

    /// Our program.
    pub fn program() -> PathBuf {
        program()
    }

    /// The variables that it is started with, as `NAME=VALUE`.
    pub fn variables(&self) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let all = [
            ("TRELLIS_DATA", path("data")),
            ("TRELLIS_SETTINGS", path("settings.toml")),
            ("OPENAI_BASE_URL", self.model_url.clone()),
            ("OPENAI_API_KEY", "sk-acceptance-0123456789".to_owned()),
            ("OPENAI_MODEL", MODEL.to_owned()),
            ("TRELLIS_MODELS_ONE_CALL_ROUTING", "true".to_owned()),
            ("NO_PROXY", "*".to_owned()),
        ];
        all.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// Runs a command on the folder to its end.
    pub fn run(&self, arguments: &[&str]) {
        let variables = self.variables();
        let pairs = variables.iter().filter_map(|variable| variable.split_once('='));
        let ran = Command::new(program()).args(arguments).envs(pairs).output().expect("the program can be started");
        assert!(ran.status.success(), "trellis {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}
