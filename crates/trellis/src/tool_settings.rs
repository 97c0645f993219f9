//! What tools may reach, and the keys that they may send: environment over settings file. Workspaces cannot change it.

use crate::app;
use crate::cli::Global;
use crate::failure::Failure;
use crate::named::tool_setting::{SecretSetting, ToolSettings};
use crate::settings_file::SettingsFile;
use std::collections::BTreeMap;
use std::path::PathBuf;
use trellis_domain::Secret;
use trellis_tools::Outside;
use trellis_tools::http::{Http, ToolSecret};
use trellis_tools::mcp::{Mcp, Servers, read_servers};

/// Hosts with commas between them.
const HOSTS: &str = "TRELLIS_TOOLS_HTTP_HOSTS";
const PRIVATE: &str = "TRELLIS_TOOLS_HTTP_PRIVATE";

/// Files with MCP servers, with commas between them.
const MCP_CONFIG: &str = "TRELLIS_MCP_CONFIG";

/// Calls addresses and servers as the operator allows.
pub(crate) fn outside(global: &Global) -> Result<Outside, Failure> {
    let settings = with_environment(SettingsFile::of(global)?.tools, &|name| std::env::var(name).ok())?;
    let mut secrets = BTreeMap::new();
    for (name, setting) in settings.secrets {
        let wrong = |why: String| Failure::usage(format!("the secret `{name}` of tools: {why}"));
        check(&setting).map_err(wrong)?;
        secrets.insert(name, ToolSecret { value: read(&setting), hosts: setting.hosts });
    }
    let guard = app::program_guard().map_err(Failure::unexpected)?;
    let mcp = Mcp::new(servers(global)?, settings.reach.clone(), Some(&guard));
    Ok(Outside { http: Http::new(settings.reach, secrets), mcp, embedder: app::embedder(global)? })
}

/// The MCP servers of all files that are named.
fn servers(global: &Global) -> Result<Servers, Failure> {
    let named = std::env::var(MCP_CONFIG).unwrap_or_default();
    let named = named.split(',').map(str::trim).filter(|file| !file.is_empty()).map(PathBuf::from);
    let files = if global.mcp_config.is_empty() { named.collect() } else { global.mcp_config.clone() };
    let mut servers = BTreeMap::new();
    for file in files {
        let wrong = |why: String| Failure::usage(format!("{}: {why}", file.display()));
        let text = std::fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
        let read = read_servers(&text, &|name| std::env::var(name).ok()).map_err(wrong)?;
        for (name, server) in read {
            if servers.insert(name.clone(), server).is_some() {
                return Err(wrong(format!("another file has a server `{name}`, too")));
            }
        }
    }
    Ok(servers)
}

fn with_environment(
    mut settings: ToolSettings,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ToolSettings, Failure> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    if let Some(hosts) = set(HOSTS) {
        let hosts = hosts.split(',').map(str::trim).filter(|host| !host.is_empty());
        settings.reach.hosts = hosts.map(str::to_owned).collect();
    }
    match set(PRIVATE).as_deref().map(str::trim) {
        None => {}
        Some("true" | "1") => settings.reach.private = true,
        Some("false" | "0") => settings.reach.private = false,
        Some(other) => return Err(Failure::usage(format!("{PRIVATE}: `{other}` is neither true nor false"))),
    }
    Ok(settings)
}

/// That the file says where a secret is and where it goes.
fn check(secret: &SecretSetting) -> Result<(), String> {
    match (&secret.variable, &secret.file) {
        (None, None) => Err("write key-env or key-file".to_owned()),
        (Some(_), Some(_)) => Err("write either key-env or key-file".to_owned()),
        _ if secret.hosts.is_empty() => Err("write `hosts`: it is sent nowhere else".to_owned()),
        _ => Ok(()),
    }
}

/// A secret that is not there now is no matter of those that do not need it.
fn read(secret: &SecretSetting) -> Result<Secret, String> {
    let text = match (&secret.variable, &secret.file) {
        (Some(variable), _) => std::env::var(variable).map_err(|_| format!("the variable {variable} is not set"))?,
        (None, Some(file)) => {
            std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?
        }
        (None, None) => String::new(),
    };
    Secret::new(&text).ok_or_else(|| "it is empty".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_tools::http::Reach;

    fn parsed(text: &str) -> Result<ToolSettings, String> {
        crate::settings_file::parse(text).map(|file| file.tools)
    }

    #[test]
    fn the_file_names_hosts_and_where_keys_are() {
        let file = "[tools.http]\nhosts = [\"api.example.com\"]\nprivate = true\n\n\
                    [tools.secrets.WEATHER]\nkey-env = \"WEATHER_KEY\"\nhosts = [\"api.example.com\"]\n";
        let settings = parsed(file).unwrap();
        assert_eq!(settings.reach, Reach { hosts: vec!["api.example.com".to_owned()], private: true });
        assert_eq!(settings.secrets["WEATHER"].variable.as_deref(), Some("WEATHER_KEY"));
        let set = |name: &str| (name == HOSTS).then(|| "a.example, b.example".to_owned());
        assert_eq!(with_environment(settings, &set).unwrap().reach.hosts, ["a.example", "b.example"]);
    }

    #[test]
    fn mistakes_have_a_place() {
        for (file, words) in [
            ("[tools.http]\nhost = []\n", "line 2, tools.http.host: there is no setting `host`"),
            ("[tools.http]\nhosts = \"x\"\n", "line 2, tools.http.hosts: write a list of texts"),
            ("[tools.http]\nprivate = 3\n", "line 2, tools.http.private: write true or false"),
            ("[tools.secrets.A]\nkey = \"sk\"\n", "line 2, tools.secrets.A.key: a key does not belong into this file"),
            ("[tools.soap]\n", "line 1: there is no setting `tools.soap`"),
        ] {
            let problem = parsed(file).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
    }
}
