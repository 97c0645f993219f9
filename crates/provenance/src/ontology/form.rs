//! What an untyped literal looks like.

use oxrdf::NamedNode;
use serde::de::IgnoredAny;
use std::fmt;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
const JSON: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON";

/// The datatypes whose written form our literals can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    NonNegativeInteger,
    PositiveInteger,
    /// In UTC, with a trailing `Z`.
    DateTime,
    HexBinary,
    AnyUri,
    Json,
}

impl Form {
    pub(super) fn of(datatype: &str) -> Option<Self> {
        if datatype == JSON {
            return Some(Self::Json);
        }
        match datatype.strip_prefix(XSD)? {
            "nonNegativeInteger" => Some(Self::NonNegativeInteger),
            "positiveInteger" => Some(Self::PositiveInteger),
            "dateTime" => Some(Self::DateTime),
            "hexBinary" => Some(Self::HexBinary),
            "anyURI" => Some(Self::AnyUri),
            _ => None,
        }
    }

    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Self::NonNegativeInteger => is_number(text),
            Self::PositiveInteger => is_number(text) && text.bytes().any(|digit| digit != b'0'),
            Self::DateTime => is_time(text),
            Self::HexBinary => text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            Self::AnyUri => NamedNode::new(text).is_ok(),
            Self::Json => serde_json::from_str::<IgnoredAny>(text).is_ok(),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NonNegativeInteger => "a whole number",
            Self::PositiveInteger => "a whole number above 0",
            Self::DateTime => "a time in UTC",
            Self::HexBinary => "pairs of hexadecimal digits",
            Self::AnyUri => "an IRI",
            Self::Json => "JSON",
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_time(text: &str) -> bool {
    let Some(text) = text.strip_suffix('Z') else { return false };
    let (seconds, fraction) = text.split_once('.').map_or((text, "0"), |(seconds, fraction)| (seconds, fraction));
    has_shape(seconds, "0000-00-00T00:00:00") && is_number(fraction)
}

/// Whether a text is like its shape, in which 0 stands for any digit.
fn has_shape(text: &str, shape: &str) -> bool {
    let fits = |(byte, like): (u8, u8)| if like == b'0' { byte.is_ascii_digit() } else { byte == like };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}
