//! The operator's file of servers, as other programs have it: `{"mcpServers": {"NAME": {"command": …}}}`.

use super::left_behind::Guard;
use super::web::Address;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use trellis_domain::{Secret, Workspace};

/// How long a server may take to begin, if the file does not say.
pub(super) const START_TIMEOUT: Duration = Duration::from_mins(1);
/// Calls under way at one server, if the file does not say.
pub(super) const AT_ONCE: usize = 8;
const MOST_AT_ONCE: usize = 1_000;

/// A server that the operator named.
#[derive(Debug, Clone)]
pub struct Server {
    pub transport: Transport,
    pub start_timeout: Duration,
    /// How long a call may take; the limit of the run holds as well.
    pub timeout: Option<Duration>,
    pub at_once: usize,
    /// What it is sent to be let in with. It is taken out of what the server says.
    pub secrets: Vec<Secret>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport {
    Stdio(Program),
    Http(Address),
}

/// A program that is started and spoken to over its input and output.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    pub command: String,
    pub arguments: Vec<String>,
    pub variables: BTreeMap<String, String>,
    pub folder: Option<PathBuf>,
    /// What ends it if we are killed.
    pub guard: Option<Guard>,
}

impl std::fmt::Debug for Program {
    /// Variables may be keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("command", &self.command).finish_non_exhaustive()
    }
}

/// Who may use a server, and what of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// None: every workspace.
    pub workspaces: Option<BTreeSet<Workspace>>,
    /// None: all of its tools.
    pub tools: Option<BTreeSet<String>>,
}

impl Offer {
    pub(super) fn is_for(&self, workspace: &Workspace) -> bool {
        self.workspaces.as_ref().is_none_or(|only| only.contains(workspace))
    }

    pub(super) fn has(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|only| only.contains(tool))
    }
}

/// A server of the file, or why it cannot be used: that is no matter of the others.
#[derive(Debug, Clone)]
pub struct Listed {
    pub offer: Offer,
    pub server: Result<Server, String>,
}

/// Servers by name.
pub type Servers = BTreeMap<String, Listed>;

/// Reads such a file. `variable` gives what `${NAME}` stands for; errors say which member is wrong.
pub fn read_servers(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Servers, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    // Some programs call it `servers`.
    let servers = file.get("mcpServers").or_else(|| file.get("servers"));
    let servers = servers.ok_or("it has no member `mcpServers`")?;
    let servers = servers.as_object().ok_or("`mcpServers` is to be an object, with a member for each server")?;
    let mut read = BTreeMap::new();
    for (name, server) in servers {
        let Some(map) = server.as_object() else {
            let server = Err("it is to be an object".to_owned());
            read.insert(name.clone(), Listed { offer: Offer::default(), server });
            continue;
        };
        if map.get("disabled").and_then(Value::as_bool) != Some(true) {
            // Who may use it is not guessed: a mistake here is one of the whole file.
            let offer = offer(map).map_err(|why| format!("the server `{name}`: {why}"))?;
            read.insert(name.clone(), Listed { offer, server: Members { map, variable }.server() });
        }
    }
    Ok(read)
}

fn offer(map: &Map<String, Value>) -> Result<Offer, String> {
    let names = |member: &str| -> Result<Option<Vec<String>>, String> {
        let wrong = || format!("`{member}` is to be a list of names");
        let Some(value) = map.get(member) else { return Ok(None) };
        let names = value.as_array().ok_or_else(wrong)?.iter().map(|name| name.as_str().map(str::to_owned));
        names.collect::<Option<_>>().map(Some).ok_or_else(wrong)
    };
    let workspace = |name: String| Workspace::new(&name).map_err(|error| format!("`workspaces`: {error}"));
    let workspaces = names("workspaces")?.map(|names| names.into_iter().map(workspace).collect()).transpose()?;
    Ok(Offer { workspaces, tools: names("tools")?.map(BTreeSet::from_iter) })
}

