//! Bytes as text.

use crate::{LARGEST_TEXT, at_most};
use trellis_orchestrator::ports::ReadError;

/// Bytes of a page in which it has to say how it is written.
const HEAD: usize = 1024;
/// Most letters of an encoding's name.
const LONGEST_NAME: usize = 40;

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

/// UTF-8 with or without a mark, UTF-16 with one, and windows-1252 where somebody says that it is that. Nothing is guessed:
/// wrong letters would be found by nobody.
pub(crate) fn decode<'c>(content: &'c [u8], charset: Option<&str>) -> Result<Decoded<'c>, ReadError> {
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
        Err(error) => match charset.filter(|charset| !is_unicode(charset)) {
            Some(charset) if is_western(charset) => from_western(content).map(Decoded::Converted),
            Some(charset) => Err(ReadError::Unreadable(format!(
                "its text is written in {charset}, which is not read; save it as UTF-8"
            ))),
            None => Err(not_unicode(content, error.valid_up_to())),
        },
    }
}

/// What a type such as `text/html; charset=iso-8859-1` says about the letters.
pub(crate) fn charset_of(kind: &str) -> Option<String> {
    kind.to_ascii_lowercase().split(';').find_map(|part| name_in(part.trim().strip_prefix("charset=")?))
}

/// The same, by the head of a page.
pub(crate) fn charset_in(page: &[u8]) -> Option<String> {
    let head: String = page.iter().take(HEAD).map(|byte| char::from(*byte).to_ascii_lowercase()).collect();
    let in_tag = |tag: &str| name_in(tag.split('>').next()?.split_once("charset=")?.1);
    head.split("<meta").skip(1).find_map(in_tag)
}

fn name_in(said: &str) -> Option<String> {
    let is_of_name = |c: &char| c.is_ascii_alphanumeric() || ['-', '_'].contains(c);
    let name: String =
        said.trim_start_matches(['"', '\'', ' ']).chars().take_while(is_of_name).take(LONGEST_NAME).collect();
    (!name.is_empty()).then_some(name)
}

/// Whoever says so and writes something else has not saved it as they think.
fn is_unicode(charset: &str) -> bool {
    ["utf-8", "utf8", "utf-16", "unicode"].contains(&charset)
}

/// Browsers read all of these in the same way, and pages are written for browsers.
fn is_western(charset: &str) -> bool {
    ["windows-1252", "cp1252", "iso-8859-1", "iso8859-1", "latin1", "latin-1", "us-ascii", "ascii"].contains(&charset)
}

fn from_western(content: &[u8]) -> Result<String, ReadError> {
    // A byte may become three.
    at_most("the text", content.len(), LARGEST_TEXT)?;
    let letter = |&byte: &u8| match byte {
        0x80..=0x9f => WESTERN[usize::from(byte - 0x80)],
        _ => char::from(byte),
    };
    Ok(content.iter().map(letter).collect())
}

/// Bytes from 0x80 on in windows-1252, where it is not Latin-1.
const WESTERN: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// With what it may be instead, for whoever knows.
fn not_unicode(content: &[u8], at: usize) -> ReadError {
    let is_like_text = |byte: &u8| *byte >= 0xa0 || byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let may_be = if content.iter().all(is_like_text) { ". It looks like Latin-1 (iso-8859-1)" } else { "" };
    ReadError::Unreadable(format!("its text is not UTF-8: byte {at} cannot be read; save it as UTF-8{may_be}"))
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
        assert_eq!(decode("grün".as_bytes(), None), Ok(Decoded::AsItIs("grün")));
        assert_eq!(decode("\u{feff}grün".as_bytes(), None), Ok(Decoded::AsItIs("\u{feff}grün")));
        let wide = |mark: u16, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            [mark].into_iter().chain("grün 🌱".encode_utf16()).flat_map(bytes).collect()
        };
        for content in [wide(0xfeff, u16::to_le_bytes), wide(0xfeff, u16::to_be_bytes)] {
            assert_eq!(decode(&content, None), Ok(Decoded::Converted("grün 🌱".to_owned())));
        }
        assert_eq!(decode(b"", None), Ok(Decoded::AsItIs("")));
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
            let error = decode(content, None).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn what_somebody_says_about_the_letters_counts_where_they_are_not_utf_8() {
        for charset in ["iso-8859-1", "windows-1252", "latin1"] {
            let read = decode(b"gr\xfcn, 5\x80 \x96 \x81", Some(charset));
            assert_eq!(read, Ok(Decoded::Converted("grün, 5€ – \u{81}".to_owned())));
        }
        assert_eq!(
            decode("grün".as_bytes(), Some("iso-8859-1")),
            Ok(Decoded::AsItIs("grün")),
            "it is UTF-8 all the same"
        );
        for (content, charset, reason) in [
            (b"\x83\x65".as_slice(), Some("shift_jis"), "written in shift_jis"),
            (b"gr\xfcn", Some("utf-8"), "byte 2"),
            (b"gr\xfcn", None, "looks like Latin-1"),
            (b"a\0\xfc", Some("latin1"), "no text"),
        ] {
            let error = decode(content, charset).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let other = decode(b"gr\x81\xfcn", None).unwrap_err().to_string();
        assert!(!other.contains("Latin-1"), "nothing is said of what it may be: {other}");
        let large = vec![0x80_u8; LARGEST_TEXT + 1];
        assert!(matches!(decode(&large, Some("latin1")), Err(ReadError::TooLarge { what: "the text", .. })));
    }

    #[test]
    fn types_and_pages_say_how_they_are_written() {
        let of = |kind: &str| charset_of(kind).unwrap_or_default();
        assert_eq!(of("Text/HTML; Charset=\"ISO-8859-1\"; x=y"), "iso-8859-1");
        assert_eq!((of("text/html"), of("text/html; charset=")), (String::new(), String::new()));
        let within = |page: &str| charset_in(page.as_bytes()).unwrap_or_default();
        assert_eq!(within("<!doctype html><META CHARSET=Latin1><meta charset=x>"), "latin1");
        let equivalent = "<meta name=a><meta http-equiv=Content-Type content='text/html; charset=windows-1252'>";
        assert_eq!(within(equivalent), "windows-1252");
        assert_eq!(within("<p>charset=x</p><meta name=y>charset=z"), "");
        assert_eq!(within(&format!("{}<meta charset=x>", " ".repeat(HEAD))), "", "too late");
        assert_eq!(within(&format!("<meta charset={}>", "x".repeat(900))).len(), LONGEST_NAME);
    }
}
