//! Settings by their names, as flags, environment and settings file write them: one limit, one limit of queries, one
//! setting of models.

mod limit;
pub(crate) mod model_setting;
mod query_limit;

pub(crate) use limit::{Limit, LimitSource, some};
pub(crate) use query_limit::QueryLimit;
