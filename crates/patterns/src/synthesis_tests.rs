//! Citations are what the text itself says it rests on, as far as it names something that exists.

use super::*;

fn cited(text: &str, known: &[u32]) -> Vec<(u32, Option<String>)> {
    let citations = read(text, known, Vec::new()).citations;
    citations.into_iter().map(|citation| (citation.index, citation.confidence)).collect()
}

fn numbers(text: &str) -> Vec<u32> {
    cited(text, &[0, 1, 2, 3]).into_iter().map(|(index, _)| index).collect()
}

#[test]
fn the_whole_text_is_the_answer_as_it_was_streamed() {
    let text = "\n Calm seas [finding 0].\n\nFar out.\n";
    let read = read(text, &[0], Vec::new());
    assert_eq!(read.reading, Reading::answered(text));
    assert_eq!(read.thought, None);
}

#[test]
fn an_empty_reply_is_no_answer() {
    for reply in ["", " \n\t "] {
        assert!(matches!(read(reply, &[], Vec::new()).reading, Reading::Unusable { .. }));
    }
}

#[test]
fn findings_and_steps_are_cited_in_brackets() {
    assert_eq!(numbers("Rising [finding 2] and falling [Step 0]."), [0, 2]);
    assert_eq!(numbers("Both [findings 1, 3] and [steps 0; 2]."), [0, 1, 2, 3]);
    assert_eq!(numbers("Short [1], with a mark [#2], spaced [ finding  #3 ]."), [1, 2, 3]);
}

#[test]
fn each_is_cited_once() {
    assert_eq!(numbers("[1] and [1]\nand [finding 1]"), [1]);
}

#[test]
fn what_does_not_exist_is_not_cited() {
    assert_eq!(numbers("[7], [finding 99], [-1], [1.5], [99999999999999999999]"), [0u32; 0]);
}

#[test]
fn other_brackets_are_no_citations() {
    assert_eq!(numbers("[see below], [1](https://example.org), finding 1, (2), a[, [unclosed 1"), [0u32; 0]);
    assert_eq!(numbers("[[2]]"), [2]);
}

#[test]
fn confidence_is_what_stands_on_the_same_line() {
    let text = "- Debt is high [finding 0] (confidence: high)\n- Suppliers are few [finding 1], Confidence = 0.8.\n- \
                **Confidence:** low [finding 2]\n- Unsaid [finding 3]";
    let stated = |word: &str| Some(word.to_owned());
    assert_eq!(cited(text, &[0, 1, 2, 3]), [(0, stated("high")), (1, stated("0.8")), (2, stated("low")), (3, None)]);
}

#[test]
fn the_first_confidence_that_is_stated_for_a_finding_counts() {
    let text = "Said [1].\nAgain [1] confidence 70%\nLater [1] confidence low";
    assert_eq!(cited(text, &[1]), [(1, Some("70%".to_owned()))]);
}

#[test]
fn confidence_without_a_word_behind_it_is_none() {
    assert_eq!(cited("[1] confidence", &[1]), [(1, None)]);
    assert_eq!(cited("[1] confidence: …", &[1]), [(1, None)]);
}

#[test]
fn a_sentence_about_confidence_states_only_a_level() {
    let level = |text: &str| cited(text, &[1]).remove(0).1;
    assert_eq!(level("Confidence in this is shaken [1]."), None);
    assert_eq!(level("With high confidence, debt rises [1]."), Some("high".to_owned()));
    assert_eq!(level("Debt rises [1] (80% confidence)."), Some("80%".to_owned()));
    assert_eq!(level("Confidence: unknown [1]."), Some("unknown".to_owned()));
}

#[test]
fn letters_that_change_their_length_in_lower_case_do_no_harm() {
    assert_eq!(cited("İİİİ [1] confidence: hoch", &[1]), [(1, Some("hoch".to_owned()))]);
    assert_eq!(cited("confidence: höher [1]", &[1]), [(1, Some("höher".to_owned()))]);
}
