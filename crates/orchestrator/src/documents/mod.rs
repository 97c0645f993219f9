//! Documents that agents search: what every index does alike, how documents get into one, and how they are found.

mod facts;
mod fusion;
mod gate;
mod load;
mod noted;
mod orphans;
mod remove;
mod retrieve;
mod rules;
mod words;

pub use facts::{ExtractedFacts, Extraction, FactsBudget, FactsBudgets, FactsProgress, FactsSpending};
pub(crate) use facts::{NotedPassage, document_of_passage, is_notes, noted};
pub use fusion::fuse;
pub use gate::{Entered, Gate};
pub use load::{LoadError, Loaded, Loader, NewDocument, Outcome, SearchableDocument, kind_of_name};
pub use remove::RemovedDocument;
pub use retrieve::{Retrieved, Retriever};
pub use rules::{
    LARGEST_PASSAGE, MOST_CANDIDATES, MOST_DIMENSIONS, MOST_DOCUMENTS_AT_ONCE, MOST_FOUND, MOST_PASSAGES,
    MOST_PASSAGES_OF_COLLECTION, QueryWord, check_documents, different_words, normalised, query_words,
};
pub use words::{Word, words};
