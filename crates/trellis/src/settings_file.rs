//! The settings file: TOML with `[limits]`, `[limits.maximum]`, `[models]`, `[providers]`, `[queries]`, `[tools]` and
//! `[cluster]`.

use crate::cli::Global;
use crate::failure::Failure;
use crate::named::cluster_setting::ClusterSettings;
use crate::named::{Limit, LimitSource, QueryLimit, model_setting, provider_setting, text, tool_setting};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use trellis_models::ModelSettings;

/// What the file says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SettingsFile {
    pub(crate) limits: LimitSource,
    pub(crate) models: ModelSettings,
    pub(crate) queries: Vec<QueryLimit>,
    pub(crate) tools: tool_setting::ToolSettings,
    pub(crate) cluster: ClusterSettings,
}

impl SettingsFile {
    /// What the file says; nothing if there is none.
    pub(crate) fn of(global: &Global) -> Result<Self, Failure> {
        match place(global) {
            Some(path) => read(&path).map_err(Failure::usage),
            None => Ok(Self::default()),
        }
    }
}

/// `--settings`, else `TRELLIS_SETTINGS`, else `trellis/trellis.toml` in the platform's configuration directory if it
/// is there.
fn place(global: &Global) -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    let named = || std::env::var_os("TRELLIS_SETTINGS").filter(|file| !file.is_empty()).map(PathBuf::from);
    if let Some(file) = global.settings.clone().or_else(named) {
        return Some(file);
    }
    let usual = etcetera::choose_base_strategy().ok().map(|base| base.config_dir().join("trellis/trellis.toml"));
    usual.filter(|file| Path::exists(file))
}

fn read(path: &Path) -> Result<SettingsFile, String> {
    let cannot = |error| format!("cannot read the settings file {}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))
}

/// Every complaint names its line: whoever wrote the file has to find it.
pub(crate) fn parse(text: &str) -> Result<SettingsFile, String> {
    let at = |place: usize| format!("line {}", text[..place.min(text.len())].matches('\n').count() + 1);
    let table = DeTable::parse(text).map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        format!("{}: {}", at(place), error.message())
    })?;
    let mut file = SettingsFile::default();
    for (name, value) in table.get_ref() {
        let place = at(name.span().start);
        match (name.get_ref().as_ref(), value.get_ref()) {
            ("limits", DeValue::Table(limits)) => file.limits = source(limits, &at)?,
            ("models", DeValue::Table(models)) => of_models(models, &mut file.models, &at)?,
            ("providers", DeValue::Table(providers)) => of_providers(providers, &mut file.models, &at)?,
            ("queries", DeValue::Table(queries)) => file.queries = of_queries(queries, &at)?,
            ("tools", DeValue::Table(tools)) => of_tools(tools, &mut file.tools, &at)?,
            ("cluster", DeValue::Table(cluster)) => of_cluster(cluster, &mut file.cluster, &at)?,
            (table @ ("limits" | "models" | "providers" | "queries" | "tools" | "cluster"), _) => {
                return Err(format!("{place}: `{table}` is not a table; write [{table}]"));
            }
            (other, _) => {
                return Err(format!(
                    "{place}: there is no setting `{other}`; the file may hold [limits], [models], [providers], \
                     [queries], [tools] and [cluster]"
                ));
            }
        }
    }
    Ok(file)
}

fn source(limits: &DeTable<'_>, at: &impl Fn(usize) -> String) -> Result<LimitSource, String> {
    let mut source = LimitSource::default();
    for (name, value) in limits {
        match (name.get_ref().as_ref(), value.get_ref()) {
            ("maximum", DeValue::Table(maximum)) => {
                let limits = maximum.iter().map(|(name, value)| limit("limits.maximum", name, value, at));
                source.maximum = limits.collect::<Result<_, _>>()?;
            }
            _ => source.usual.push(limit("limits", name, value, at)?),
        }
    }
    Ok(source)
}

/// Settings for all models, and in a table of its own for each that has some.
fn of_models(models: &DeTable<'_>, settings: &mut ModelSettings, at: &impl Fn(usize) -> String) -> Result<(), String> {
    for (name, value) in models {
        let name = Named::new(name, at);
        if let ("embedding-model", DeValue::String(model)) = (name.text, value.get_ref()) {
            settings.embedding_model = Some(model.to_string());
            continue;
        }
        if let ("extraction-model", DeValue::String(model)) = (name.text, value.get_ref()) {
            settings.extraction_model = Some(model.to_string());
            continue;
        }
        let DeValue::Table(of_one) = value.get_ref() else {
            let set = model_setting::set(settings, name.text, &written(value));
            set.map_err(|problem| format!("{}, models.{}: {problem}", name.place, name.text))?;
            continue;
        };
        for (setting, value) in of_one {
            let setting = Named::new(setting, at);
            let set = model_setting::set_of(settings, name.text, setting.text, &text(value.get_ref()));
            set.map_err(|problem| format!("{}, models.{}.{}: {problem}", setting.place, name.text, setting.text))?;
        }
    }
    Ok(())
}

