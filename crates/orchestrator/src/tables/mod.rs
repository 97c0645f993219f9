//! Tables that agents ask: what every store of rows does alike, how rows get into one, and how they are asked for: in
//! GraphQL, in words that a model puts into GraphQL, and by meaning.

mod ask;
mod collector;
pub mod graphql;
mod load;
mod near;
mod rules;

pub use ask::{AskError, Asker, GRAPHQL, Generated, QuestionCall, SELECTION, TableAnswer};
pub use collector::Collector;
pub(crate) use collector::follow;
pub use load::{LoadedRows, TableLoadError, TableLoader};
pub use near::{NearError, RowFinder};
pub use rules::{
    BUDGET, LARGEST_ROW, LONGEST_VALUE, MOST_AT_ONCE, MOST_FOUND, MOST_TABLES, MOST_VECTORS, Plan, Span, check_layout,
    check_rows, check_vectors, note_loader, note_unfinished, plan, sorted,
};

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
