//! Files of all kinds through the whole reader, and what bad ones do to it.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod pdf;

use trellis_orchestrator::ports::{DocumentReader, ReadDocument, ReadError};
use trellis_readers::{Program, Readers};

const PDF_WORKER: &str = "TRELLIS_TEST_PDF_WORKER";

/// Not a test: this program as it is started for a PDF.
#[test]
fn pdf_worker() {
    if std::env::var_os(PDF_WORKER).is_some() {
        std::process::exit(i32::from(trellis_readers::pdf::work().is_err()));
    }
}

pub(crate) fn readers() -> Readers {
    Readers::new(Program {
        path: std::env::current_exe().unwrap(),
        arguments: ["pdf_worker", "--exact", "--nocapture"].map(Into::into).into(),
        variables: vec![(PDF_WORKER.into(), "1".into())],
    })
}

async fn read(kind: &str, content: impl Into<Vec<u8>>) -> Result<ReadDocument, ReadError> {
    readers().read(kind, content.into()).await
}

#[tokio::test]
async fn text_and_markdown_are_their_own_text() {
    let text = read("text/plain; charset=utf-8", "# no heading\n\ntext").await.unwrap();
    assert_eq!((text.title, text.extracted), (None, None));
    assert!(text.passages[0].place.headings.is_empty());
    let markdown = read("text/markdown", "# Title\n\ntext").await.unwrap();
    assert_eq!((markdown.title.as_deref(), markdown.extracted), (Some("Title"), None));
    assert_eq!(markdown.passages[0].place.headings, ["Title"]);
    assert!(read("text/plain", "").await.unwrap().passages.is_empty());
}

#[tokio::test]
async fn what_is_converted_comes_with_its_text() {
    let wide: Vec<u8> = [0xfeff].into_iter().chain("wide text".encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let read_wide = read("text/plain", wide).await.unwrap();
    assert_eq!(read_wide.extracted.as_deref(), Some("wide text"));
    let page = read("text/html", "<title>T</title><h1>Head</h1><p>text").await.unwrap();
    assert_eq!(page.title.as_deref(), Some("T"));
    let text = page.extracted.unwrap();
    let place = &page.passages[0].place;
    let bytes = usize::try_from(place.bytes.start).unwrap()..usize::try_from(place.bytes.end).unwrap();
    assert_eq!(text[bytes], page.passages[0].text);
    assert_eq!(place.headings, ["Head"]);
}

#[tokio::test]
async fn letters_are_read_as_the_type_or_the_page_says() {
    let latin = read("text/plain; charset=ISO-8859-1", b"gr\xfcn".as_slice()).await.unwrap();
    assert_eq!(latin.extracted.as_deref(), Some("grün"), "the file itself is not the text that places count in");
    let page = b"<meta charset=windows-1252><p>5\x80".as_slice();
    assert_eq!(read("text/html", page).await.unwrap().extracted.as_deref(), Some("5€"));
    let error = read("text/html; charset=koi8-r", page).await.unwrap_err().to_string();
    assert!(error.contains("koi8-r"), "whoever sent it knows better: {error}");
    let error = read("text/markdown", b"gr\xfcn".as_slice()).await.unwrap_err().to_string();
    assert!(error.contains("byte 2") && error.contains("Latin-1"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_a_reason() {
    for (kind, content, reason) in [
        ("image/png", b"x".as_slice(), "image/png"),
        ("text/plain", b"\xff\xff", "UTF-8"),
        ("text/html", b"a\0b", "no text"),
        ("application/pdf", b"no pdf", "damaged"),
        ("application/pdf", b"", "damaged"),
    ] {
        let error = read(kind, content).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{kind}: {error}");
    }
    let headings = "# a\n\n".repeat(200_000) + &"# x\n\nword\n\n".repeat(200);
    assert!(read("text/markdown", headings).await.is_ok(), "headings alone are joined");
    let many = "x ".repeat(17 << 20);
    let error = read("text/plain", many).await.unwrap_err();
    assert!(matches!(error, ReadError::TooLarge { what: "the text", .. }), "{error}");
}