/// Each provider in a table of its own.
fn of_providers(
    providers: &DeTable<'_>,
    settings: &mut ModelSettings,
    at: &impl Fn(usize) -> String,
) -> Result<(), String> {
    for (name, value) in providers {
        let name = Named::new(name, at);
        let DeValue::Table(own) = value.get_ref() else {
            return Err(format!("{}: write the settings of a provider under [providers.NAME]", name.place));
        };
        if name.text == "rehearsal" || name.text.contains('/') || name.text.trim() != name.text {
            let problem = format!("a provider cannot be called {:?}; choose a name without a slash", name.text);
            return Err(format!("{}: {problem}", name.place));
        }
        let provider = settings.providers.entry(name.text.to_owned()).or_default();
        for (setting, value) in own {
            let setting = Named::new(setting, at);
            let set = provider_setting::set(provider, setting.text, value.get_ref());
            set.map_err(|problem| format!("{}, providers.{}.{}: {problem}", setting.place, name.text, setting.text))?;
        }
    }
    Ok(())
}

fn of_queries(queries: &DeTable<'_>, at: &impl Fn(usize) -> String) -> Result<Vec<QueryLimit>, String> {
    let limits = queries.iter().map(|(name, value)| {
        let name = Named::new(name, at);
        let limit = QueryLimit::new(name.text, &written(value));
        limit.map_err(|problem| format!("{}, queries.{}: {problem}", name.place, name.text))
    });
    limits.collect()
}

/// What tools may reach, and their keys.
fn of_tools(
    tools: &DeTable<'_>,
    settings: &mut tool_setting::ToolSettings,
    at: &impl Fn(usize) -> String,
) -> Result<(), String> {
    for (name, value) in tools {
        let name = Named::new(name, at);
        match (name.text, value.get_ref()) {
            ("http", DeValue::Table(http)) => {
                for (setting, value) in http {
                    let setting = Named::new(setting, at);
                    let set = tool_setting::set_http(&mut settings.reach, setting.text, value.get_ref());
                    set.map_err(|problem| format!("{}, tools.http.{}: {problem}", setting.place, setting.text))?;
                }
            }
            ("secrets", DeValue::Table(secrets)) => {
                for (secret, value) in secrets {
                    let secret = Named::new(secret, at);
                    let DeValue::Table(own) = value.get_ref() else {
                        return Err(format!("{}: write a secret under [tools.secrets.NAME]", secret.place));
                    };
                    let kept = settings.secrets.entry(secret.text.to_owned()).or_default();
                    for (setting, value) in own {
                        let setting = Named::new(setting, at);
                        let set = tool_setting::set_secret(kept, setting.text, value.get_ref());
                        set.map_err(|problem| {
                            format!("{}, tools.secrets.{}.{}: {problem}", setting.place, secret.text, setting.text)
                        })?;
                    }
                }
            }
            (other, _) => {
                return Err(format!(
                    "{}: there is no setting `tools.{other}`; write [tools.http] or [tools.secrets.NAME]",
                    name.place
                ));
            }
        }
    }
    Ok(())
}

/// The state and the bus of several processes.
fn of_cluster(
    cluster: &DeTable<'_>,
    settings: &mut ClusterSettings,
    at: &impl Fn(usize) -> String,
) -> Result<(), String> {
    for (name, value) in cluster {
        let name = Named::new(name, at);
        let set = settings.set(name.text, &text(value.get_ref()));
        set.map_err(|problem| format!("{}, cluster.{}: {problem}", name.place, name.text))?;
    }
    Ok(())
}

/// A name and where it stands.
struct Named<'n> {
    text: &'n str,
    place: String,
}

impl<'n> Named<'n> {
    fn new(name: &'n Spanned<Cow<'_, str>>, at: &impl Fn(usize) -> String) -> Self {
        Self { text: name.get_ref(), place: at(name.span().start) }
    }
}

/// A value as a person would write it, or else what kind of value it is.
fn written(value: &Spanned<DeValue<'_>>) -> String {
    match value.get_ref() {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(yes) => yes.to_string(),
        DeValue::Integer(_) | DeValue::String(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            value.get_ref().type_str().to_owned()
        }
    }
}

fn limit(
    table: &str,
    name: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    at: &impl Fn(usize) -> String,
) -> Result<Limit, String> {
    let (place, name) = (at(name.span().start), name.get_ref());
    Limit::new(name, &written(value)).map_err(|problem| format!("{place}, {table}.{name}: {problem}"))
}
