//! Evaluation: questions with known answers, what came of asking them, and how good that was.
//!
//! Owns suites, checkers, the tools that suites offer, and reports. Does not ask anything: whoever runs a suite hands the
//! records of each run to [`Outcome::of`] and collects [`Trial`]s. No clock and no randomness; the only IO is reading the
//! folder of documents that `search` looks into.
//!
//! ```
//! use trellis_evaluation::{Outcome, Report, Suite, Trial, TrialKey};
//!
//! let line = r#"{"id": "q-1", "question": "What is 6 times 7?", "check": {"kind": "number", "value": 42}}"#;
//! let suite = Suite::parse(line)?;
//! // In earnest: `Outcome::of(&records)`, with all records of the run.
//! let outcome = Outcome { answer: Some("That is **42**.".to_owned()), ..Outcome::default() };
//! let key = TrialKey { model: "small".to_owned(), pattern: "react".to_owned(), repeat: 1 };
//! let report = Report::new("sums", vec![Trial::graded(&suite.items[0], key, outcome)]);
//! assert_eq!(report.rows[0].right.map(|share| share.rate), Some(1.0));
//! # Ok::<(), trellis_evaluation::SuiteError>(())
//! ```

mod calculator;
mod check;
mod comparison;
mod documents;
mod fixtures;
mod numbers;
mod outcome;
mod page;
mod regret;
mod report;
mod statistics;
mod suite;
mod table;
mod tree;
mod trial;
mod words;

pub use calculator::{CalculatorError, calculate};
pub use check::{Check, ExpectedCall};
pub use comparison::{Change, ChangedItem, Comparison};
pub use documents::{Documents, DocumentsError};
pub use fixtures::{CALCULATOR, FixtureTools, SEARCH, recorded_tool_items, tool_items};
pub use outcome::{CalledTool, Choice, Outcome};
pub use regret::Regret;
pub use report::{Report, ReportError, Row};
pub use statistics::{Interval, Share, mean, percentile};
pub use suite::{Budget, Injection, Item, Recorded, RecordedCall, Suite, SuiteError};
pub use trial::{Trial, TrialKey};
