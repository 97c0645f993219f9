use super::*;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// A reply read in pieces: what was shown per channel, and what it says.
#[derive(Debug, PartialEq)]
struct Reading {
    thought: String,
    answer: String,
    reply: ReactReply,
}

fn read_pieces<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Reading {
    let mut parser = ReplyParser::new();
    let mut shown: Vec<Fragment> = pieces.into_iter().flat_map(|piece| parser.push(piece)).collect();
    let (rest, reply) = parser.finish();
    shown.extend(rest);
    assert!(shown.iter().all(|fragment| !fragment.text.is_empty()), "an empty fragment was shown: {shown:?}");
    Reading { thought: shown_on(Channel::Thought, &shown), answer: shown_on(Channel::Answer, &shown), reply }
}

fn shown_on(channel: Channel, shown: &[Fragment]) -> String {
    shown.iter().filter(|fragment| fragment.channel == channel).map(|fragment| fragment.text.as_str()).collect()
}

fn chars(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(|_: char| true)
}

/// Cuts at character boundaries; each size gives the number of characters of a piece, in turn.
fn cut<'a>(text: &'a str, sizes: &[usize]) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        let end = rest.char_indices().nth(*size).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    pieces
}

/// Pseudo-random sizes from 1 to `largest`, always the same for the same seed.
fn sizes(seed: u64, largest: u64) -> Vec<usize> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % largest + 1).expect("a piece is small")
    };
    (0..32).map(|_| next()).collect()
}

fn check_shown_is_said(reading: &Reading) {
    assert_eq!(reading.thought, reading.reply.thought());
    let said = match &reading.reply {
        ReactReply::Answer { answer, .. } => answer.as_str(),
        ReactReply::Action { .. } | ReactReply::Unreadable { .. } => "",
    };
    assert_eq!(reading.answer, said);
}

fn thought_of(reply: &str) -> String {
    read(reply).thought().to_owned()
}

fn answer_of(reply: &str) -> String {
    match read(reply) {
        ReactReply::Answer { answer, .. } => answer,
        other @ (ReactReply::Action { .. } | ReactReply::Unreadable { .. }) => panic!("not an answer: {other:?}"),
    }
}

fn thought_fragment(text: &str) -> Vec<Fragment> {
    vec![Fragment { channel: Channel::Thought, text: text.to_owned() }]
}

fn answer_fragment(text: &str) -> Vec<Fragment> {
    vec![Fragment { channel: Channel::Answer, text: text.to_owned() }]
}

mod corpus {
    use super::*;

    struct Sample {
        name: String,
        reply: String,
        expected: ReactReply,
    }

    fn samples() -> Vec<Sample> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let entries = fs::read_dir(folder).expect("the corpus is beside the sources");
        let paths = entries.map(|entry| entry.expect("the corpus is readable").path());
        let mut samples: Vec<Sample> = paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
            .map(|path| sample(&path))
            .collect();
        samples.sort_by(|a, b| a.name.cmp(&b.name));
        samples
    }

    fn sample(path: &Path) -> Sample {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).expect("a sample is text");
        let (reply, expected) =
            text.rsplit_once("\n=====\n").unwrap_or_else(|| panic!("{name} has no line of five equal signs"));
        let expected = serde_json::from_str(expected).unwrap_or_else(|error| panic!("{name}: {error}"));
        Sample { name, reply: reply.to_owned(), expected }
    }

    #[test]
    fn every_sample_reads_as_expected() {
        let samples = samples();
        assert!(samples.len() >= 40, "only {} samples were found", samples.len());
        for Sample { name, reply, expected } in samples {
            assert_eq!(read(&reply), expected, "{name}");
        }
    }

    #[test]
    fn every_sample_reads_the_same_in_pieces() {
        for Sample { name, reply, expected } in samples() {
            let whole = read_pieces([reply.as_str()]);
            check_shown_is_said(&whole);
            assert_eq!(whole.reply, expected, "{name}");
            assert_eq!(read_pieces(chars(&reply)), whole, "{name} character by character");
            for seed in 0..20 {
                let sizes = sizes(seed, 2 + seed);
                assert_eq!(read_pieces(cut(&reply, &sizes)), whole, "{name} in pieces of {sizes:?}");
            }
        }
    }

    #[test]
    fn every_sample_reads_the_same_cut_in_two_anywhere() {
        for Sample { name, reply, .. } in samples() {
            let whole = read_pieces([reply.as_str()]);
            for (at, _) in reply.char_indices() {
                assert_eq!(read_pieces([&reply[..at], &reply[at..]]), whole, "{name} cut at {at}");
            }
        }
    }
}

