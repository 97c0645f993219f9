//! Loaded knowledge, asked about with the stock commands.

use acceptance::{MODEL, Stage};
use std::io::Write;

const PEOPLE: &str = "@prefix ex: <http://ex.org/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
    ex:ada rdfs:label \"Ada Lovelace\" ; ex:wrote ex:notes .\nex:notes rdfs:label \"The Notes\" ; ex:about ex:Engine .\n";

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn knowledge_that_was_loaded_is_asked_about_by_the_commands() {
    let stage = Stage::open().await;
    let mut file = tempfile::Builder::new().suffix(".ttl").tempfile().unwrap();
    file.write_all(PEOPLE.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    stage.tg("tg-load-turtle", &["-i", "urn:people", path]).await.ok();
    // `--no-streaming` fails in the stock command itself, before it asks anybody.
    let told = stage.tg("tg-invoke-graph-rag", &["-q", "What did Ada write?", "--show-usage"]).await.ok();
    // The scripted model repeats its prompt, and so what it was shown.
    told.says(&["Ada Lovelace | wrote | The Notes", "What did Ada write?"]).notes(&["Model: ", MODEL]);
    let told = stage.tg("tg-invoke-graph-rag", &["-q", "What did Ada write?", "-x"]).await.ok();
    let steps = ["[question]", "[grounding]", "[exploration]", "[focus]", "[synthesis]", "Focused on 2 edge(s)"];
    told.says(&["Ada Lovelace | wrote | The Notes"]).notes(&steps).notes(&["Query: What did Ada write?", "- Ada"]);
    let seeds = ["-q", "What is it about?", "--graph-seeds", "[\"http://ex.org/notes\"]"];
    stage.tg("tg-invoke-graph-rag", &seeds).await.ok().says(&["The Notes | about | Engine"]);
    let elsewhere = ["-q", "What did Ada write?", "-C", "other"];
    stage.tg("tg-invoke-graph-rag", &elsewhere).await.ok().says(&["has no knowledge"]);
}
