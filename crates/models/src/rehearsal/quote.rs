//! What the script takes over from results: their own lines and their own signals, never more.

use super::line;

/// The signals that the sample data ends with, from good to bad.
pub(super) const SIGNALS: [&str; 3] = ["low", "moderate", "elevated"];
/// How much of a result is quoted: of its points, or of its beginning if it makes none.
const QUOTED_POINTS: usize = 12;
const QUOTED_LINES: usize = 6;
pub(super) const QUOTED_CHARACTERS: usize = 300;

/// Where the stated signal stands between good and bad.
pub(super) fn signal(text: &str) -> Option<usize> {
    let stated = |line: &str| {
        let line = line.trim();
        let rest = line.strip_prefix("Signal:").or_else(|| line.strip_prefix("**Overall:"))?;
        let word = rest.split_whitespace().next()?.trim_matches('*');
        SIGNALS.iter().position(|signal| *signal == word)
    };
    text.lines().rev().find_map(stated)
}

/// The worst of the stated signals.
pub(super) fn worst<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    texts.into_iter().filter_map(signal).max().map(|worst| SIGNALS[worst])
}

/// The points that a text makes, or its beginning if it makes none; with its own label if it has one.
pub(super) fn findings(text: &str) -> String {
    let points = points(text);
    if points.is_empty() {
        return quotation(text);
    }
    labelled(text, &points)
}

/// The points under the label that says where they are from.
pub(super) fn labelled(text: &str, points: &[String]) -> String {
    let label = text.lines().find(|line| line.starts_with("Sample data"));
    let label = label.map(|label| format!("{}\n\n", defused(label))).unwrap_or_default();
    let (quoted, more) = points.split_at(points.len().min(QUOTED_POINTS));
    let more = if more.is_empty() { String::new() } else { format!("\n- (and {} more)", more.len()) };
    format!("{label}{}{more}", quoted.join("\n"))
}

/// The lines of the lists in a text. What it says about its own findings is left to it: their numbers mean something
/// else outside.
pub(super) fn points(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).take_while(|line| !line.ends_with("# Confidence"));
    lines.filter(|line| line.starts_with("- ")).map(defused).collect()
}

pub(super) fn quotation(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(QUOTED_LINES);
    lines.map(|line| format!("> {}", defused(line))).collect::<Vec<_>>().join("\n")
}

/// One line without square brackets, which would read as citations of the text that quotes it.
pub(super) fn defused(text: &str) -> String {
    line(text, QUOTED_CHARACTERS).replace('[', "(").replace(']', ")")
}
