//! Files as text in passages: plain text, Markdown, HTML and PDF.
//!
//! Owns what a file of each kind says and where its text is cut. Does not keep or find anything. All of it is pure, but
//! for PDF, which is read in a process of its own: its readers allocate and panic as files tell them to.

mod encoding;
mod html;
pub mod pdf;
mod sections;
mod split;

use encoding::Decoded;
use pdf::PdfReader;
pub use trellis_confined::Program;
use trellis_orchestrator::documents::MOST_PASSAGES;
use trellis_orchestrator::ports::{BoxFuture, DocumentReader, Passage, ReadDocument, ReadError};

/// Most bytes of a file, and of the text in it.
pub const LARGEST_FILE: usize = 64 << 20;
pub const LARGEST_TEXT: usize = 32 << 20;

/// Raised when files are read or cut differently.
const VERSION: &str = "1";

/// Reads files of all kinds that are known.
#[derive(Debug, Clone)]
pub struct Readers {
    pdf: PdfReader,
}

/// What a text is cut by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Plain,
    Markdown,
}

impl Readers {
    /// `pdf` is how a process is started that calls [`pdf::work`].
    pub fn new(pdf: Program) -> Self {
        Self { pdf: PdfReader::new(pdf) }
    }

    async fn read_bytes(&self, kind: &str, content: Vec<u8>) -> Result<ReadDocument, ReadError> {
        at_most("the file", content.len(), LARGEST_FILE)?;
        let charset = encoding::charset_of(kind);
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let read: fn(&[u8], Option<&str>) -> Result<ReadDocument, ReadError> = match kind.as_str() {
            "text/markdown" | "text/x-markdown" => |content, charset| text(content, charset, Syntax::Markdown),
            "text/html" | "application/xhtml+xml" => page,
            "application/pdf" => return self.pdf.read(content).await,
            kind if kind.starts_with("text/") => |content, charset| text(content, charset, Syntax::Plain),
            _ => return Err(ReadError::UnknownKind { kind }),
        };
        let failed = |_| ReadError::Unreadable("reading it failed; this is a mistake of the program".to_owned());
        tokio::task::spawn_blocking(move || read(&content, charset.as_deref())).await.map_err(failed)?
    }
}

impl DocumentReader for Readers {
    fn read<'a>(&'a self, kind: &'a str, content: Vec<u8>) -> BoxFuture<'a, Result<ReadDocument, ReadError>> {
        Box::pin(self.read_bytes(kind, content))
    }

    fn version(&self) -> &'static str {
        VERSION
    }
}

fn at_most(what: &'static str, size: usize, most: usize) -> Result<(), ReadError> {
    if size > most {
        return Err(ReadError::TooLarge { what, size: size as u64, most: most as u64 });
    }
    Ok(())
}

/// Text that is its own source, unless it had to be decoded.
fn text(content: &[u8], charset: Option<&str>, syntax: Syntax) -> Result<ReadDocument, ReadError> {
    let (text, is_source) = match encoding::decode(content, charset)? {
        Decoded::AsItIs(text) => (text.to_owned(), true),
        Decoded::Converted(text) => (text, false),
    };
    at_most("the text", text.len(), LARGEST_TEXT)?;
    let passages = passages(&text, syntax)?;
    let title = match syntax {
        Syntax::Markdown => sections::first_heading(&text),
        Syntax::Plain => None,
    };
    Ok(ReadDocument { title, extracted: (!is_source).then_some(text), passages })
}

fn page(content: &[u8], charset: Option<&str>) -> Result<ReadDocument, ReadError> {
    // Who sent it knows better than the page itself.
    let charset = charset.map(str::to_owned).or_else(|| encoding::charset_in(content));
    let decoded = encoding::decode(content, charset.as_deref())?;
    let html::Page { title, text } = html::read(decoded.text());
    at_most("the text", text.len(), LARGEST_TEXT)?;
    let passages = passages(&text, Syntax::Markdown)?;
    let title = title.or_else(|| sections::first_heading(&text));
    Ok(ReadDocument { title, extracted: Some(text), passages })
}

fn passages(text: &str, syntax: Syntax) -> Result<Vec<Passage>, ReadError> {
    let passages = split::passages(text, &sections::of(text, syntax));
    at_most("the number of passages", passages.len(), MOST_PASSAGES)?;
    Ok(passages)
}
