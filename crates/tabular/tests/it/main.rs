//! Parquet files of another program through the whole reader, and what bad ones do to it.
#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use serde_json::{Value, json};
use std::fs::File;
use std::io::{Cursor, Read, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;
use trellis_domain::table::TableSchema;
use trellis_tabular::parquet::{Unpacked, work};
use trellis_tabular::{Encoding, Format, Program, Rows, Source, infer};

const WORKER: &str = "TRELLIS_TEST_PARQUET_WORKER";

/// Not a test: this program as it is started for a file.
#[test]
fn parquet_worker() {
    if std::env::var_os(WORKER).is_some() {
        std::process::exit(i32::from(work().is_err()));
    }
}

fn program() -> Program {
    Program {
        path: std::env::current_exe().unwrap(),
        arguments: ["parquet_worker", "--exact", "--nocapture"].map(Into::into).into(),
        variables: vec![(WORKER.into(), "1".into())],
    }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn source(name: &str, unpacked: Unpacked) -> Source {
    Source { name: name.to_owned(), reader: Box::new(unpacked), format: Format::Parquet, encoding: Encoding::default() }
}

fn of_file(name: &str) -> Source {
    source(name, Unpacked::file(program(), File::open(path(name)).unwrap()))
}

fn of_bytes(bytes: Vec<u8>) -> Source {
    let folder = std::env::temp_dir();
    source("upload.parquet", Unpacked::stream(program(), Box::new(Cursor::new(bytes)), folder))
}

/// The rows, and what was wrong behind them.
fn rows(source: Source, schema: TableSchema) -> (Vec<Value>, Option<String>) {
    let (mut rows, mut wrong) = (Vec::new(), None);
    for row in Rows::new(source, Arc::new(schema)) {
        match row {
            Ok(row) => rows.push(json!(row)),
            Err(error) => wrong = Some(error.to_string()),
        }
    }
    (rows, wrong)
}

fn cities() -> TableSchema {
    let fields = json!({"fields": [{"name": "id", "type": "integer", "primary_key": true}, {"name": "name"}]});
    TableSchema::from_json("cities", fields.as_object().unwrap()).unwrap()
}

fn texts() -> TableSchema {
    TableSchema::from_json("texts", json!({"fields": [{"name": "text"}]}).as_object().unwrap()).unwrap()
}

#[test]
fn a_schema_is_made_of_the_types_that_the_file_knows() {
    let made = infer("t", of_file("types.parquet")).unwrap();
    let kinds: Vec<_> = made.fields.iter().map(|field| format!("{} {}", field.name, field.kind)).collect();
    let expected = [
        "id integer",
        "small integer",
        "large float",
        "price float",
        "share float",
        "nothing float",
        "open boolean",
        "zip string",
        "kind string",
        "day date",
        "at_ms time",
        "at_ns time",
        "local timestamp",
        "instant timestamp",
        "exact timestamp",
        "money float",
        "count integer",
        "huge string",
        "key uuid",
        "raw string",
        "tags string",
        "place string",
        "words string",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(made.description, "Rows of types.parquet");
    let key = infer("cities", of_file("zstd.parquet")).unwrap();
    assert!(key.fields[0].primary_key, "{key:?}");
}

#[test]
fn values_of_all_types_are_read_and_what_is_absent_is() {
    let schema = infer("t", of_file("types.parquet")).unwrap();
    let (found, wrong) = rows(of_file("types.parquet"), schema);
    assert_eq!(wrong, None);
    let expected = json!({
        "id": 7, "small": -3, "large": 18_000_000_000_000_000_000.0_f64, "price": 2.5, "share": 0.1, "open": true,
        "zip": "00712", "kind": "red", "day": "2024-02-29", "at_ms": "12:30:00", "at_ns": "12:30:00.000001",
        "local": "2024-02-29T12:30:00.500", "instant": "2024-02-29T12:30:00.500Z", "exact": "2024-02-29T12:30:00.500Z",
        "money": -12.3, "count": 123_456_789_012_345_678_i64, "huge": "1234567890123456789012345678901234.5678",
        "key": "12345678-1234-5678-1234-567812345678", "raw": "AP8=", "tags": "[\"a\",null]",
        "place": "{\"x\":1,\"y\":[0.5]}", "words": "{\"one\":1}",
    });
    assert_eq!(found, [expected, json!({})]);
    let at = TableSchema::from_json("t", json!({"fields": [{"name": "at"}]}).as_object().unwrap()).unwrap();
    assert_eq!(rows(of_file("int96.parquet"), at), (vec![json!({"at": "2024-02-29T12:30:00.500"})], None));
}

#[test]
fn all_usual_ways_to_pack_are_read_with_all_row_groups() {
    for codec in ["none", "snappy", "gzip", "brotli", "lz4", "zstd"] {
        let (found, wrong) = rows(of_file(&format!("{codec}.parquet")), cities());
        assert_eq!((found.len(), wrong), (100, None), "{codec}");
        assert_eq!(found[99], json!({"id": 99, "name": "City 99"}), "{codec}");
    }
    let streamed = std::fs::read(path("snappy.parquet")).unwrap();
    assert_eq!(rows(of_bytes(streamed), cities()).0.len(), 100, "also as it comes over a line");
}

#[test]
fn a_wrong_row_is_told_with_its_number() {
    let fields = json!({"fields": [{"name": "id", "type": "integer"}, {"name": "name", "type": "integer"}]});
    let schema = TableSchema::from_json("cities", fields.as_object().unwrap()).unwrap();
    let (_, wrong) = rows(of_file("zstd.parquet"), schema);
    let wrong = wrong.unwrap();
    assert!(wrong.starts_with("zstd.parquet:1: field `name`: `City 0` is no integer"), "{wrong}");
    let (_, wrong) = rows(of_file("zstd.parquet"), texts());
    assert!(wrong.unwrap().contains("no column is a field of the schema `texts`"));
}

#[test]
fn files_that_are_none_are_refused() {
    let whole = std::fs::read(path("snappy.parquet")).unwrap();
    for bytes in [Vec::new(), b"id,name\n1,Oslo\n".to_vec(), whole[..whole.len() / 2].to_vec(), whole[40..].to_vec()] {
        let (found, wrong) = rows(of_bytes(bytes), cities());
        let wrong = wrong.unwrap();
        let (_, why) = wrong.split_once("the Parquet file cannot be read: ").unwrap();
        assert!(found.is_empty() && wrong.starts_with("upload.parquet:") && !why.is_empty(), "{wrong}");
    }
}

/// Every byte of a file changed in turn: it is read, or refused with words of our own, and nothing hangs.
#[test]
fn damage_anywhere_harms_only_the_reading() {
    let whole = std::fs::read(path("types.parquet")).unwrap();
    for place in (4..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x5a;
        if let Some(wrong) = rows(of_bytes(damaged), texts()).1 {
            let told = wrong.contains("the Parquet file cannot be read: ") || wrong.contains("no column is a field");
            assert!(told, "byte {place}: {wrong}");
        }
    }
}

#[test]
fn damage_in_a_row_group_is_told_with_it_and_what_came_before_stays() {
    let mut damaged = std::fs::read(path("none.parquet")).unwrap();
    // The header of the page in which the second group has its names.
    let names = damaged.windows(7).position(|window| window == b"City 40").unwrap();
    damaged[names - 20..names].fill(0xff);
    let (found, wrong) = rows(of_bytes(damaged), cities());
    let wrong = wrong.unwrap();
    assert_eq!(found.len(), 40, "{wrong}");
    assert!(wrong.starts_with("upload.parquet:41: the Parquet file cannot be read: row group 2: "), "{wrong}");
}

#[test]
fn what_unpacks_without_measure_is_refused() {
    let (_, wrong) = rows(of_file("bomb.parquet"), texts());
    let wrong = wrong.unwrap();
    assert!(wrong.contains("more than the 768 MiB that reading may take"), "{wrong}");
    let mut count = 0;
    let wrong = Rows::new(of_file("repeated.parquet"), Arc::new(texts())).find_map(|row| {
        count += 1;
        row.err()
    });
    let wrong = wrong.unwrap().to_string();
    assert!(wrong.contains("more than a thousand times its size"), "{wrong}");
    assert!((200..1_000).contains(&count), "{count}");
}

#[test]
fn whoever_stops_reading_ends_the_process() {
    let mut unpacked = Unpacked::file(program(), File::open(path("repeated.parquet")).unwrap());
    let mut some = [0; 100];
    unpacked.read_exact(&mut some).unwrap();
    assert_eq!(some[0], b'[', "first the columns: {}", String::from_utf8_lossy(&some));
    // Waits for the process, which would write on if it were not ended.
    drop(unpacked);
}

#[test]
fn files_need_not_be_at_their_beginning() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&std::fs::read(path("snappy.parquet")).unwrap()).unwrap();
    assert!(file.stream_position().unwrap() > 0);
    let (found, wrong) = rows(source("f", Unpacked::file(program(), file)), cities());
    assert_eq!((found.len(), wrong), (100, None));
}

/// What systems call temporary is often memory.
#[test]
fn an_upload_is_kept_where_it_is_told_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(path("snappy.parquet")).unwrap();
    let load = |within: PathBuf| {
        let unpacked = Unpacked::stream(program(), Box::new(Cursor::new(bytes.clone())), within);
        rows(source("f", unpacked), cities())
    };
    let uploads = folder.path().join("uploads");
    let (found, wrong) = load(uploads.clone());
    assert_eq!((found.len(), wrong), (100, None));
    assert_eq!(std::fs::read_dir(uploads).unwrap().count(), 0, "nothing is left of it");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (found, wrong) = load(file.clone());
    let wrong = wrong.unwrap();
    assert!(found.is_empty() && wrong.contains(&format!("cannot be kept in {}", file.display())), "{wrong}");
}
