//! One setting of models.

use super::provider_setting::dialect;
use super::values::whole;
use serde_json::Value;
use std::time::Duration;
use trellis_models::{ModelSettings, Prices};

/// Everything that can be set for all models.
const NAMES: [&str; 17] = [
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
    "probe",
    "one-call-routing",
    "parallel-calls",
    "extraction-calls",
    "extraction-tokens",
    "extraction-calls-per-day",
    "extraction-tokens-per-day",
];

/// Everything that can be set for one model.
const OF_ONE: [&str; 15] = [
    "dialect",
    "context-tokens",
    "max-tokens",
    "input-price",
    "cached-input-price",
    "output-price",
    "native-tools",
    "probe",
    "one-call-routing",
    "parallel-calls",
    "temperature",
    "top-p",
    "reasoning-effort",
    "keep-alive",
    "think",
];

/// More than anything costs.
const HIGHEST_PRICE: f64 = 1e6;

/// Sets one thing for all models. Its name may be written with `_` or `-`.
pub(crate) fn set(settings: &mut ModelSettings, name: &str, value: &str) -> Result<(), String> {
    let (usual, facts) = (&mut settings.usual, &mut settings.extraction_budgets);
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
        "probe" => usual.probe = yes(value)?,
        "one-call-routing" => usual.one_call_routing = Some(yes(value)?),
        "parallel-calls" => usual.parallel_calls = Some(yes(value)?),
        "extraction-calls" => facts.of_load.calls = whole(value)?,
        "extraction-tokens" => facts.of_load.tokens = whole(value)?,
        "extraction-calls-per-day" => facts.of_day.calls = whole(value)?,
        "extraction-tokens-per-day" => facts.of_day.tokens = whole(value)?,
        _ => return Err(format!("there is no setting `{name}` of models; choose one of {}", NAMES.join(", "))),
    }
    Ok(())
}

/// Sets one thing for one model.
pub(crate) fn set_of(settings: &mut ModelSettings, model: &str, name: &str, value: &str) -> Result<(), String> {
    if !model.contains('/') {
        return Err(format!("{model:?} is not the name of a model; write [models.\"provider/name\"]"));
    }
    let options = settings.models.entry(model.to_owned()).or_default();
    let prices = options.prices.unwrap_or_default();
    match name.replace('_', "-").as_str() {
        "dialect" => options.dialect = Some(dialect(value)?),
        "context-tokens" => options.context_tokens = Some(whole(value)?),
        "max-tokens" => options.max_tokens = Some(whole(value)?),
        "input-price" => options.prices = Some(Prices { input: price(value)?, ..prices }),
        "cached-input-price" => options.prices = Some(Prices { cached_input: Some(price(value)?), ..prices }),
        "output-price" => options.prices = Some(Prices { output: price(value)?, ..prices }),
        "native-tools" => options.native_tools = Some(yes(value)?),
        "probe" => options.probe = Some(yes(value)?),
        "one-call-routing" => options.one_call_routing = Some(yes(value)?),
        "parallel-calls" => options.parallel_calls = Some(yes(value)?),
        "temperature" => options.temperature = Some(between(value, 2.0)?),
        "top-p" => options.top_p = Some(between(value, 1.0)?),
        "reasoning-effort" => options.reasoning_effort = Some(value.to_owned()),
        "keep-alive" => options.keep_alive = Some(value.parse::<i64>().map_or_else(|_| value.into(), Value::from)),
        "think" => options.think = Some(yes(value).map_or_else(|_| value.into(), Value::from)),
        _ => {
            let names = OF_ONE.join(", ");
            return Err(format!("there is no setting `{name}` of a single model; choose one of {names}"));
        }
    }
    Ok(())
}

fn milliseconds(value: &str) -> Result<Duration, String> {
    whole(value).map(Duration::from_millis)
}

/// Of a million tokens.
fn price(value: &str) -> Result<f64, String> {
    between(value, HIGHEST_PRICE)
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
