//! PDF, read in a process of its own.
//!
//! A file of a few kilobytes can unpack to gigabytes, nest without end, or take the reader where it panics. So it is read
//! by a process that the operating system holds to a limit of memory and of processor time, and that is ended when it
//! takes too long. Nothing that a file does harms more than its own reading.

use crate::sections::Section;
use crate::{LARGEST_TEXT, at_most, split};
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use trellis_confined::{Confines, Program, confine};
use trellis_orchestrator::documents::MOST_PASSAGES;
use trellis_orchestrator::ports::{ReadDocument, ReadError};

/// Bytes of memory that the process may take besides what it begins with, and how long it may take.
const MEMORY: u64 = 768 << 20;
const TIME: Duration = Duration::from_mins(1);
/// Most parents of a page.
const DEEPEST: usize = 256;
/// Deep nesting takes stack.
const STACK: usize = 64 << 20;
/// Where the pages begin in what the process writes, and where each ends.
const PAGES: char = '\u{2}';
const PAGE_END: char = '\u{c}';
/// Bytes of its last words that are read.
const LAST_WORDS: u64 = 4096;
/// What the process says of a file that it cannot read, before the reason.
const REFUSED: &str = "refused: ";

#[derive(Debug, Clone)]
pub(crate) struct PdfReader {
    program: Arc<Program>,
}

impl PdfReader {
    pub(crate) fn new(program: Program) -> Self {
        Self { program: Arc::new(program) }
    }

    pub(crate) async fn read(&self, content: Vec<u8>) -> Result<ReadDocument, ReadError> {
        let late = |_| unreadable(format!("reading it took longer than {} s", TIME.as_secs()));
        let pages = tokio::time::timeout(TIME, self.pages(content)).await.map_err(late)??;
        document(&pages)
    }

    /// The text of all pages, from a process that ends with this.
    async fn pages(&self, content: Vec<u8>) -> Result<String, ReadError> {
        let mut process = self.start().map_err(|error| {
            tracing::error!(%error, "no process to read a PDF");
            ReadError::Busy
        })?;
        let (Some(mut to), Some(from), Some(errors)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(ReadError::Busy);
        };
        let (mut pages, mut words) = (Vec::new(), Vec::new());
        let send = async {
            // A process that ends early says why on its other pipe.
            drop(to.write_all(&content).await);
            drop(to);
        };
        let mut text = from.take(LARGEST_TEXT as u64 + 1);
        let mut last_words = errors.take(LAST_WORDS);
        let ((), received, _) = tokio::join!(send, text.read_to_end(&mut pages), last_words.read_to_end(&mut words));
        at_most("the text", pages.len(), LARGEST_TEXT)?;
        let status = process.wait().await;
        let words = String::from_utf8_lossy(&words);
        match (received, status) {
            (Ok(_), Ok(status)) if status.success() => {
                let pages = String::from_utf8(pages).ok();
                let pages = pages.as_deref().and_then(|said| Some(said.split_once(PAGES)?.1.to_owned()));
                pages.ok_or_else(|| unreadable("its text is damaged".to_owned()))
            }
            (_, _) if words.contains("memory allocation of") => {
                Err(unreadable(format!("it unpacks to more than the {} MiB that reading may take", MEMORY >> 20)))
            }
            (_, _) => {
                if let Some(reason) = words.lines().find_map(|line| line.strip_prefix(REFUSED)) {
                    return Err(unreadable(reason.to_owned()));
                }
                tracing::warn!(%words, "a process that read a PDF failed");
                Err(unreadable("it is damaged, or takes more than reading may take".to_owned()))
            }
        }
    }

    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.program.path);
        command.args(&self.program.arguments).envs(self.program.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // Ctrl-C at a terminal is for the owner.
        #[cfg(unix)]
        command.process_group(0);
        command.spawn()
    }
}

fn unreadable(why: String) -> ReadError {
    ReadError::Unreadable(format!("the PDF cannot be read: {why}"))
}

