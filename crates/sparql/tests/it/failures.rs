//! Endpoints that are gone, refuse, talk nonsense or never end: told clearly, within bounds, and nothing is lost.

use crate::graph::{ALL, triples};
use crate::{Home, endpoint, password};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;
use trellis_domain::{Secret, Workspace};
use trellis_orchestrator::contract::graph::Scene;
use trellis_orchestrator::contract::teams::agent;
use trellis_orchestrator::ports::{Asking, Graph, GraphError, QuadPattern, QueryLimits};
use trellis_servers::{Fuseki, Proxy};
use trellis_sparql::{Credentials, RemoteGraph};

const TIME: Duration = Duration::from_secs(1);

async fn refused(graph: &RemoteGraph) -> GraphError {
    let asking = Asking { workspace: &Workspace::default(), caller: None, knowledge: None };
    graph.query(asking, ALL, QueryLimits::default()).await.unwrap_err()
}

/// Waits until the view has all that has finished.
async fn caught_up(graph: &RemoteGraph) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while graph.lag().await.ok() != Some(0) {
        assert!(Instant::now() < deadline, "the view does not catch up");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_was_gone_has_everything_afterwards() {
    let (home, fuseki) = (Home::new(), Fuseki::start());
    let graph = home.graph(&fuseki);
    let mut scene = Scene::of((home.ports(), Arc::new(graph.clone()) as Arc<dyn Graph>)).await;
    let (stop, stopped) = watch::channel(false);
    let keeper = graph.clone();
    let keeping = tokio::spawn(async move { keeper.keep_up(stopped).await });
    let first = scene.ask(&agent("first"), "react", "").await;
    caught_up(&graph).await;
    fuseki.kill();
    // Runs go on without it, and what is about one of them is still answered.
    scene.ask(&agent("second"), "react", "").await;
    let node = format!("urn:trustgraph:agent:{first}");
    let about = QuadPattern { s: Some(trellis_domain::rdf::Term::iri(node)), ..QuadPattern::default() };
    assert!(!graph.matching(&Workspace::default(), &about, 100).await.unwrap().found.is_empty());
    let gone = refused(&graph).await;
    assert!(matches!(&gone, GraphError::Index(why) if why.contains("cannot be reached")), "{gone}");
    assert!(matches!(graph.catch_up().await, Err(GraphError::Index(_))));
    fuseki.start_again();
    caught_up(&graph).await;
    assert_eq!(endpoint::graphs(&fuseki, &home.followed().name).await.len(), 2, "nothing was lost");
    let said = scene.quads().await.len();
    assert_eq!(triples(&graph, ALL).await.len(), said);
    stop.send_replace(true);
    keeping.await.unwrap();
}

/// Two processes on one store, of which the first one writes, over a connection that is cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_connection_is_made_again_and_another_process_waits_its_turn() {
    let (home, fuseki) = (Home::new(), Fuseki::shared());
    let proxy = Proxy::to(fuseki.port());
    let address = format!("http://{}@127.0.0.1:{}/ds", fuseki.user(), proxy.port());
    let one = home.graph_at("one", &address, password(&fuseki), Duration::from_secs(30));
    let mut scene = Scene::of((home.ports(), Arc::new(one.clone()) as Arc<dyn Graph>)).await;
    scene.ask(&agent("a"), "react", "").await;
    assert_eq!(one.catch_up().await.unwrap(), 1);
    proxy.cut();
    scene.ask(&agent("b"), "react", "").await;
    let two = home.graph_at("two", &address, password(&fuseki), Duration::from_secs(30));
    let waits = tokio::time::timeout(Duration::from_secs(1), two.catch_up()).await;
    assert!(waits.is_err(), "the first process has given signs of life a moment ago");
    assert_eq!(two.lag().await.unwrap(), 1);
    assert_eq!(triples(&two, ALL).await.len(), scene.quads().await.len(), "it is laid over meanwhile");
    assert_eq!(one.catch_up().await.unwrap(), 1);
    assert_eq!(two.lag().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_told_without_showing_any() {
    let (home, fuseki) = (Home::new(), Fuseki::shared());
    let open = fuseki.open_address_at(fuseki.port());
    let wrong = Credentials { password: Secret::new("not the password"), token: None };
    let token = Credentials { password: None, token: Secret::new("no-such-token") };
    for (address, credentials) in
        [(fuseki.address(), wrong), (open.clone(), token), (open.clone(), Credentials::default())]
    {
        let graph = home.graph_at("one", &address, credentials, Duration::from_secs(30));
        for error in [refused(&graph).await, graph.catch_up().await.unwrap_err()] {
            let told = error.to_string();
            assert!(matches!(error, GraphError::Index(_)), "{told}");
            assert!(
                told.contains(&open) && told.contains("HTTP 401") && told.contains("TRELLIS_GRAPH_PASSWORD"),
                "{told}"
            );
            assert!(!told.contains("not the password") && !told.contains("no-such-token"), "{told}");
        }
    }
}

/// How an endpoint answers that is none.
#[derive(Clone, Copy)]
enum Manner {
    /// With this, whatever is asked.
    Says(&'static str),
    /// Rows without end.
    NeverEnds,
    /// Not at all.
    IsSilent,
}

/// The address of a server that answers so.
async fn impostor(manner: Manner) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/ds", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                drop(stream.read(&mut asked).await);
                let head =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/sparql-results+json\r\nconnection: close\r\n\r\n";
                match manner {
                    Manner::Says(text) => drop(stream.write_all(text.as_bytes()).await),
                    Manner::NeverEnds => {
                        drop(stream.write_all(head.as_bytes()).await);
                        let more = " ".repeat(1 << 16);
                        while stream.write_all(more.as_bytes()).await.is_ok() {}
                    }
                    Manner::IsSilent => tokio::time::sleep(Duration::from_mins(1)).await,
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_none_is_told_within_bounds() {
    let home = Home::new();
    let page = "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n<html></html>";
    let other = "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"boolean\": true}";
    let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 7\r\n\r\nNo here";
    let moved = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let garbage = "SSH-2.0-OpenSSH\r\n";
    let cases = [
        (Manner::Says(page), "makes no sense"),
        (Manner::Says(other), "it has no rows"),
        (Manner::Says(missing), "HTTP 404"),
        (Manner::Says(moved), "HTTP 302"),
        (Manner::Says(garbage), "cannot be reached"),
        (Manner::NeverEnds, "MiB"),
        (Manner::IsSilent, "did not answer within 1 s"),
    ];
    for (manner, told) in cases {
        // So much may come in no time that bytes are the bound, and not the time.
        let time = if matches!(manner, Manner::NeverEnds) { Duration::from_secs(30) } else { TIME };
        let graph = home.graph_at("one", &impostor(manner).await, Credentials::default(), time);
        let (began, error) = (Instant::now(), refused(&graph).await);
        assert!(error.to_string().contains(told), "{told}: {error}");
        assert!(began.elapsed() < Duration::from_secs(20), "{told}");
    }
}
