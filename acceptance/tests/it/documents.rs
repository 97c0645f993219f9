//! Documents that are loaded, searched and asked about, with the stock clients.

use acceptance::{MODEL, Stage};

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn documents_are_loaded_by_the_sdk_and_asked_about_by_the_commands() {
    let stage = Stage::with(&[("TRELLIS_EMBEDDING_MODEL", "openai/letters")]).await;
    let told = stage.python("sdk_documents.py").await.ok();
    told.says(&["carries 24 tonnes", "2"]);
    let question = ["-q", "What does the bridge carry?", "-C", "works", "--show-usage"];
    for more in [&[][..], &["--no-streaming"]] {
        let told = stage.tg("tg-invoke-document-rag", &[&question, more].concat()).await.ok();
        // The scripted model repeats its prompt, and so what it was shown.
        told.says(&["[1] Bridges", "carries 24 tonnes", "What does the bridge carry?"]).notes(&["Model: ", MODEL]);
    }
    stage.tg("tg-invoke-document-rag", &["-q", "What?", "-C", "works", "-x"]).await.ok();
    stage.tg("tg-show-library-documents", &[]).await.ok().says(&["urn:trellis:document:", "Bridges", "Tunnels"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn vectors_are_made_if_a_model_is_configured() {
    let stage = Stage::with(&[("TRELLIS_EMBEDDING_MODEL", "openai/letters")]).await;
    stage
        .tg("tg-invoke-embeddings", &["abba", "cc"])
        .await
        .ok()
        .says(&["Text 1: [2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]", "Text 2: [0.0, 0.0, 2.0"]);
    let without = Stage::open().await;
    without.tg("tg-invoke-embeddings", &["abba"]).await.refused("TRELLIS_EMBEDDING_MODEL");
}
