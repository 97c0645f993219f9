//! What queries of the graph may take: flags over environment over the settings file over what is built in.

use crate::cli::Global;
use crate::failure::Failure;
use crate::named::QueryLimit;
use crate::settings_file::SettingsFile;
use trellis_store::QuerySettings;

/// `TRELLIS_QUERIES_MEMORY_MB`, and so on.
const PREFIX: &str = "TRELLIS_QUERIES_";

/// What is allowed, from everywhere.
pub(crate) fn of_operator(global: &Global, flags: &[QueryLimit]) -> Result<QuerySettings, Failure> {
    let file = SettingsFile::of(global)?.queries;
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let environment = of_environment(variables.map(|(name, value)| (name, value.to_string_lossy().into_owned())));
    let mut settings = QuerySettings::default();
    for limit in file.iter().chain(&environment.map_err(Failure::usage)?).chain(flags) {
        limit.apply(&mut settings);
    }
    Ok(settings)
}

fn of_environment(variables: impl IntoIterator<Item = (String, String)>) -> Result<Vec<QueryLimit>, String> {
    let mut limits = Vec::new();
    for (variable, value) in variables.into_iter().filter(|(_, value)| !value.trim().is_empty()) {
        let Some(name) = variable.strip_prefix(PREFIX) else { continue };
        let name = name.to_lowercase().replace('_', "-");
        limits.push(QueryLimit::new(&name, &value).map_err(|problem| format!("{variable}: {problem}"))?);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_by_prefix() {
        let variables = [("TRELLIS_QUERIES_TIME_S", "7"), ("TRELLIS_QUERIES_AT_ONCE", ""), ("PATH", "/bin")];
        let read = of_environment(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(read, QueryLimit::new("time-s", "7").map(|limit| vec![limit]));
        let wrong = of_environment([("TRELLIS_QUERIES_SPEED".to_owned(), "3".to_owned())]).unwrap_err();
        assert!(wrong.starts_with("TRELLIS_QUERIES_SPEED: there is no limit `speed`"), "{wrong}");
    }
}
