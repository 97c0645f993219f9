//! The formats that are understood.

use oxrdfio::{JsonLdProfileSet, RdfFormat};
use std::fmt;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    Turtle,
    NTriples,
    NQuads,
    TriG,
    JsonLd,
    RdfXml,
}

impl Format {
    pub const ALL: [Self; 6] = [Self::Turtle, Self::NTriples, Self::NQuads, Self::TriG, Self::JsonLd, Self::RdfXml];

    /// The name that flags and requests use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Turtle => "turtle",
            Self::NTriples => "n-triples",
            Self::NQuads => "n-quads",
            Self::TriG => "trig",
            Self::JsonLd => "json-ld",
            Self::RdfXml => "rdf-xml",
        }
    }

    /// How files of this format end.
    pub const fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Turtle => &["ttl"],
            Self::NTriples => &["nt"],
            Self::NQuads => &["nq"],
            Self::TriG => &["trig"],
            Self::JsonLd => &["jsonld"],
            Self::RdfXml => &["rdf", "owl"],
        }
    }

    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Turtle => "text/turtle",
            Self::NTriples => "application/n-triples",
            Self::NQuads => "application/n-quads",
            Self::TriG => "application/trig",
            Self::JsonLd => "application/ld+json",
            Self::RdfXml => "application/rdf+xml",
        }
    }

    /// By name, by the end of a file's name, or by media type, whatever its parameters.
    pub fn named(text: &str) -> Option<Self> {
        let text = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is = |format: &Self| {
            text == format.name() || text == format.media_type() || format.extensions().contains(&text.as_str())
        };
        Self::ALL.into_iter().find(is)
    }

    /// The format of a file, by its name.
    pub fn of_file(path: &Path) -> Option<Self> {
        let end = path.extension()?.to_str()?.to_ascii_lowercase();
        Self::ALL.into_iter().find(|format| format.extensions().contains(&end.as_str()))
    }

    /// All of them, as a message lists them.
    pub fn list() -> String {
        let known = |format: Self| format!("{} (.{})", format.name(), format.extensions().join(", ."));
        Self::ALL.map(known).join(", ")
    }

    pub(crate) fn grammar(self) -> RdfFormat {
        match self {
            Self::Turtle => RdfFormat::Turtle,
            Self::NTriples => RdfFormat::NTriples,
            Self::NQuads => RdfFormat::NQuads,
            Self::TriG => RdfFormat::TriG,
            Self::JsonLd => RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() },
            Self::RdfXml => RdfFormat::RdfXml,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_any_of_its_names() {
        for format in Format::ALL {
            assert_eq!(Format::named(format.name()), Some(format));
            assert_eq!(Format::named(&format!("{}; charset=utf-8", format.media_type())), Some(format));
            for end in format.extensions() {
                assert_eq!(Format::of_file(Path::new(&format!("a.b.{}", end.to_uppercase()))), Some(format));
            }
        }
        assert_eq!(Format::of_file(Path::new("README.md")), None);
        assert_eq!(Format::named("text/html"), None);
    }
}
