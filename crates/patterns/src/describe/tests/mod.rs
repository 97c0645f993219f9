//! What patterns say of their records, seen by the graph and its readers.
#![expect(clippy::needless_raw_string_hashes, reason = "expect_test writes its literals this way")]

mod asked;
mod check;
mod check_promises;
mod documents;
mod export;
mod fixture;
mod ontology_traces;
mod planned;
mod project;
mod project_patterns;
mod project_promises;
mod projection_number;
mod random_run;
mod round_trip;
mod stock_reader;
mod taken_up;
mod trace;
mod trace_records;
