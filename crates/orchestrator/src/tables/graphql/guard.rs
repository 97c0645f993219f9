//! What a parser is not given: queries that are too long or too deep.

use super::GraphqlError;

/// Bytes of a query.
pub(super) const LONGEST: usize = 32 << 10;
/// Brackets within brackets. What can be asked needs five or six.
const DEEPEST: usize = 16;

pub(super) fn check(query: &str) -> Result<(), GraphqlError> {
    if query.len() > LONGEST {
        let size = query.len();
        return Err(GraphqlError::new(format!("the query has {size} bytes; write at most {LONGEST}")));
    }
    let mut depth: usize = 0;
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            '{' | '[' | '(' => {
                depth += 1;
                if depth > DEEPEST {
                    return Err(GraphqlError::new(format!("the query is nested deeper than {DEEPEST} brackets")));
                }
            }
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            '#' => rest = rest.find('\n').map_or("", |end| &rest[end..]),
            '"' => rest = behind_text(rest),
            _ => {}
        }
    }
    Ok(())
}

/// What follows a text that has just begun.
fn behind_text(rest: &str) -> &str {
    if let Some(block) = rest.strip_prefix("\"\"") {
        return block.find("\"\"\"").map_or("", |end| &block[end + 3..]);
    }
    let mut is_escaped = false;
    for (place, character) in rest.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' | '\n' => return &rest[place + 1..],
            _ => {}
        }
    }
    ""
}
