//! The contract of the search index.

use crate::documents::MOST_DOCUMENTS_AT_ONCE;
use crate::ports::{
    DocumentInfo, FoundPassages, IndexedDocument, Passage, PassageVectors, Place, Search, SearchDocument, SearchError,
    SearchQuery,
};
use std::sync::Arc;
use trellis_domain::{Collection, Hash, Workspace};

pub async fn suite<F: Future<Output = Arc<dyn Search>>>(fresh: impl Fn() -> F) {
    passages_are_found_by_their_words(&*fresh().await).await;
    passages_come_back_as_they_were_put(&*fresh().await).await;
    the_better_passage_comes_first(&*fresh().await).await;
    long_questions_are_asked_by_the_words_that_say_most(&*fresh().await).await;
    words_that_are_said_again_count_more(&*fresh().await).await;
    equals_come_by_document_and_number(&*fresh().await).await;
    passages_are_found_by_meaning(&*fresh().await).await;
    words_and_meaning_are_joined(&*fresh().await).await;
    vectors_of_other_models_are_not_compared(&*fresh().await).await;
    a_document_takes_the_place_of_its_predecessor(&*fresh().await).await;
    putting_again_changes_nothing(&*fresh().await).await;
    removed_documents_are_not_found(&*fresh().await).await;
    workspaces_and_collections_are_apart(&*fresh().await).await;
    documents_are_listed_in_pages(&*fresh().await).await;
    wrong_documents_are_refused_and_nothing_of_the_call_is_kept(&*fresh().await).await;
    nothing_is_found_where_nothing_is(&*fresh().await).await;
    space_of_removed_vectors_is_used_again_without_mixing_them_up(&*fresh().await).await;
}

/// A document of these passages, without vectors.
pub fn document(id: &str, texts: &[&str]) -> SearchDocument {
    let mut start = 0;
    let passages = texts.iter().zip(1..).map(|(text, line)| {
        let bytes = start..start + text.len() as u64;
        start = bytes.end + 1;
        let headings = vec!["Part".to_owned(), format!("Section {line}")];
        Passage { text: (*text).to_owned(), place: Place { headings, bytes, lines: (line, line) } }
    });
    let passages: Vec<_> = passages.collect();
    let info = DocumentInfo {
        id: id.to_owned(),
        title: format!("About {id}"),
        text: format!("urn:text:{id}"),
        hash: Hash::of(texts.join("\n")),
    };
    SearchDocument { info, passages, vectors: None }
}

/// The same with a vector for each passage.
pub fn with_vectors(document: SearchDocument, model: &str, vectors: &[&[f32]]) -> SearchDocument {
    let vectors = vectors.iter().map(|vector| vector.to_vec()).collect();
    SearchDocument { vectors: Some(PassageVectors { model: model.to_owned(), vectors }), ..document }
}

pub async fn put(search: &dyn Search, documents: Vec<SearchDocument>) {
    search.put(&Workspace::default(), &Collection::default(), documents).await.expect("good documents");
}

async fn ask(search: &dyn Search, query: SearchQuery) -> FoundPassages {
    search.find(&Workspace::default(), &Collection::default(), query).await.expect("the index works")
}

pub async fn found(search: &dyn Search, text: &str) -> Vec<(String, u64)> {
    keys(&ask(search, by_words(text)).await)
}

fn by_words(text: &str) -> SearchQuery {
    SearchQuery { text: text.to_owned(), vector: None, limit: 10 }
}

fn by_vector(model: &str, vector: &[f32]) -> SearchQuery {
    SearchQuery { text: String::new(), vector: Some((model.to_owned(), vector.to_vec())), limit: 10 }
}

fn keys(found: &FoundPassages) -> Vec<(String, u64)> {
    found.passages.iter().map(|found| (found.document.id.clone(), found.number)).collect()
}

fn key(id: &str, number: u64) -> (String, u64) {
    (id.to_owned(), number)
}

async fn listed(search: &dyn Search) -> Vec<IndexedDocument> {
    let documents = search.documents(&Workspace::default(), &Collection::default(), None, 1000).await;
    documents.expect("the index works")
}

async fn passages_are_found_by_their_words(search: &dyn Search) {
    put(search, vec![document("d", &["Refunds are paid within a week.", "The office is closed on Sundays."])]).await;
    assert_eq!(found(search, "When is a REFUND paid?").await[0], key("d", 0));
    assert_eq!(found(search, "sunday").await, [key("d", 1)], "plurals and cases are the same word");
    assert_eq!(found(search, "Section 2").await[0], key("d", 1), "headings count");
    assert_eq!(found(search, "zebra").await, []);
    assert_eq!(found(search, "").await, []);
    assert_eq!(found(search, "\"refunds\" AND (week OR -x) title:* ~9^").await, [key("d", 0)], "no query language");
}

