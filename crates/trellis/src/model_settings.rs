//! How models are called: environment over the settings file over what is built in.

use crate::cli::Global;
use crate::failure::Failure;
use crate::settings_file::SettingsFile;
use std::time::Duration;
use trellis_models::ModelSettings;

/// `TRELLIS_MODELS_TEMPERATURE`, and so on.
const PREFIX: &str = "TRELLIS_MODELS_";
/// The name of one that is asked for more often than the others.
const KEEP_REQUESTS: &str = "TRELLIS_KEEP_REQUESTS";
const REHEARSAL_DELAY: &str = "TRELLIS_REHEARSAL_DELAY_MS";

/// Everything that can be set for all models.
const NAMES: [&str; 10] = [
    "connect-timeout-ms",
    "first-token-timeout-ms",
    "between-tokens-timeout-ms",
    "total-timeout-ms",
    "concurrency",
    "temperature",
    "top-p",
    "max-tokens",
    "native-tools",
    "keep-requests",
];

/// The operator's settings, from everywhere.
pub(crate) fn of_operator(global: &Global) -> Result<ModelSettings, Failure> {
    let settings = SettingsFile::of(global)?.models;
    with_environment(
        settings,
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))),
    )
    .map_err(Failure::usage)
}

fn with_environment(
    mut settings: ModelSettings,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<ModelSettings, String> {
    for (variable, value) in variables.into_iter().filter(|(_, value)| !value.trim().is_empty()) {
        if variable == REHEARSAL_DELAY {
            let ms = value.parse().map_err(|_| format!("{variable} is {value:?}; write milliseconds, such as 8"))?;
            settings.rehearsal_delay = Some(Duration::from_millis(ms));
            continue;
        }
        let name = match variable.strip_prefix(PREFIX) {
            Some(name) => name.to_lowercase(),
            None if variable == KEEP_REQUESTS => "keep-requests".to_owned(),
            None => continue,
        };
        set(&mut settings, &name, value.trim()).map_err(|problem| format!("{variable}: {problem}"))?;
    }
    Ok(settings)
}

/// Sets one thing for all models. Its name may be written with `_` or `-`.
pub(crate) fn set(settings: &mut ModelSettings, name: &str, value: &str) -> Result<(), String> {
    let usual = &mut settings.usual;
    match name.replace('_', "-").as_str() {
        "connect-timeout-ms" => usual.connect_timeout = milliseconds(value)?,
        "first-token-timeout-ms" => usual.first_token_timeout = milliseconds(value)?,
        "between-tokens-timeout-ms" => usual.between_tokens_timeout = milliseconds(value)?,
        "total-timeout-ms" => usual.total_timeout = milliseconds(value)?,
        "concurrency" => usual.concurrency = whole(value)?,
        "temperature" => usual.sampling.temperature = Some(between(value, 2.0)?),
        "top-p" => usual.sampling.top_p = Some(between(value, 1.0)?),
        "max-tokens" => usual.sampling.max_tokens = Some(whole(value)?),
        "native-tools" => usual.native_tools = yes(value)?,
        "keep-requests" => usual.keep_requests = yes(value)?,
        _ => return Err(format!("there is no setting `{name}` of models; choose one of {}", NAMES.join(", "))),
    }
    Ok(())
}

/// Sets one thing for one model.
pub(crate) fn set_of(settings: &mut ModelSettings, model: &str, name: &str, value: &str) -> Result<(), String> {
    if name.replace('_', "-") != "native-tools" {
        return Err(format!("there is no setting `{name}` of a single model; it can have native-tools"));
    }
    settings.native_tools.insert(model.to_owned(), yes(value)?);
    Ok(())
}

fn milliseconds(value: &str) -> Result<Duration, String> {
    whole(value).map(Duration::from_millis)
}

/// A number above 0.
fn whole<T: TryFrom<u64>>(value: &str) -> Result<T, String> {
    let number = value.parse::<u64>().ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| format!("{value:?} is not a whole number above 0"))?;
    T::try_from(number).map_err(|_| format!("{value} is too large"))
}

fn between(value: &str, most: f64) -> Result<f64, String> {
    let number = value.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
    number.ok_or_else(|| format!("{value:?} is not a number between 0 and {most}"))
}

fn yes(value: &str) -> Result<bool, String> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(format!("{value:?} is neither true nor false")),
    }
}

#[cfg(test)]
#[path = "model_settings_tests.rs"]
mod tests;