mod streaming {
    use super::*;

    #[test]
    fn thought_is_shown_line_by_line_before_the_end() {
        let mut parser = ReplyParser::new();
        assert_eq!(parser.push("Thought: One line.\n"), thought_fragment("One line."));
        assert_eq!(parser.push("  Second line. \n\n"), thought_fragment(" Second line."));
        assert_eq!(parser.push("third"), thought_fragment(" third"));
    }

    #[test]
    fn thought_is_shown_within_a_word() {
        let mut parser = ReplyParser::new();
        assert_eq!(parser.push("Thought: hel"), thought_fragment("hel"));
        assert_eq!(parser.push("lo"), thought_fragment("lo"));
    }

    #[test]
    fn space_between_pieces_is_never_lost() {
        let mut parser = ReplyParser::new();
        parser.push("Thought: two ");
        assert_eq!(parser.push("words"), thought_fragment(" words"));
    }

    #[test]
    fn line_start_is_held_back_only_while_it_may_be_a_keyword() {
        let mut parser = ReplyParser::new();
        assert_eq!(parser.push("Thought: hm\nFinal An"), thought_fragment("hm"));
        assert_eq!(parser.push("swer"), []);
        assert_eq!(parser.push("s"), thought_fragment(" Final Answers"));
    }

    #[test]
    fn answer_is_shown_as_it_arrives() {
        let mut parser = ReplyParser::new();
        assert_eq!(parser.push("Final Answer: "), []);
        assert_eq!(parser.push("Action: a\n\n"), answer_fragment("Action: a"));
        assert_eq!(parser.push("```"), answer_fragment("\n\n```"));
    }

    #[test]
    fn one_piece_may_show_both_channels_in_order() {
        let shown = ReplyParser::new().push("Thought: a\nFinal Answer: b");
        assert_eq!(shown, [thought_fragment("a"), answer_fragment("b")].concat());
    }

    #[test]
    fn wrapped_answer_holds_back_only_a_fence_that_may_close_the_wrapper() {
        let mut parser = ReplyParser::new();
        assert_eq!(parser.push("```\nFinal Answer: a\n```"), answer_fragment("a"));
        assert_eq!(parser.push("sh\nls\n```"), answer_fragment("\n```sh\nls\n```"));
        assert_eq!(parser.push("\n```\n"), []);
        assert_eq!(parser.push("b"), answer_fragment("\n```\nb"));
    }

    #[test]
    fn action_shows_nothing_but_its_thought() {
        let reading = read_pieces(chars("Thought: t\nAction: f\nArgs: {}\nFinal Answer: 4"));
        assert_eq!((reading.thought.as_str(), reading.answer.as_str()), ("t", ""));
    }
}

mod long_replies {
    use super::*;

    /// Would take many minutes if text were looked at again for every character that arrives.
    #[test]
    fn megabyte_fed_by_character_is_read_at_once() {
        let answer = "some words\n".repeat(100_000);
        let reading = read_pieces(chars(&format!("Thought: t\nFinal Answer: {answer}")));
        assert_eq!(reading.answer, answer.trim_end());
    }

    /// Text that is held back in one place or another for as long as it lasts.
    #[test]
    fn monotonous_text_is_read_in_every_section() {
        let beginnings =
            ["", "Thought: ", "Final Answer: ", "```\nFinal Answer: ", "Action: ", "Action: f\nArgs: ", "Args: {\""];
        let fillings = ["\n", " ", "`", "word ", "Action\n", "```\n", "{"];
        for (beginning, filling) in beginnings.into_iter().flat_map(|beginning| fillings.map(|f| (beginning, f))) {
            let reply = format!("{beginning}{}", filling.repeat(5_000));
            check_shown_is_said(&read_pieces(chars(&reply)));
        }
    }

