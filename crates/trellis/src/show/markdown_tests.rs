use super::Markdown;

/// As it is shown where nothing is coloured.
fn plain(text: &str, columns: usize) -> String {
    let mut markdown = Markdown::new(columns, /* ascii */ false);
    let lines = markdown.push(text) + &markdown.finish();
    anstream::adapter::strip_str(&lines).to_string()
}

const ANSWER: &str = "# Partner risk\n\nCompany X is **solid**, but `late` with _reports_ [finding 0].\nIt owes *little*.\n\n## Open\n\n\
- first point that is long enough to be wrapped\n  - inner\n1. one\n2. two\n\n> said by them\n> and more\n\n\
```rust\nlet x = 1;\n```\n\n| Area | Risk |\n|---|--:|\n| Finance | low |\n| 東京 | **high** |\n\nSee [the page](https://x.example/a) or <https://y.example>.\n---\nend";

#[test]
fn marks_become_looks_and_lines_are_wrapped() {
    let expected = "\
Partner risk
────────────

Company X is solid, but late with
reports [finding 0]. It owes little.

Open
────

• first point that is long enough to be
  wrapped
  • inner
1. one
2. two

│ said by them and more

    let x = 1;

Area    │ Risk
────────┼─────
Finance │  low
東京    │ high

See the page (https://x.example/a) or
https://y.example.
────────────────────────────────────────
end
";
    assert_eq!(plain(ANSWER, 40), expected);
}

#[test]
fn it_does_not_matter_how_the_text_comes() {
    let whole = plain(ANSWER, 40);
    for size in [1, 2, 7, 50] {
        let mut markdown = Markdown::new(40, /* ascii */ false);
        let letters: Vec<char> = ANSWER.chars().collect();
        let mut lines: String =
            letters.chunks(size).map(|piece| markdown.push(&piece.iter().collect::<String>())).collect();
        lines += &markdown.finish();
        assert_eq!(anstream::adapter::strip_str(&lines).to_string(), whole, "in pieces of {size}");
    }
}

#[test]
fn marks_that_nothing_closes_are_text() {
    for text in ["5 * 3 * 2", "snake_case_name", "a ** b", "**open", "`open", "[1] (p1)", "[a] b](c", "2 * (3 + 4)"] {
        assert_eq!(plain(text, 80), format!("{text}\n"));
    }
    assert_eq!(plain(r"\*not\* this", 80), "*not* this\n");
    assert_eq!(plain("**bold *and* more**", 80), "bold and more\n");
}

#[test]
fn looks_are_escape_sequences_of_ours_and_those_of_others_are_shown() {
    let mut markdown = Markdown::new(80, /* ascii */ false);
    let lines = markdown.push("a **b** \u{1b}[2J\u{9b}31m `c`\n\n");
    assert_eq!(lines, "a \u{1b}[1mb\u{1b}[0m ␛[2J\u{fffd}31m \u{1b}[36mc\u{1b}[0m\n");
}

#[test]
fn tables_fit_the_terminal_and_text_of_any_script_is_wrapped() {
    let table =
        "| Name | What is known of it |\n|---|---|\n| 東京タワー | A tower that was built long ago, and stands |\n";
    for columns in [20, 30, 50] {
        for line in plain(table, columns).lines() {
            assert!(crate::show::width(line) <= columns, "{line} in {columns}");
        }
    }
    assert_eq!(plain("東京の天気は晴れです。", 10), "東京の天気\nは晴れで\nす。\n");
    assert_eq!(plain("| a | no table |\n", 40), "| a | no table |\n");
}

#[test]
fn plain_marks_are_ascii() {
    let mut markdown = Markdown::new(40, /* ascii */ true);
    let lines = markdown.push("# T\n\n- a\n\n> b\n\n| a | b |\n|---|---|\n| c | d |\n\n---\n") + &markdown.finish();
    assert!(lines.is_ascii(), "{lines}");
}