async fn passages_come_back_as_they_were_put(search: &dyn Search) {
    let put_in = document("urn:ä/1", &["grün 東京", "second"]);
    put(search, vec![put_in.clone()]).await;
    for (text, number) in [("東京", 0_u64), ("second", 1)] {
        let found = ask(search, by_words(text)).await.passages.remove(0);
        assert_eq!(found.document, put_in.info);
        assert_eq!(found.number, number);
        assert_eq!(Some(&found.passage), put_in.passages.get(usize::try_from(number).expect("small")));
        assert!(found.score > 0.0);
    }
}

async fn the_better_passage_comes_first(search: &dyn Search) {
    let texts =
        ["the cat and the dog", "the cat sat on the mat with a cat", "a dog", "the bird", "the fish", "the cow"];
    put(search, vec![document("d", &texts)]).await;
    let order = found(search, "the cat").await;
    assert_eq!(order[..2], [key("d", 1), key("d", 0)], "rare words count more than common ones");
    let one = ask(search, SearchQuery { limit: 1, ..by_words("the cat") }).await;
    assert_eq!(keys(&one), order[..1], "a smaller limit is the beginning of the same");
    let scores: Vec<_> = ask(search, by_words("the cat")).await.passages.iter().map(|found| found.score).collect();
    assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
}

async fn long_questions_are_asked_by_the_words_that_say_most(search: &dyn Search) {
    let numbered = |word: &str, count: usize| (0..count).map(|n| format!("{word}{n}")).collect::<Vec<_>>().join(" ");
    let common = numbered("common", 300);
    put(search, (0..4).map(|n| document(&format!("other{n}"), &[&common])).collect()).await;
    put(search, vec![document("wanted", &["chargeback"]), document("last", &["common299"])]).await;
    let asked = found(search, &format!("{common} chargeback")).await;
    assert!(asked.contains(&key("wanted", 0)), "the rarest word is looked for, wherever it stands: {asked:?}");
    assert_eq!(asked.len(), 5, "common words are looked for as well, and the most common is left out: {asked:?}");
    let unknown = format!("{} chargeback", numbered("unknown", 300));
    assert_eq!(found(search, &unknown).await, [key("wanted", 0)], "words that nobody has take no room");
    let too_long = format!("{} chargeback", numbered("unknown", 2000));
    assert_eq!(found(search, &too_long).await, [], "not all words are looked up");
}

async fn words_that_are_said_again_count_more(search: &dyn Search) {
    put(search, vec![document("d", &["the card", "the fee", "nothing"])]).await;
    assert_eq!(found(search, "fee card").await, [key("d", 0), key("d", 1)], "equals");
    assert_eq!(found(search, "fee card, and what the fee is").await[..2], [key("d", 1), key("d", 0)]);
}

async fn equals_come_by_document_and_number(search: &dyn Search) {
    for id in ["b", "c", "a"] {
        let mut same = document(id, &["equal words", "equal words"]);
        "Title".clone_into(&mut same.info.title);
        same.passages.iter_mut().for_each(|passage| passage.place.headings.clear());
        put(search, vec![same]).await;
    }
    let order = found(search, "equal").await;
    assert_eq!(order, [key("a", 0), key("a", 1), key("b", 0), key("b", 1), key("c", 0), key("c", 1)]);
    assert_eq!(order, found(search, "equal").await);
}

async fn passages_are_found_by_meaning(search: &dyn Search) {
    let vectors: [&[f32]; 3] = [&[1.0, 0.0, 0.1], &[0.0, 5.0, 0.0], &[0.6, 0.6, 0.0]];
    put(search, vec![with_vectors(document("d", &["one", "two", "three"]), "m", &vectors)]).await;
    let answer = ask(search, by_vector("m", &[0.0, 0.1, 0.0])).await;
    assert_eq!(keys(&answer), [key("d", 1), key("d", 2), key("d", 0)], "by direction, not by length");
    assert_eq!(answer.compared, 3);
}

