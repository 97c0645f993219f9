//! PDF files, good and bad.

use crate::readers;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;
use trellis_orchestrator::ports::{DocumentReader, ReadDocument, ReadError};

/// A PDF with these content streams, a page each; compressed if that is said.
fn pdf(pages: &[Vec<u8>], filter: &str) -> Vec<u8> {
    let mut objects: Vec<Vec<u8>> = Vec::new();
    let kids: Vec<String> = (0..pages.len()).map(|n| format!("{} 0 R", 4 + 2 * n)).collect();
    objects.push(b"<< /Type /Catalog /Pages 2 0 R >>".to_vec());
    objects.push(format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()).into_bytes());
    objects.push(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec());
    for (n, page) in pages.iter().enumerate() {
        let content = 5 + 2 * n;
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R \
                 /Resources << /Font << /F1 3 0 R >> >> >>"
            )
            .into_bytes(),
        );
        let mut stream = format!("<< /Length {} {filter} >>\nstream\n", page.len()).into_bytes();
        stream.extend(page);
        stream.extend(b"\nendstream");
        objects.push(stream);
    }
    file_of(&objects)
}

fn file_of(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (n, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n", n + 1).into_bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").into_bytes());
    }
    let end = format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1);
    file.extend(end.into_bytes());
    file
}

fn words(text: &str) -> Vec<u8> {
    format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET").into_bytes()
}

async fn read(content: Vec<u8>) -> Result<ReadDocument, ReadError> {
    readers().read("application/pdf", content).await
}

#[tokio::test]
async fn pages_become_passages_with_their_numbers() {
    let document = read(pdf(&[words("The first page"), words(""), words("The third page")], "")).await.unwrap();
    let text = document.extracted.unwrap();
    assert!(text.contains("[Page 1]\nThe first page") && !text.contains("[Page 2]"), "{text}");
    let found: Vec<_> = document.passages.iter().map(|passage| passage.place.headings.join("/")).collect();
    assert_eq!(found, ["Page 1", "Page 3"]);
    for passage in &document.passages {
        let place = &passage.place.bytes;
        assert_eq!(text[usize::try_from(place.start).unwrap()..usize::try_from(place.end).unwrap()], passage.text);
    }
}

#[tokio::test]
async fn a_file_without_text_says_so() {
    let error = read(pdf(&[b"0 0 m 9 9 l S".to_vec()], "")).await.unwrap_err().to_string();
    assert!(error.contains("scanned"), "{error}");
}

/// Each of them is damaged in another way; all of them end, with a text or a reason.
#[tokio::test]
async fn damaged_files_end_with_a_reason_or_what_could_be_read() {
    let good = pdf(&[words("Some words here")], "");
    let len = good.len();
    for n in 0..12 {
        let mut cut = good.clone();
        cut.truncate(len * n / 12);
        let read_cut = read(cut).await;
        assert!(read_cut.is_err() || n > 6, "{read_cut:?}");
        let mut bent = good.clone();
        for at in (n..len).step_by(37) {
            bent[at] ^= 0x15;
        }
        drop(read(bent).await);
    }
    let error = read(pdf(&[words("x")], "/Filter /FlateDecode")).await.unwrap_err().to_string();
    assert!(error.contains("PDF cannot be read"), "{error}");
}

/// Pages in pages in a circle, arrays in arrays without end, and far more pages than there are: each ends, with a text or
/// a reason.
#[tokio::test]
async fn files_that_nest_without_end_harm_only_their_own_reading() {
    let catalog = b"<< /Type /Catalog /Pages 2 0 R >>".to_vec();
    let circle = b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >>".to_vec();
    let back = b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R] /Count 1 >>".to_vec();
    let deep = format!("{}{}", "[".repeat(300_000), "]".repeat(300_000)).into_bytes();
    let dictionaries = format!("{}1{}", "<< /A ".repeat(100_000), " >>".repeat(100_000)).into_bytes();
    let pages = b"<< /Type /Pages /Kids [3 0 R] /Count 999999999 >>".to_vec();
    let page = b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources 4 0 R >>".to_vec();
    for objects in [
        vec![catalog.clone(), circle, back],
        vec![catalog.clone(), pages.clone(), page.clone(), deep],
        vec![catalog, pages, page, dictionaries],
    ] {
        let (read_bad, read_other) = tokio::join!(read(file_of(&objects)), read(pdf(&[words("others are read")], "")));
        if let Err(error) = read_bad {
            assert!(error.to_string().contains("PDF cannot be read"), "{error}");
        }
        assert!(read_other.unwrap().extracted.unwrap().contains("others are read"));
    }
}

/// Whoever looks for what the first page inherits goes round for ever.
#[tokio::test]
async fn a_page_that_is_its_own_parent_is_left_out() {
    let content = String::from_utf8(words("The second page")).unwrap();
    let stream = format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len());
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>",
        "<< /Type /Page /Parent 3 0 R /Contents 5 0 R >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 6 0 R >> >> >>",
        stream.as_str(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ];
    let document = read(file_of(&objects.map(|object| object.as_bytes().to_vec()))).await.unwrap();
    assert_eq!(document.extracted.unwrap().trim(), "[Page 2]\nThe second page");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_unpacks_to_gigabytes_harms_nobody() {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    let piece = vec![b' '; 1 << 20];
    for _ in 0..1200 {
        packed.write_all(&piece).unwrap();
    }
    let bomb = pdf(&[packed.finish().unwrap()], "/Filter /FlateDecode");
    assert!(bomb.len() < 8 << 20);
    let before = resident_bytes();
    let (read_bomb, read_other) = tokio::join!(read(bomb), read(pdf(&[words("others are read")], "")));
    let error = read_bomb.unwrap_err().to_string();
    assert!(error.contains("unpacks to more than"), "{error}");
    assert!(read_other.unwrap().extracted.unwrap().contains("others are read"));
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 100 << 20, "the reader itself has grown by {grown} bytes");
}

#[cfg(target_os = "linux")]
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")).unwrap();
    kilobytes.trim().parse::<u64>().unwrap() << 10
}
