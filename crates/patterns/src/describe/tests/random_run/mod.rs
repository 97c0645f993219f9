//! Random runs for property tests: any mixture of steps, any end, any late arrival.

mod plan;
mod react;
mod supervisor;

use proptest::prelude::*;
use trellis_domain::record::Record;

/// A run of any pattern that may be finished or not.
pub(crate) fn any_run() -> impl Strategy<Value = Vec<Record>> {
    prop_oneof![react::any_react_run(), plan::any_plan_run(), supervisor::any_supervisor_run()]
}

/// A ReAct run that has ended.
pub(crate) fn finished_react_run() -> impl Strategy<Value = Vec<Record>> {
    react::any_react_run().prop_filter("the run has ended", |records| has_ended(records))
}

/// A run that has ended.
pub(crate) fn finished_run() -> impl Strategy<Value = Vec<Record>> {
    any_run().prop_filter("the run has ended", |records| has_ended(records))
}

/// Whether the root session has ended.
pub(crate) fn has_ended(records: &[Record]) -> bool {
    let mut of_root = records.iter().filter(|record| record.header.session == record.header.run);
    of_root.any(|record| record.body.as_ended().is_some())
}
