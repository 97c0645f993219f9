//! TLS to a real server that wants it.

use crate::server::Server;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use trellis_orchestrator::contract;
use trellis_orchestrator::ports::RealWorld;
use trellis_postgres::{Database, DatabaseSettings, PostgresJournal};

/// A certificate for `localhost` and its key, and a file with the certificate.
fn certificate(folder: &Path, name: &str) -> (String, String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, file) = (made.cert.pem(), folder.join(name));
    std::fs::write(&file, &certificate).unwrap();
    (certificate, made.signing_key.serialize_pem(), file.display().to_string())
}

async fn open(address: &str) -> Result<Database, String> {
    let settings = DatabaseSettings { connections: 4, ..DatabaseSettings::of(address) };
    Database::open(settings).await.map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_connections_are_encrypted_when_the_address_says_so() {
    let folder = TempDir::new().unwrap();
    let (certificate, key, file) = certificate(folder.path(), "ca.pem");
    let mut server = Server::start();
    let port = server.encrypt(&certificate, &key);
    let address = format!("postgres://trellis@localhost:{port}/postgres?sslmode=verify-full&sslrootcert={file}");
    let database = open(&address).await.unwrap();
    let journal = PostgresJournal::new(database, &RealWorld);
    contract::journal::claims_expire(&journal, tokio::time::sleep).await;

    let client = server.look().await;
    let kinds = "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl), \
                 count(*) FILTER (WHERE query LIKE 'LISTEN%' OR query = '') \
                 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'trellis%'";
    let heard = async {
        loop {
            let row = client.query_one(kinds, &[]).await.unwrap();
            let [encrypted, plain, listening] = [0, 1, 2].map(|column| row.get::<_, i64>(column));
            assert_eq!(plain, 0);
            if encrypted > 1 && listening > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), heard).await.expect("the one that listens is there as well");
    drop(journal);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_prove_his_name_is_not_spoken_to() {
    let folder = TempDir::new().unwrap();
    let (certificate_of_it, key, file) = certificate(folder.path(), "ca.pem");
    let (.., other) = certificate(folder.path(), "other.pem");
    let mut server = Server::start();
    let port = server.encrypt(&certificate_of_it, &key);
    let at = |rest: &str| format!("postgres://trellis@localhost:{port}/postgres{rest}");
    for (address, why) in [
        (at(""), "no encryption"),
        (at(&format!("?sslmode=require&sslrootcert={other}")), "certificate"),
        // For this name it has no certificate.
        (format!("postgres://trellis@127.0.0.1:{port}/postgres?sslmode=require&sslrootcert={file}"), "certificate"),
        (at("?sslmode=require&sslrootcert=/nowhere.pem"), "/nowhere.pem"),
    ] {
        let refused = open(&address).await.unwrap_err();
        assert!(refused.contains(why), "{address}: {refused}");
    }
}
