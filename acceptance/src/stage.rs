//! Everything one test needs: the model, the program, the clients.

use crate::clients::{Clients, Output};
use crate::model::{MODEL, ScriptedModel};
use crate::server::{Trellis, program};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A server of its own for one test, so that tests can run at the same time.
#[derive(Debug)]
pub struct Stage {
    clients: Arc<Clients>,
    model: ScriptedModel,
    server: Trellis,
}

impl Stage {
    /// A server that asks for no token.
    pub async fn open() -> Self {
        Self::with(&[]).await
    }

    /// A server that asks for this token.
    pub async fn behind(token: &str) -> Self {
        Self::with(&[("TRELLIS_TOKEN", token)]).await
    }

    /// A server with these variables.
    pub async fn with(environment: &[(&str, &str)]) -> Self {
        let clients = Arc::new(Clients::installed());
        let model = ScriptedModel::start().await;
        let server = Trellis::start(MODEL, model.url(), environment).await;
        Self { clients, model, server }
    }

    /// Where the server listens, with a slash at the end.
    pub fn url(&self) -> &str {
        &self.server.url
    }

    pub fn model(&self) -> &ScriptedModel {
        &self.model
    }

    /// Asks the server to stop, and waits until it has.
    pub async fn stop(&mut self) {
        self.server.stop().await;
    }

    /// Runs one of the stock commands against the server.
    pub async fn tg(&self, command: &str, arguments: &[&str]) -> Output {
        self.begin(command, arguments).await
    }

    /// The same, unless it takes longer than that.
    pub async fn tg_within(&self, command: &str, arguments: &[&str], patience: Duration) -> Option<Output> {
        self.clients.run_within(command, arguments, &[("TRUSTGRAPH_URL", self.url())], patience).await
    }

    /// The installed commands whose names begin so.
    pub fn commands(&self, start: &str) -> Vec<String> {
        self.clients.names(start)
    }

    /// The same, running beside whatever else is done with the stage.
    pub fn begin(&self, command: &str, arguments: &[&str]) -> impl Future<Output = Output> + use<> {
        let (clients, url) = (Arc::clone(&self.clients), self.url().to_owned());
        let (command, arguments) =
            (command.to_owned(), arguments.iter().copied().map(str::to_owned).collect::<Vec<_>>());
        async move {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            clients.run(&command, &arguments, &[("TRUSTGRAPH_URL", &url)]).await
        }
    }

    /// The same for somebody with a token.
    pub async fn tg_as(&self, token: &str, command: &str, arguments: &[&str]) -> Output {
        self.clients.run(command, arguments, &[("TRUSTGRAPH_URL", self.url()), ("TRUSTGRAPH_TOKEN", token)]).await
    }

    /// Runs our own program against the server.
    pub async fn trellis(&self, arguments: &[&str]) -> Output {
        let program = program();
        let program = program.to_str().expect("the project lies in a folder with a plain name");
        self.clients.run(program, &[arguments, &["--url", self.url()]].concat(), &[]).await
    }

    /// The same for somebody with a token.
    pub async fn trellis_as(&self, token: &str, arguments: &[&str]) -> Output {
        let program = program();
        let program = program.to_str().expect("the project lies in a folder with a plain name");
        let arguments = [arguments, &["--url", self.url()]].concat();
        self.clients.run(program, &arguments, &[("TRUSTGRAPH_TOKEN", token)]).await
    }

    /// Runs any installed program.
    pub async fn program(&self, program: &str, arguments: &[&str]) -> Output {
        self.clients.run(program, arguments, &[]).await
    }

    /// Runs one of the Python programs of this crate; its argument is the address of the server.
    pub async fn python(&self, script: &str) -> Output {
        python(&self.clients, script, &[self.url()]).await
    }

    /// The same for somebody with a token, which is the second argument.
    pub async fn python_as(&self, token: &str, script: &str) -> Output {
        python(&self.clients, script, &[self.url(), token]).await
    }

    /// The same with these arguments in place of the address.
    pub async fn python_with(&self, script: &str, arguments: &[&str]) -> Output {
        python(&self.clients, script, arguments).await
    }

    /// Runs a program of a Node package, by its path within the installed packages.
    pub async fn node_package(&self, program: &str, arguments: &[&str]) -> Output {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/node/node_modules").join(program);
        let path = path.to_str().expect("the project lies in a folder with a plain name");
        self.clients.node(&[&[path], arguments].concat()).await
    }

    /// Runs one of the Node programs of this crate; its argument is the address of the server.
    pub async fn node(&self, script: &str) -> Output {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("node").join(script);
        let path = path.to_str().expect("the project lies in a folder with a plain name");
        self.clients.node(&[path, self.url()]).await
    }
}

/// Runs one of the Python programs of this crate against any address.
pub async fn run_python(script: &str, address: &str) -> Output {
    python(&Clients::installed(), script, &[address]).await
}

async fn python(clients: &Clients, script: &str, arguments: &[&str]) -> Output {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let path = path.to_str().expect("the project lies in a folder with a plain name");
    clients.run("python", &[&[path], arguments].concat(), &[]).await
}
