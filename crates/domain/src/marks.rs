//! Characters that nobody sees and that change how a line reads: controls, and marks of writing direction.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character turns the direction of what stands around it.
pub const fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with such characters as `\u` escapes. JSON, Turtle and N-Quads mean the same by them, and a terminal
/// nothing. Line breaks and other controls below the space are left to the format.
///
/// ```
/// use trellis_domain::marks::with_visible_marks;
///
/// assert_eq!(with_visible_marks("a\u{202e}b"), "a\\u202eb");
/// ```
pub fn with_visible_marks(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| is_direction_mark(c) || matches!(c, '\u{7f}'..='\u{9f}');
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hidden(c) {
            write!(visible, "\\u{:04x}", u32::from(c)).expect("writing into memory does not fail");
        } else {
            visible.push(c);
        }
    }
    Cow::Owned(visible)
}