/// The key in a header, which may say what kind of key it is.
pub(super) fn secret(header: &str) -> Option<Secret> {
    Secret::new(header.strip_prefix("Bearer ").unwrap_or(header))
}

struct Members<'a> {
    map: &'a Map<String, Value>,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Members<'_> {
    fn server(&self) -> Result<Server, String> {
        let transport = match (self.text("command")?, self.text("url")?) {
            (Some(command), None) => Transport::Stdio(self.program(command)?),
            (None, Some(url)) => Transport::Http(self.address(&url)?),
            (None, None) => return Err("write `command` or `url`".to_owned()),
            (Some(_), Some(_)) => return Err("write either `command` or `url`".to_owned()),
        };
        Ok(Server {
            transport,
            start_timeout: self.milliseconds("startupTimeout")?.unwrap_or(START_TIMEOUT),
            timeout: self.milliseconds("timeout")?,
            at_once: self.number("maxConcurrentCalls")?.map_or(AT_ONCE, |most| most.clamp(1, MOST_AT_ONCE)),
            secrets: self.secrets()?,
        })
    }

    /// Headers, and the variables that are read from the environment.
    fn secrets(&self) -> Result<Vec<Secret>, String> {
        let is_read = |name: &str| {
            let written = self.map.get("env").and_then(|variables| variables.get(name)).and_then(Value::as_str);
            written.is_some_and(|written| written.contains("${"))
        };
        let variables = self.texts("env")?.into_iter().filter(|(name, _)| is_read(name));
        let all = self.texts("headers")?.into_iter().chain(variables);
        Ok(all.filter_map(|(_, value)| secret(&value)).collect())
    }

    fn program(&self, command: String) -> Result<Program, String> {
        let arguments = match self.map.get("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) => {
                let argument = |value: &Value| value.as_str().map(|text| self.expanded(text));
                let read: Option<Vec<_>> = list.iter().map(argument).collect();
                read.ok_or("`args` is to be a list of texts")?.into_iter().collect::<Result<_, _>>()?
            }
            Some(_) => return Err("`args` is to be a list of texts".to_owned()),
        };
        let folder = self.text("cwd")?.map(PathBuf::from);
        Ok(Program { command, arguments, variables: self.texts("env")?, folder, guard: None })
    }

    fn address(&self, url: &str) -> Result<Address, String> {
        if self.map.get("type").and_then(Value::as_str) == Some("sse") {
            return Err("servers of type `sse` are not spoken to: use the streamable address of the server".to_owned());
        }
        let url = Url::parse(url).map_err(|error| format!("`url` is no address: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("`url` is to begin with http:// or https://".to_owned());
        }
        let mut headers = Vec::new();
        for (name, value) in self.texts("headers")? {
            let wrong = || format!("the header `{name}` has characters that no header may have");
            let header = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.push((header, value));
        }
        Ok(Address { url, headers })
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => self.expanded(text).map(Some),
            Some(_) => Err(format!("`{name}` is to be a text")),
        }
    }

    fn texts(&self, name: &str) -> Result<BTreeMap<String, String>, String> {
        let wrong = || format!("`{name}` is to be an object of texts");
        let Some(members) = self.map.get(name).filter(|members| !members.is_null()) else { return Ok(BTreeMap::new()) };
        let members = members.as_object().ok_or_else(wrong)?.iter();
        members.map(|(key, value)| Ok((key.clone(), self.expanded(value.as_str().ok_or_else(wrong)?)?))).collect()
    }

    fn number(&self, name: &str) -> Result<Option<usize>, String> {
        let Some(value) = self.map.get(name) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number.map(Some).ok_or_else(|| format!("`{name}` is to be a whole number"))
    }

    fn milliseconds(&self, name: &str) -> Result<Option<Duration>, String> {
        Ok(self.number(name)?.map(|ms| Duration::from_millis(ms as u64)))
    }

    /// `${NAME}` and `${NAME:-otherwise}` become what the environment says.
    fn expanded(&self, text: &str) -> Result<String, String> {
        let (mut made, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inside, after)) = after.split_once('}') else { break };
            let (name, otherwise) = inside.split_once(":-").map_or((inside, None), |(name, text)| (name, Some(text)));
            let found = (self.variable)(name).filter(|value| !value.is_empty());
            let value = found.or_else(|| otherwise.map(str::to_owned));
            let missing = || format!("the variable {name} is not set");
            made.extend([before, &value.ok_or_else(missing)?]);
            rest = after;
        }
        made.push_str(rest);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(servers: &Value) -> Result<Servers, String> {
        let variable = |name: &str| (name == "KEY").then(|| "sk-1".to_owned());
        read_servers(&json!({ "mcpServers": servers }).to_string(), &variable)
    }

    #[test]
    fn a_file_that_other_programs_read_is_read() {
        let program =
            json!({ "command": "npx", "args": ["-y", "files", "${HOME:-/tmp}"], "env": { "TOKEN": "a${KEY}b" } });
        let web = json!({ "type": "http", "url": "https://a.example/mcp", "headers": { "Authorization": "Bearer ${KEY}" },
            "timeout": 5000, "maxConcurrentCalls": 2 });
        let off = json!({ "command": "x", "env": { "A": "${NOBODY}" }, "disabled": true });
        let servers = read(&json!({ "files": program, "web": web, "off": off })).unwrap();
        assert!(servers.values().all(|listed| listed.offer == Offer::default()), "what is not said limits nothing");
        let servers: BTreeMap<_, _> =
            servers.into_iter().map(|(name, listed)| (name, listed.server.unwrap())).collect();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["files", "web"]);
        let Transport::Stdio(files) = &servers["files"].transport else { panic!("{servers:?}") };
        assert_eq!(
            (files.command.as_str(), files.arguments.as_slice()),
            ("npx", ["-y", "files", "/tmp"].map(str::to_owned).as_slice())
        );
        assert_eq!(files.variables["TOKEN"], "ask-1b");
        let Transport::Http(address) = &servers["web"].transport else { panic!("{servers:?}") };
        assert_eq!(address.headers[0].1.to_str().unwrap(), "Bearer sk-1");
        assert!(!format!("{servers:?}").contains("Bearer sk-1"), "headers are nobody's business");
        assert_eq!((servers["web"].timeout, servers["web"].at_once), (Some(Duration::from_secs(5)), 2));
    }

    #[test]
    fn mistakes_are_named() {
        for (server, words) in [
            (json!({}), "write `command` or `url`"),
            (json!({ "command": "x", "url": "http://a" }), "write either `command` or `url`"),
            (json!({ "command": 3 }), "`command` is to be a text"),
            (json!({ "command": "x", "args": "y" }), "`args` is to be a list of texts"),
            (json!({ "command": "x", "env": { "A": 1 } }), "`env` is to be an object of texts"),
            (json!({ "command": "x", "env": { "A": "${NOBODY}" } }), "the variable NOBODY is not set"),
            (json!({ "url": "ftp://a.example" }), "is to begin with http"),
            (json!({ "url": "http://a.example", "type": "sse" }), "type `sse`"),
            (json!({ "url": "http://a.example", "headers": { "a b": "c" } }), "the header `a b`"),
            (json!([]), "it is to be an object"),
        ] {
            let problem = read(&json!({ "a": server })).unwrap().remove("a").unwrap().server.unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
        for (member, value, words) in [
            ("workspaces", json!("a"), "the server `a`: `workspaces` is to be a list of names"),
            ("workspaces", json!(["a", 1]), "`workspaces` is to be a list of names"),
            ("workspaces", json!(["a/b"]), "`workspaces`: "),
            ("tools", json!({ "x": true }), "`tools` is to be a list of names"),
            ("tools", Value::Null, "`tools` is to be a list of names"),
        ] {
            let problem = read(&json!({ "a": { "command": "x", member: value } })).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
        assert!(read_servers("{}", &|_| None).unwrap_err().contains("mcpServers"));
        assert!(read_servers("{", &|_| None).unwrap_err().contains("no JSON"));
    }
}
