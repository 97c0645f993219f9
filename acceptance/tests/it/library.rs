//! Documents in the library, small ones and ones that are sent in pieces.

use acceptance::Stage;

/// More than the client sends at once: three pieces.
const LARGE: usize = 7 * 1024 * 1024;

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_document_is_added_shown_read_and_removed() {
    let stage = Stage::open().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("note.txt");
    std::fs::write(&file, "Ada wrote the first program. ☀\n").unwrap();
    stage.tg("tg-show-library-documents", &[]).await.ok().says(&["No documents."]);
    let document = ["--id", "urn:doc:ada", "--name", "On Ada", "--description", "A note", "-k", "text/plain"];
    let more = ["--tags", "history,computing", "--keyword", "ada", "--", file.to_str().unwrap()];
    let add = [&document[..], &more].concat();
    stage.tg("tg-add-library-document", &add).await.ok().says(&["Loaded successfully."]);
    let shown = stage.tg("tg-show-library-documents", &[]).await.ok();
    shown.says(&["urn:doc:ada", "On Ada", "text/plain", "A note", "history, computing"]);
    let read = stage.tg("tg-get-document-content", &["urn:doc:ada"]).await.ok();
    assert_eq!(read.stdout, "Ada wrote the first program. ☀\n\n");
    stage.tg("tg-add-library-document", &add).await.refused("exist");
    stage.tg("tg-remove-library-document", &["--id", "urn:doc:ada"]).await.ok();
    stage.tg("tg-show-library-documents", &[]).await.ok().says(&["No documents."]);
    stage.tg("tg-get-document-content", &["urn:doc:ada"]).await.refused("404");
    stage.tg("tg-remove-library-document", &["--id", "urn:doc:ada"]).await.refused("urn:doc:ada");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_large_document_arrives_whole() {
    let stage = Stage::open().await;
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("large.bin"), folder.path().join("copy.bin"));
    let bytes: Vec<u8> = (0..LARGE).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect();
    std::fs::write(&file, &bytes).unwrap();
    let add = ["--id", "urn:doc:large", "--name", "Large", "-k", "application/octet-stream", file.to_str().unwrap()];
    stage.tg("tg-add-library-document", &add).await.ok().says(&["Loaded successfully."]);
    let read = ["urn:doc:large", "-o", copy.to_str().unwrap()];
    stage.tg("tg-get-document-content", &read).await.ok().says(&[&format!("Written {LARGE} bytes")]);
    assert!(std::fs::read(copy).unwrap() == bytes, "the copy differs");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_documents_of_a_run_are_read_by_their_names() {
    let stage = Stage::open().await;
    let told = stage.tg("tg-invoke-agent", &["-q", "Who was Ada?", "-x"]).await.ok();
    let documents: Vec<_> = told.stderr.lines().filter_map(|line| line.trim().strip_prefix("Document: ")).collect();
    assert_eq!(documents.len(), 2, "an observation and an answer: {told}");
    stage.tg("tg-get-document-content", &[documents[0]]).await.ok().says(&["Sample data"]);
    stage.tg("tg-get-document-content", &[documents[1]]).await.ok().says(&["The script answers: Who was Ada?"]);
}