    #[test]
    fn deeply_nested_arguments_are_refused_without_harm() {
        let reply = format!("Action: f\nArgs: {}{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        assert!(matches!(read(&reply), ReactReply::Unreadable { .. }));
    }
}

mod properties {
    use super::*;
    use proptest::collection::{hash_map, vec};
    use proptest::sample::select;
    use serde_json::{Map, Value};

    /// What replies are made of, and what is easily taken for it.
    const PARTS: &str = concat!(
        "Thought:|Action:|Args:|Final Answer:|Observation:|\nThought: |\nAction: |\nArgs: |\nFinal Answer: |",
        "\nObservation: |\n|\n|\r\n|\r| |  |\t|\u{a0}|```|\n```\n|```json\n|\n```|`|{|}|{\"a\": 1}|\"|\\|[|:|,|word|",
        "two words|Act|Fin|Final |é|👍🏽|\u{2028}|\u{200b}",
    );

    fn reply_like() -> impl Strategy<Value = String> {
        let beginning = select(vec!["", "Thought: ", "Action: f", "```\n", "```text\nFinal Answer: "]);
        let known_part = select(PARTS.split('|').collect::<Vec<_>>()).prop_map(str::to_owned);
        let part = prop_oneof![8 => known_part, 1 => any::<String>()];
        (beginning, vec(part, 0..30)).prop_map(|(beginning, parts)| format!("{beginning}{}", parts.concat()))
    }

    /// Lines in which no keyword starts and which no fence opens.
    fn prose() -> impl Strategy<Value = String> {
        vec("[a-z :{}\"\t]{0,12}(\n|\r\n|)", 0..8).prop_map(|lines| lines.concat())
    }

    fn json_object() -> impl Strategy<Value = Map<String, Value>> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from)
        ];
        let value = leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                hash_map(any::<String>(), inner, 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        });
        hash_map(any::<String>(), value, 0..4).prop_map(|fields| fields.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

        #[test]
        fn pieces_never_change_the_reading(reply in reply_like(), sizes in vec(1..12_usize, 1..12)) {
            let whole = read_pieces([reply.as_str()]);
            check_shown_is_said(&whole);
            prop_assert_eq!(&read_pieces(chars(&reply)), &whole);
            prop_assert_eq!(&read_pieces(cut(&reply, &sizes)), &whole);
            prop_assert_eq!(&read(&reply), &whole.reply);
        }

        #[test]
        fn shown_text_is_trimmed(reply in reply_like()) {
            let reading = read_pieces([reply.as_str()]);
            prop_assert_eq!(reading.thought.trim(), &reading.thought);
            prop_assert_eq!(reading.answer.trim(), &reading.answer);
            prop_assert!(!reading.thought.contains('\n'));
        }

        #[test]
        fn answer_is_kept_to_the_letter(text in reply_like()) {
            prop_assume!(!text.trim().is_empty());
            let reply = format!("Final Answer:{text}");
            prop_assert_eq!(answer_of(&reply), text.trim());
        }

        #[test]
        fn thought_is_its_trimmed_lines_joined(text in prose()) {
            let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            let reply = format!("Thought:{text}\nFinal Answer: x");
            prop_assert_eq!(thought_of(&reply), lines.join(" "));
        }

        #[test]
        fn wrapper_changes_nothing(thought in prose(), answer in prose(), blocks in 0..3_usize) {
            let code = "\n```sh\nls\n```".repeat(blocks);
            let reply = format!("Thought: {thought}\nFinal Answer: {answer}{code}");
            prop_assert_eq!(read(&format!("\n```text\n{reply}\n```\n")), read(&reply));
        }

        #[test]
        fn arguments_survive_however_they_are_laid_out(arguments in json_object(), after in reply_like()) {
            let compact = serde_json::to_string(&arguments)?;
            let pretty = serde_json::to_string_pretty(&arguments)?;
            let expected = ReactReply::Action { thought: String::new(), tool: "f".into(), arguments, also: Vec::new() };
            prop_assert_eq!(&read(&format!("Action: f\nArgs: {compact}{after}")), &expected);
            prop_assert_eq!(&read(&format!("Action: f Args:\n{pretty}\n{after}")), &expected);
            prop_assert_eq!(&read(&format!("Action: f\nArgs:\n```json\n{pretty}\n```{after}")), &expected);
        }
    }
}
