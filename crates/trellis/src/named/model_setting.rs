//! One setting of models.

use std::time::Duration;
use trellis_models::ModelSettings;

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
