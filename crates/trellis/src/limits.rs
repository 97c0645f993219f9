//! The operator's limits: flags over environment over the settings file over what is built in.

use crate::cli::Global;
use crate::failure::Failure;
use crate::named::{Limit, LimitSource, some};
use crate::settings_file::SettingsFile;
use serde_json::Value;
use std::collections::BTreeMap;
use trellis_domain::limits::{Limits, SomeLimits};
use trellis_patterns::router::OperatorLimits;

/// `TRELLIS_LIMIT_MAX_ITERATIONS`, `TRELLIS_LIMIT_MAXIMUM_MAX_ITERATIONS`.
const PREFIX: &str = "TRELLIS_LIMIT_";
const MAXIMUM: &str = "MAXIMUM_";

/// What a request asks for.
pub(crate) fn of_request(limits: &[Limit]) -> Result<SomeLimits, Failure> {
    some(limits).map_err(Failure::unexpected)
}

/// The operator's limits, from everywhere.
pub(crate) fn of_operator(global: &Global, flags: &[Limit]) -> Result<OperatorLimits, Failure> {
    let file = SettingsFile::of(global)?.limits;
    let environment = of_environment(std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.to_string_lossy().into_owned()))
    }));
    let flags = LimitSource { usual: flags.to_vec(), maximum: Vec::new() };
    merged(&[file, environment.map_err(Failure::usage)?, flags]).map_err(Failure::unexpected)
}

/// What of a request is above the operator's maximum, in words.
pub(crate) fn held(request: &SomeLimits, operator: &OperatorLimits) -> Vec<String> {
    let (wished, maximum) = (members(request), members(&operator.maximum));
    let above = |(name, wish): (&String, &u64)| {
        let most = maximum.get(name).filter(|most| *most < wish)?;
        Some(format!("{name} is held to {most}, the operator's maximum"))
    };
    wished.iter().filter_map(above).collect()
}

/// What differs from what is built in, in words; nothing if nothing does.
pub(crate) fn described(operator: &OperatorLimits) -> String {
    let built_in = members(&Limits::default());
    let usual = members(&operator.usual).into_iter().filter(|(name, value)| built_in.get(name) != Some(value));
    let listed = |limits: Vec<(String, u64)>| {
        let words = limits.iter().map(|(name, value)| format!("{name} {value}"));
        words.collect::<Vec<_>>().join(", ")
    };
    let built_in = members(&SomeLimits::built_in_maximum());
    let most = members(&operator.maximum).into_iter().filter(|(name, value)| built_in.get(name) != Some(value));
    let (usual, most) = (listed(usual.collect()), listed(most.collect()));
    let most = if most.is_empty() { most } else { format!("at most {most}") };
    [usual, most].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Limits by name.
fn members(limits: &impl serde::Serialize) -> BTreeMap<String, u64> {
    let value = serde_json::to_value(limits).ok();
    let members = value.as_ref().and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect()
}

/// The weakest source first. Where the operator names no maximum there is one all the same; who sets a usual limit
/// above that one wants it.
fn merged(sources: &[LimitSource]) -> Result<OperatorLimits, serde_json::Error> {
    let usual = some(sources.iter().flat_map(|source| &source.usual))?;
    let named = some(sources.iter().flat_map(|source| &source.maximum))?;
    let maximum = named.or(SomeLimits::built_in_maximum().at_least(usual.clone()));
    Ok(OperatorLimits { usual: Limits::default().refined(&usual, &maximum), maximum })
}

fn of_environment(variables: impl IntoIterator<Item = (String, String)>) -> Result<LimitSource, String> {
    let mut source = LimitSource::default();
    let ours: BTreeMap<_, _> = variables.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    for (variable, value) in ours {
        let Some(rest) = variable.strip_prefix(PREFIX) else { continue };
        let (list, name) = match rest.strip_prefix(MAXIMUM) {
            Some(name) => (&mut source.maximum, name),
            None => (&mut source.usual, rest),
        };
        let name = name.to_lowercase().replace('_', "-");
        list.push(Limit::new(&name, &value).map_err(|problem| format!("{variable}: {problem}"))?);
    }
    Ok(source)
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
