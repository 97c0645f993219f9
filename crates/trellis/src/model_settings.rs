//! How models are called: environment over the settings file over what is built in.

use crate::cli::Global;
use crate::failure::Failure;
use crate::named::model_setting::set;
use crate::settings_file::SettingsFile;
use std::time::Duration;
use trellis_models::ModelSettings;

/// `TRELLIS_MODELS_TEMPERATURE`, and so on.
const PREFIX: &str = "TRELLIS_MODELS_";
/// The name of one that is asked for more often than the others.
const KEEP_REQUESTS: &str = "TRELLIS_KEEP_REQUESTS";
/// These are named like `TRELLIS_MODEL`.
const EMBEDDING_MODEL: &str = "TRELLIS_EMBEDDING_MODEL";
const EXTRACTION_MODEL: &str = "TRELLIS_EXTRACTION_MODEL";
const REHEARSAL_DELAY: &str = "TRELLIS_REHEARSAL_DELAY_MS";

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
        if variable == EMBEDDING_MODEL {
            settings.embedding_model = Some(value.trim().to_owned());
            continue;
        }
        if variable == EXTRACTION_MODEL {
            settings.extraction_model = Some(value.trim().to_owned());
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

#[cfg(test)]
#[path = "model_settings_tests.rs"]
mod tests;
