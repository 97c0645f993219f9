//! Passages for a question, by words and, if a model is configured for it, by meaning.

use super::MOST_FOUND;
use crate::ports::{Embedder, FoundPassage, Place, Search, SearchError, SearchQuery, TextRole};
use std::sync::Arc;
use trellis_domain::{Collection, Workspace};

/// Finds passages.
#[derive(Debug, Clone)]
pub struct Retriever {
    pub search: Arc<dyn Search>,
    pub embedder: Option<Arc<dyn Embedder>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Retrieved {
    pub passages: Vec<FoundPassage>,
    /// Why meaning was left out, if it was. Whoever reads the passages should know.
    pub words_only: Option<String>,
}

impl FoundPassage {
    /// The passage with a mark to cite it by, and where it stands.
    pub fn marked(&self, mark: &str) -> String {
        let Place { headings, lines: (first, last), .. } = &self.passage.place;
        let title = &self.document.title;
        // The title is often the first heading.
        let headings = headings.iter().skip_while(|heading| *heading == title);
        let path: Vec<&str> = std::iter::once(title).chain(headings).map(String::as_str).collect();
        let lines = if first == last { format!("line {first}") } else { format!("lines {first}–{last}") };
        format!("{mark} {} ({lines} of {})\n{}", path.join(" › "), self.document.text, self.passage.text)
    }
}

impl Retriever {
    pub async fn find(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        question: &str,
        limit: usize,
    ) -> Result<Retrieved, SearchError> {
        let (vector, mut words_only) = match &self.embedder {
            None => (None, Some("no embedding model is configured".to_owned())),
            Some(embedder) => match embedder.embed(vec![question.to_owned()], TextRole::Question).await {
                Ok(vectors) => (vectors.into_iter().next().map(|vector| (embedder.model().to_owned(), vector)), None),
                // Words find most of it; nobody is left without an answer because a second server is down.
                Err(error) => (None, Some(format!("the embedding model failed: {error}"))),
            },
        };
        let by_meaning = vector.as_ref().map(|(model, _)| model.clone());
        let query = SearchQuery { text: question.to_owned(), vector, limit: limit.clamp(1, MOST_FOUND) };
        let found = self.search.find(workspace, collection, query).await?;
        if let Some(model) = by_meaning
            && found.compared == 0
            && !found.passages.is_empty()
        {
            words_only = Some(format!("the documents of {collection} have no vectors of {model}; load them again"));
        }
        Ok(Retrieved { passages: found.passages, words_only })
    }
}
