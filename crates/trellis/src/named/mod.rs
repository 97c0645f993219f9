//! Settings by their names, as flags, environment and settings file write them: one limit, one limit of queries, one
//! setting of models, of a provider or of a shared state.

pub(crate) mod cluster_setting;
mod limit;
pub(crate) mod model_setting;
pub(crate) mod provider_setting;
mod query_limit;
pub(crate) mod tool_setting;
mod values;

pub(crate) use limit::{Limit, LimitSource, some};
pub(crate) use query_limit::QueryLimit;
pub(crate) use values::{text, whole};