async fn words_and_meaning_are_joined(search: &dyn Search) {
    let vectors: [&[f32]; 3] = [&[0.0, 1.0], &[0.7, 0.7], &[1.0, 0.0]];
    let texts = ["apple apple", "an apple pie", "a car"];
    put(search, vec![with_vectors(document("d", &texts), "m", &vectors)]).await;
    let query = SearchQuery { text: "apple".to_owned(), ..by_vector("m", &[0.8, 0.6]) };
    let order = keys(&ask(search, query).await);
    assert_eq!(order[0], key("d", 1), "good in both is better than first in one: {order:?}");
    assert_eq!(order.len(), 3);
}

async fn vectors_of_other_models_are_not_compared(search: &dyn Search) {
    let one = with_vectors(document("one", &["text"]), "m1", &[&[1.0, 0.0]]);
    let other = with_vectors(document("other", &["text"]), "m2", &[&[1.0, 0.0, 0.0]]);
    put(search, vec![one, other, document("none", &["text"])]).await;
    let answer = ask(search, by_vector("m2", &[1.0, 0.0, 0.0])).await;
    assert_eq!((keys(&answer), answer.compared), (vec![key("other", 0)], 1));
    let unknown = ask(search, SearchQuery { text: "text".into(), ..by_vector("m3", &[1.0]) }).await;
    assert_eq!((unknown.passages.len(), unknown.compared), (3, 0), "words are looked for all the same");
    let shorter = ask(search, by_vector("m1", &[1.0])).await;
    assert_eq!(shorter.compared, 0, "vectors of another length are not compared");
    let models: Vec<_> = listed(search).await.into_iter().map(|document| document.model).collect();
    assert_eq!(models, [None, Some("m1".to_owned()), Some("m2".to_owned())]);
}

async fn a_document_takes_the_place_of_its_predecessor(search: &dyn Search) {
    let old = with_vectors(document("d", &["old words", "more old words"]), "m", &[&[1.0, 0.0], &[0.0, 1.0]]);
    put(search, vec![old, document("e", &["old and untouched"])]).await;
    let new = with_vectors(document("d", &["new words"]), "m", &[&[0.5, 0.5]]);
    put(search, vec![new.clone()]).await;
    assert_eq!(found(search, "old").await, [key("e", 0)]);
    assert_eq!(found(search, "new").await, [key("d", 0)]);
    assert_eq!(ask(search, by_vector("m", &[1.0, 0.0])).await.compared, 1);
    let indexed = search.document(&Workspace::default(), &Collection::default(), "d").await.expect("the index works");
    assert_eq!(indexed, Some(IndexedDocument { info: new.info, passages: 1, model: Some("m".to_owned()) }));
}

async fn putting_again_changes_nothing(search: &dyn Search) {
    let same = with_vectors(document("d", &["some words"]), "m", &[&[1.0, 0.0]]);
    put(search, vec![same.clone()]).await;
    let before = (ask(search, by_words("words")).await, listed(search).await);
    put(search, vec![same.clone()]).await;
    put(search, vec![same]).await;
    assert_eq!((ask(search, by_words("words")).await, listed(search).await), before);
    assert_eq!(ask(search, by_vector("m", &[1.0, 0.0])).await.compared, 1);
}

async fn removed_documents_are_not_found(search: &dyn Search) {
    let (ws, collection) = (Workspace::default(), Collection::default());
    put(search, vec![document("d", &["some words"]), document("e", &["some words"])]).await;
    assert!(search.remove(&ws, &collection, "d").await.expect("the index works"));
    assert!(!search.remove(&ws, &collection, "d").await.expect("the index works"), "it is gone already");
    assert_eq!(found(search, "words").await, [key("e", 0)]);
    search.remove_collection(&ws, &collection).await.expect("the index works");
    search.remove_collection(&ws, &collection).await.expect("a collection that is not there can be removed");
    assert_eq!((found(search, "words").await, listed(search).await), (vec![], vec![]));
    put(search, vec![document("f", &["other words"])]).await;
    assert_eq!(found(search, "words").await, [key("f", 0)], "a removed collection can be begun anew");
}

