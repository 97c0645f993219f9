//! JSON that callers send.

use crate::bounds;
use serde_json::Value;

/// Why something is not read as JSON.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonError {
    #[error("it has more than {} values", bounds::VALUES)]
    TooManyValues,
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
}

/// Reads JSON that does not become many times larger in memory than it is as a text.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, JsonError> {
    check_values(bytes)?;
    Ok(serde_json::from_slice(bytes)?)
}

/// That JSON which somebody else reads has not too many values.
pub(crate) fn check_values(bytes: &[u8]) -> Result<(), JsonError> {
    if has_too_many_values(bytes) { Err(JsonError::TooManyValues) } else { Ok(()) }
}

/// Values are behind commas, colons and brackets. In texts these mean nothing.
fn has_too_many_values(bytes: &[u8]) -> bool {
    if bytes.len() <= bounds::VALUES {
        return false;
    }
    let (mut values, mut in_text, mut escaped) = (0, false, false);
    for byte in bytes {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b',' | b':' | b'[' | b'{') => {
                values += 1;
                if values > bounds::VALUES {
                    return true;
                }
            }
            (true | false, _) => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_are_refused_and_long_texts_are_not() {
        let many = format!("[{}0]", "0,".repeat(bounds::VALUES + 1));
        assert!(matches!(read(many.as_bytes()), Err(JsonError::TooManyValues)));
        let some = format!("[{}0]", "0,".repeat(bounds::VALUES - 1));
        assert!(read(some.as_bytes()).is_ok());
        let long = serde_json::json!({"text": "\\\",[{:".repeat(bounds::VALUES)});
        assert_eq!(read(long.to_string().as_bytes()).unwrap(), long);
        assert!(matches!(read(b"{"), Err(JsonError::Syntax(_))));
    }
}
