//! What the endpoint has, asked without us.

use std::time::Duration;
use trellis_servers::Fuseki;

/// The answer to a query, in CSV without its first line.
pub(crate) async fn select(fuseki: &Fuseki, sparql: &str) -> Vec<String> {
    let url = format!("{}/query", fuseki.open_address_at(fuseki.port()));
    let asked = client().post(url).basic_auth(fuseki.user(), Some(fuseki.password()));
    let asked = asked.header("content-type", "application/sparql-query").header("accept", "text/csv");
    let reply = asked.body(sparql.to_owned()).send().await.unwrap();
    assert!(reply.status().is_success(), "{}", reply.status());
    reply.text().await.unwrap().lines().skip(1).map(str::to_owned).collect()
}

pub(crate) async fn update(fuseki: &Fuseki, sparql: &str) {
    let url = format!("{}/update", fuseki.open_address_at(fuseki.port()));
    let asked = client().post(url).basic_auth(fuseki.user(), Some(fuseki.password()));
    let asked = asked.header("content-type", "application/sparql-update").body(sparql.to_owned());
    let reply = asked.send().await.unwrap();
    assert!(reply.status().is_success(), "{}", reply.status());
}

/// The graphs that a store has there.
pub(crate) async fn graphs(fuseki: &Fuseki, store: &str) -> Vec<String> {
    let all = "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g";
    let begin = format!("urn:trellis:graph:{}:", store.replace('/', "%2F"));
    let mut graphs = select(fuseki, all).await;
    graphs.retain(|graph| graph.starts_with(&begin));
    graphs
}

fn client() -> reqwest::Client {
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().no_proxy().tls_certs_only([]).timeout(Duration::from_secs(30)).build().unwrap()
}
