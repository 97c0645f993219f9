//! Somebody else's words, as people may be shown them.

/// Somebody else's words for people, without what steers a terminal, changes the direction of a text or shows nothing.
///
/// ```
/// use trellis_domain::plain_lines;
///
/// assert_eq!(plain_lines("a\u{1b}[2J\r\nb\u{202e}c"), "a [2J \nb c");
/// ```
pub fn plain_lines(text: &str) -> String {
    let hides =
        |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    text.chars().map(|c| if c != '\n' && (c.is_control() || hides(c)) { ' ' } else { c }).collect()
}
