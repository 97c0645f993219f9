//! Bytes as text.

use trellis_orchestrator::ports::ReadError;

/// A file's text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded<'a> {
    /// The file is the text, byte for byte.
    AsItIs(&'a str),
    Converted(String),
}

impl Decoded<'_> {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::AsItIs(text) => text,
            Self::Converted(text) => text,
        }
    }
}

/// UTF-8 with or without a mark, and UTF-16 with one. Nothing is guessed: wrong letters would be found by nobody.
pub(crate) fn decode(content: &[u8]) -> Result<Decoded<'_>, ReadError> {
    let wide: Option<fn([u8; 2]) -> u16> = match content {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    };
    if let Some(unit) = wide {
        return from_utf16(&content[2..], unit).map(Decoded::Converted);
    }
    match str::from_utf8(content) {
        Ok(text) if text.contains('\0') => Err(binary()),
        Ok(text) => Ok(Decoded::AsItIs(text)),
        Err(_) if content.contains(&0) => Err(binary()),
        Err(error) => Err(ReadError::Unreadable(format!(
            "its text is not UTF-8: byte {} cannot be read; save it as UTF-8",
            error.valid_up_to()
        ))),
    }
}

fn from_utf16(content: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, ReadError> {
    let (pairs, rest) = content.as_chunks::<2>();
    let text: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    match text {
        Ok(text) if rest.is_empty() && !text.contains('\0') => Ok(text),
        Ok(_) | Err(_) => Err(ReadError::Unreadable("it begins like UTF-16 and is not; save it as UTF-8".to_owned())),
    }
}

fn binary() -> ReadError {
    ReadError::Unreadable("it contains bytes that are no text; name its type if it is no text file".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_8_stays_as_it_is_and_utf_16_is_converted() {
        assert_eq!(decode("grün".as_bytes()), Ok(Decoded::AsItIs("grün")));
        assert_eq!(decode("\u{feff}grün".as_bytes()), Ok(Decoded::AsItIs("\u{feff}grün")));
        let wide = |mark: u16, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            [mark].into_iter().chain("grün 🌱".encode_utf16()).flat_map(bytes).collect()
        };
        for content in [wide(0xfeff, u16::to_le_bytes), wide(0xfeff, u16::to_be_bytes)] {
            assert_eq!(decode(&content), Ok(Decoded::Converted("grün 🌱".to_owned())));
        }
        assert_eq!(decode(b""), Ok(Decoded::AsItIs("")));
    }

    #[test]
    fn what_is_no_text_is_refused_with_a_reason() {
        for (content, reason) in [
            (b"gr\xfcn".as_slice(), "byte 2"),
            (b"\x89PNG\0\x01", "no text"),
            (b"a\0b", "no text"),
            (b"\xff\xfea", "UTF-16"),
            (b"\xff\xfe\x00\xd8", "UTF-16"),
        ] {
            let error = decode(content).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