/// The text of all pages, each under a line with its number.
fn document(pages: &str) -> Result<ReadDocument, ReadError> {
    let mut text = String::new();
    let mut sections = Vec::new();
    for (number, page) in (1..).zip(pages.split_terminator(PAGE_END)) {
        let start = text.len();
        let heading = format!("[Page {number}]\n");
        text.push_str(&heading);
        let body = text.len();
        append_tidied(&mut text, page);
        text.push('\n');
        if text[body..].trim().is_empty() {
            text.truncate(start);
        } else {
            sections.push(Section { bytes: start..text.len(), headings: vec![format!("Page {number}")], body });
        }
    }
    if sections.is_empty() {
        return Err(unreadable("there is no text in it; it may consist of scanned pages".to_owned()));
    }
    let passages = split::passages(&text, &sections);
    at_most("the number of passages", passages.len(), MOST_PASSAGES)?;
    Ok(ReadDocument { title: None, extracted: Some(text), passages })
}

/// Spaces and blank lines mostly stand for places on the page.
fn append_tidied(text: &mut String, page: &str) {
    let mut blank = true;
    for line in page.lines() {
        let words = line.split_whitespace();
        let before = text.len();
        for (index, word) in words.enumerate() {
            if index > 0 {
                text.push(' ');
            }
            text.push_str(word);
        }
        let is_blank = text.len() == before;
        if !(is_blank && blank) {
            text.push('\n');
        }
        blank = is_blank;
    }
}

/// Does the work of a process that reads a PDF: it comes on standard input, its text goes to standard output.
pub fn work() -> io::Result<()> {
    let mut content = Vec::new();
    io::stdin().lock().read_to_end(&mut content)?;
    confine(Confines { memory: STACK as u64 + MEMORY, time: TIME });
    // What a reader panics about is told in our own words.
    std::panic::set_hook(Box::new(|_| {}));
    let reading = std::thread::Builder::new().name("pdf".to_owned()).stack_size(STACK);
    let read = reading.spawn(move || read(&content))?.join();
    let refused = match read {
        Ok(Ok(text)) => return io::stdout().lock().write_all(text.as_bytes()),
        Ok(Err(reason)) => reason,
        Err(_) => "it is damaged".to_owned(),
    };
    writeln!(io::stderr(), "{REFUSED}{}", refused.replace('\n', " "))?;
    Err(io::ErrorKind::InvalidData.into())
}

/// Whether the parents of a page end somewhere: what it inherits is looked for in one after the other, also in a circle.
fn has_an_end(pdf: &pdf_extract::Document, page: (u32, u16)) -> bool {
    let parent = |id: &(u32, u16)| pdf.get_dictionary(*id).ok()?.get(b"Parent").ok()?.as_reference().ok();
    std::iter::successors(Some(page), parent).nth(DEEPEST).is_none()
}

/// The text of all pages. A page that cannot be read is empty; if none can, that is an error.
fn read(content: &[u8]) -> Result<String, String> {
    let damaged = |error: pdf_extract::Error| format!("it is damaged: {error}");
    let mut pdf = pdf_extract::Document::load_mem(content).map_err(damaged)?;
    if pdf.is_encrypted() {
        // Many are encrypted so that they cannot be changed, and can be read by everybody.
        pdf.decrypt("").map_err(|_| "it is protected by a password".to_owned())?;
    }
    let mut text = PAGES.to_string();
    let mut failed = 0;
    let pages = pdf.get_pages();
    for (number, id) in &pages {
        let mut page = String::new();
        let reading = AssertUnwindSafe(|| {
            let mut output = pdf_extract::PlainTextOutput::new(&mut page);
            has_an_end(&pdf, *id) && pdf_extract::output_doc_page(&pdf, &mut output, *number).is_ok()
        });
        if !catch_unwind(reading).unwrap_or(false) {
            failed += 1;
        }
        text.extend(page.chars().filter(|c| ![PAGES, PAGE_END, '\0'].contains(c)));
        text.push(PAGE_END);
        if text.len() > LARGEST_TEXT {
            // Whoever reads it says so.
            break;
        }
    }
    if failed > 0 && failed == pages.len() {
        return Err("none of its pages can be read".to_owned());
    }
    Ok(text)
}