async fn workspaces_and_collections_are_apart(search: &dyn Search) {
    let places = [("w", "c"), ("w", "C"), ("W", "c"), ("w", "c2"), ("wc", "c"), ("w", ".."), ("..", "w")];
    let place = |(workspace, collection)| {
        (Workspace::new(workspace).expect("valid"), Collection::new(collection).expect("valid"))
    };
    for (n, (workspace, collection)) in places.map(place).iter().enumerate() {
        let own = with_vectors(document(&format!("d{n}"), &["shared words"]), "m", &[&[1.0, 0.0]]);
        search.put(workspace, collection, vec![own]).await.expect("good documents");
    }
    for (n, (workspace, collection)) in places.map(place).iter().enumerate() {
        let query = SearchQuery { text: "shared".into(), ..by_vector("m", &[1.0, 0.0]) };
        let answer = search.find(workspace, collection, query).await.expect("the index works");
        assert_eq!(keys(&answer), [key(&format!("d{n}"), 0)]);
        assert_eq!(answer.compared, 1);
        let listed = search.documents(workspace, collection, None, 10).await.expect("the index works");
        assert_eq!(listed.len(), 1);
        assert_eq!(search.document(workspace, collection, "d99").await.expect("the index works"), None);
    }
    let (workspace, collection) = place(places[0]);
    search.remove_collection(&workspace, &collection).await.expect("the index works");
    for (workspace, collection) in &places.map(place)[1..] {
        let left = search.documents(workspace, collection, None, 10).await.expect("the index works");
        assert_eq!(left.len(), 1, "{workspace}/{collection} was removed with another one");
    }
}

async fn documents_are_listed_in_pages(search: &dyn Search) {
    let (ws, collection) = (Workspace::default(), Collection::default());
    put(search, (0..7).map(|n| document(&format!("d{n}"), &["a", "b"][..=n % 2])).collect()).await;
    put(search, vec![document("nothing", &[])]).await;
    let mut all = Vec::new();
    loop {
        let after = all.last().map(|last: &IndexedDocument| last.info.id.clone());
        let page = search.documents(&ws, &collection, after.as_deref(), 3).await.expect("the index works");
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        all.extend(page);
    }
    let counts: Vec<_> = all.iter().map(|document| (document.info.id.as_str(), document.passages)).collect();
    let expected = [("d0", 1), ("d1", 2), ("d2", 1), ("d3", 2), ("d4", 1), ("d5", 2), ("d6", 1), ("nothing", 0)];
    assert_eq!(counts, expected);
}

async fn wrong_documents_are_refused_and_nothing_of_the_call_is_kept(search: &dyn Search) {
    let (ws, collection) = (Workspace::default(), Collection::default());
    let wrong = [
        document("", &["text"]),
        document("a\nb", &["text"]),
        document("long", &["x".repeat(20_000).as_str()]),
        with_vectors(document("few", &["a", "b"]), "m", &[&[1.0]]),
        with_vectors(document("uneven", &["a", "b"]), "m", &[&[1.0], &[1.0, 2.0]]),
        with_vectors(document("nan", &["a"]), "m", &[&[f32::NAN]]),
        with_vectors(document("unnamed", &["a"]), "", &[&[1.0]]),
        document("good", &["twice"]),
    ];
    for wrong in wrong {
        let refused = search.put(&ws, &collection, vec![document("good", &["text"]), wrong.clone()]).await;
        assert!(matches!(refused, Err(SearchError::Invalid(_))), "{}: {refused:?}", wrong.info.id);
    }
    let many = (0..=MOST_DOCUMENTS_AT_ONCE).map(|n| document(&n.to_string(), &["text"])).collect();
    assert!(matches!(search.put(&ws, &collection, many).await, Err(SearchError::Invalid(_))));
    assert_eq!(listed(search).await, []);
}

async fn nothing_is_found_where_nothing_is(search: &dyn Search) {
    let query = SearchQuery { text: "anything".into(), ..by_vector("m", &[1.0]) };
    assert_eq!(ask(search, query).await, FoundPassages::default());
    assert!(!search.remove(&Workspace::default(), &Collection::default(), "d").await.expect("the index works"));
    assert_eq!(listed(search).await, []);
}

async fn space_of_removed_vectors_is_used_again_without_mixing_them_up(search: &dyn Search) {
    let (ws, collection) = (Workspace::default(), Collection::default());
    let angled = |id: &str, angle: f32| {
        let (one, other) = ([angle.cos(), angle.sin()], [(angle + 0.2).cos(), (angle + 0.2).sin()]);
        with_vectors(document(id, &["text", "text"]), "m", &[&one, &other])
    };
    for round in 0_u8..5 {
        let angle = |n: u8| f32::from(n) * 0.7 + f32::from(round);
        put(search, (0..8).map(|n| angled(&format!("d{n}"), angle(n))).collect()).await;
        search.remove(&ws, &collection, &format!("d{round}")).await.expect("the index works");
        for n in (0..8).filter(|n| *n != round) {
            let answer = ask(search, by_vector("m", &[angle(n).cos(), angle(n).sin()])).await;
            assert_eq!(keys(&answer)[0], key(&format!("d{n}"), 0), "round {round}");
            assert_eq!(answer.compared, 14);
        }
    }
}
