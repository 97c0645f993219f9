use super::*;
use proptest::prelude::*;

fn documents() -> Documents {
    let texts = [
        ("ferry", "# Sollen ferry\n\nThe crossing takes 35 minutes. A single ticket costs 14.60 crowns."),
        ("bridge", "# Varrow Bridge\n\nThe bridge was designed by Katalin Szoreny."),
        ("fair", "# Lantern Fair\n\nThe fair is held in October. Tickets are free."),
        ("library", "The library lends out 40 lanterns and a bridge game."),
    ];
    Documents::new(texts.map(|(name, text)| (name.to_owned(), text.to_owned())))
}

#[test]
fn the_best_documents_come_first_with_their_titles() {
    let found = documents().search("price of a ticket for the ferry");
    let titles: Vec<_> = found.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(titles, ["## Sollen ferry", "## Lantern Fair"], "{found}");
    assert!(found.starts_with("## Sollen ferry\nThe crossing takes 35 minutes."), "{found}");
    let found = documents().search("LANTERNS");
    assert!(found.contains("## library\n") && found.contains("## Lantern Fair"), "{found}");
}

#[test]
fn a_search_without_a_match_says_so() {
    let none = "No document matches \"quantum\". Try other words, or fewer.";
    assert_eq!(documents().search(" quantum "), none);
    let common = documents().search("the");
    assert!(common.starts_with("No document matches"), "a word that all have tells nothing: {common}");
    assert!(Documents::default().search("x").starts_with("No document matches"));
}

#[test]
fn a_long_document_shows_its_best_passage_only() {
    let filler = "Nothing of note happened there in that year. ".repeat(60);
    let text = format!("# Chronicle\n\n{filler}In 1931 the tower burned down. {filler}");
    let found = Documents::new([("chronicle".to_owned(), text)]).search("When did the tower burn down?");
    assert!(found.contains("the tower burned down") && found.len() < PASSAGE_BYTES + 50, "{found}");
}

#[test]
fn the_questions_of_this_repository_find_their_documents() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../eval/documents");
    let documents = Documents::load(Path::new(folder)).unwrap();
    for (query, fact) in [
        ("Who founded Tarnwick Kettleworks?", "Odile Farrant"),
        ("Sollen ferry crossing minutes", "35"),
        ("engineer who designed Varrow Bridge", "Katalin Szoreny"),
        ("mayor of Quennhaven", "Ilse Brandtner"),
        ("Orlavane kettles sold in 2023", "38,460"),
    ] {
        let found = documents.search(query);
        assert!(found.contains(fact), "{query}: {found}");
    }
}

#[test]
fn a_folder_without_documents_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let none = Documents::load(folder.path()).unwrap_err().to_string();
    assert!(none.starts_with("there are no .md or .txt files in "), "{none}");
    let missing = Documents::load(&folder.path().join("gone")).unwrap_err().to_string();
    assert!(missing.contains("gone cannot be read") && missing.contains("name a folder"), "{missing}");
}

proptest! {
    #[test]
    fn any_document_is_found_by_any_word_that_it_alone_has(texts in proptest::collection::vec("[a-z ]{0,40}", 0..5)) {
        let mut texts: Vec<_> = texts.into_iter().zip(0..).map(|(text, at)| (format!("{at}"), text)).collect();
        texts.push(("x".to_owned(), "zyxwvut ".repeat(300)));
        prop_assert!(Documents::new(texts).search("zyxwvut").starts_with("## x\n"));
    }
}
