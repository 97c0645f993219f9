use super::*;

fn spoken(text: &str, piece: usize) -> String {
    let mut thinking = Thinking::default();
    let pieces: Vec<char> = text.chars().collect();
    let mut spoken: String = pieces.chunks(piece).map(|piece| thinking.spoken(piece.iter().collect())).collect();
    spoken.push_str(&thinking.rest());
    spoken
}

#[test]
fn what_is_thought_is_left_out_however_the_text_is_cut() {
    for (text, expected) in [
        ("<think>Hm, 1 < 2 </thin ö</think>\n\nForty-two.", "Forty-two."),
        ("\n <thinking>So.\n</thinking>Forty\n two.", "Forty\n two."),
        ("<think></think>{\"a\": \"<think>no</think>\"}", "{\"a\": \"<think>no</think>\"}"),
        ("<think>never done", ""),
        ("<think>done</think>  \n", ""),
        ("<thin air> is <think>no tag</think>", "<thin air> is <think>no tag</think>"),
        ("  <th", "  <th"),
        ("Say <think>x</think>.", "Say <think>x</think>."),
        ("", ""),
    ] {
        for piece in 1..=text.chars().count().max(1) {
            assert_eq!(spoken(text, piece), expected, "{text:?} in pieces of {piece}");
        }
    }
}

#[test]
fn thinking_takes_no_memory() {
    let mut thinking = Thinking::default();
    assert_eq!(thinking.spoken("<think>".to_owned()), "");
    for _ in 0..1000 {
        assert_eq!(thinking.spoken("so and so ".to_owned()), "");
        assert!(thinking.take_thought().len() < 20, "whoever wants it takes it");
    }
    let State::Inside { tail, .. } = thinking.state else { panic!("{thinking:?}") };
    assert!(tail.len() < 8, "{tail}");
}

#[test]
fn space_without_end_is_not_held_back() {
    let mut thinking = Thinking::default();
    let spoken: usize = (0..1000).map(|_| thinking.spoken(" ".repeat(100)).len()).sum();
    assert_eq!(spoken, 100_000);
}

#[test]
fn thinking_whose_beginning_is_not_marked_is_found_by_its_end() {
    assert_eq!(behind_thinking("Hm. Final Answer: 41\n</think>\n\nForty-two."), Some("Forty-two."));
    assert_eq!(behind_thinking("</think>\n\nForty-two."), Some("Forty-two."));
    for text in ["Use </think> to end it.", "<think>a\n</think>\nb", "Forty-two.", "one\n</think> two"] {
        assert_eq!(behind_thinking(text), None, "{text}");
    }
}
