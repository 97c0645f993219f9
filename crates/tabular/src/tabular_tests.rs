use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::io::Cursor;

fn source(format: Format, bytes: impl Into<Vec<u8>>) -> Source {
    let reader = Box::new(Cursor::new(bytes.into()));
    Source { name: "file".to_owned(), reader, format, encoding: Encoding::default() }
}

fn schema(fields: &Value) -> Arc<TableSchema> {
    let item = json!({ "fields": fields });
    Arc::new(TableSchema::from_json("t", item.as_object().unwrap()).unwrap())
}

fn texts(names: &[&str]) -> Arc<TableSchema> {
    schema(&names.iter().map(|name| json!({ "name": name })).collect())
}

fn read(source: Source, schema: Arc<TableSchema>) -> Result<Vec<Value>, String> {
    let rows: Result<Vec<Row>, ReadError> = Rows::new(source, schema).collect();
    rows.map(|rows| rows.iter().map(|row| json!(row)).collect()).map_err(|error| error.to_string())
}

fn csv(bytes: impl Into<Vec<u8>>) -> Result<Vec<Value>, String> {
    read(source(Format::Csv, bytes), texts(&["a", "b"]))
}

#[test]
fn quotes_hold_what_would_end_a_field() {
    let rows = csv("a,b\r\n1,\"x, \"\"y\"\"\nz\"\r\n\r\n2,\n").unwrap();
    assert_eq!(rows, [json!({"a": "1", "b": "x, \"y\"\nz"}), json!({"a": "2"})]);
}

#[test]
fn delimiters_are_found_in_the_first_line() {
    for delimiter in [",", ";", "\t", "|"] {
        let text = format!("a{delimiter}\"b\"\n1{delimiter}2");
        assert_eq!(csv(text).unwrap(), [json!({"a": "1", "b": "2"})], "{delimiter:?}");
    }
    assert_eq!(read(source(Format::Tsv, "a\tb\n1\t2,3"), texts(&["a", "b"])).unwrap(), [json!({"a": "1", "b": "2,3"})]);
}

#[test]
fn unicode_comes_with_or_without_its_mark() {
    let text = "a,b\nä,東\n";
    let utf16 = |first: [u8; 2], order: fn(u16) -> [u8; 2]| {
        let units = text.encode_utf16().flat_map(order);
        first.into_iter().chain(units).collect::<Vec<_>>()
    };
    let marked = [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat();
    let ways = [
        text.as_bytes().to_vec(),
        marked,
        utf16([0xff, 0xfe], u16::to_le_bytes),
        utf16([0xfe, 0xff], u16::to_be_bytes),
    ];
    for bytes in ways {
        assert_eq!(csv(bytes).unwrap(), [json!({"a": "ä", "b": "東"})]);
    }
    let old = Source { encoding: Encoding::Windows1252, ..source(Format::Csv, b"a,b\n\xe4,\x80\n".to_vec()) };
    assert_eq!(read(old, texts(&["a", "b"])).unwrap(), [json!({"a": "ä", "b": "€"})]);
}

#[test]
fn a_wrong_encoding_is_told_with_the_place() {
    let error = csv(b"a,b\n1,2\n\xe4,x\n".to_vec()).unwrap_err();
    assert!(
        error.starts_with("file:3: ")
            && error.contains("byte 8 of the file")
            && error.contains("--encoding windows-1252"),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let error = csv("a,b\n1,2\n\n\n1,2,3\n").unwrap_err();
    assert!(error.starts_with("file:5: 3 columns where the first line names 2"), "{error}");
    let error = csv("a,b\n\"x\ny\",2\n1\n").unwrap_err();
    assert!(error.starts_with("file:4: 1 columns"), "a field of two lines: {error}");
    assert!(csv("").unwrap_err().contains("the file is empty"));
    assert!(csv("a,,b\n1,2,3").unwrap_err().contains("a column has no name"));
    assert!(csv("a,a\n1,2").unwrap_err().contains("two columns are called `a`"));
    assert!(csv("x,y\n1,2").unwrap_err().contains("no column is a field of the schema `t`"));
    let numbers = schema(&json!([{"name": "a", "type": "integer"}]));
    let error = read(source(Format::Csv, "a\n1\nx\n2\n"), numbers).unwrap_err();
    assert_eq!(error, "file:3: field `a`: `x` is no integer; correct the file, or the field in schema/t");
    let error = read(source(Format::JsonLines, "{\"a\": 1}\n\n{\"a\": \n"), texts(&["a"])).unwrap_err();
    assert!(error.starts_with("file:3: this is no JSON object"), "{error}");
}

#[test]
fn rows_before_a_mistake_come_and_nothing_after_it() {
    let mut rows = Rows::new(source(Format::Csv, "a,b\n1,2\n3\n4,5\n"), texts(&["a", "b"]));
    assert!(rows.next().unwrap().is_ok());
    assert!(rows.next().unwrap().is_err());
    assert!(rows.next().is_none());
}

/// A reader without end, which would fill any memory that is given to it.
struct Endless(u8);

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        out.fill(self.0);
        Ok(out.len())
    }
}

#[test]
fn fields_without_end_and_quotes_that_never_close_are_given_up() {
    for start in ["a,b\n1,", "a,b\n1,\"", "a,\"b"] {
        let reader = Box::new(Cursor::new(start.as_bytes().to_vec()).chain(Endless(b'x')));
        let error = read(Source { reader, ..source(Format::Csv, "") }, texts(&["a", "b"])).unwrap_err();
        assert!(error.contains("longer than 4 MiB"), "{error}");
    }
    let reader = Box::new(Endless(b','));
    let error = read(Source { reader, ..source(Format::Csv, "") }, texts(&["a"])).unwrap_err();
    assert!(error.contains("more than 1000 columns"), "{error}");
    let reader = Box::new(Cursor::new(b"{\"a\": \"".to_vec()).chain(Endless(b'x')));
    let error = read(Source { reader, ..source(Format::JsonLines, "") }, texts(&["a"])).unwrap_err();
    assert!(error.contains("longer than 4 MiB"), "{error}");
    let deep = format!("{{\"a\": {}", "[".repeat(100_000));
    assert!(read(source(Format::JsonLines, deep), texts(&["a"])).is_err(), "no stack is big enough");
    let closed = csv(format!("a,b\n1,\"{}", "x\n".repeat(10))).unwrap();
    assert_eq!(closed.len(), 1, "a quote that the end of the file closes");
}

#[test]
fn a_schema_is_made_of_all_values() {
    let text = "City ID,City,People,Area,Since,Seen at,Code,Capital,Note\n\
        1,Oslo,709000,454.0,1048-01-01,2024-01-01T10:00,007,yes,\n\
        2,Rome,2748000,1285,0753-04-21,2024-01-01 11:00:00Z,008,no,\n\
        3,Turin,,,,,009,,\n";
    let made = infer("cities", source(Format::Csv, text)).unwrap();
    let fields: Vec<_> = made.fields.iter().map(|field| format!("{} {}", field.name, field.kind)).collect();
    let expected = [
        "city_id integer",
        "city string",
        "people integer",
        "area float",
        "since date",
        "seen_at timestamp",
        "code string",
        "capital boolean",
        "note string",
    ];
    assert_eq!(fields, expected);
    assert!(made.fields[0].primary_key && !made.fields[1].primary_key);
    assert!(made.fields[1].indexed && !made.fields[3].indexed);
    assert_eq!(made.fields[0].description, "City ID", "what the column is called");
    let rows = read(source(Format::Csv, text), Arc::new(made)).unwrap();
    assert_eq!(rows[2], json!({"city_id": 3, "city": "Turin", "code": "009"}), "it fits the file that it was made of");
}

#[test]
fn columns_whose_names_become_the_same_keep_their_own_values() {
    let text = "id,First Name,first name,first_name\n1,a,b,c\n";
    let made = infer("people", source(Format::Csv, text)).unwrap();
    let rows = read(source(Format::Csv, text), Arc::new(made)).unwrap();
    assert_eq!(rows, [json!({"id": 1, "first_name": "a", "first_name_2": "b", "first_name_3": "c"})]);
}

#[test]
fn two_columns_for_one_field_are_refused() {
    let names = texts(&["first_name", "b"]);
    let told = read(source(Format::Csv, "First Name,b,first-name\n1,2,3\n"), Arc::clone(&names)).unwrap_err();
    assert_eq!(
        told,
        "file:1: the columns `First Name` and `first-name` are both for the field `first_name`; rename one of them, or add \
         a field to schema/t"
    );
    let lines = "{\"b\": \"1\"}\n{\"First Name\": \"1\", \"first-name\": \"2\"}\n";
    let told = read(source(Format::JsonLines, lines), names).unwrap_err();
    assert!(told.starts_with("file:2: the columns `First Name` and `first-name` are both"), "{told}");
}

#[test]
fn only_what_can_be_a_key_is_remembered() {
    let keys = ["id".to_owned()];
    assert!(infer::remembers("ID", &keys) && !infer::remembers("amount", &keys));
}

#[test]
fn what_does_not_tell_rows_apart_is_no_key() {
    let made = |text: &str| infer("t", source(Format::Csv, text)).unwrap();
    assert!(made("id,x\n1,a\n2,b\n").fields[0].primary_key);
    assert!(!made("id,x\n1,a\n1,b\n").fields[0].primary_key);
    assert!(!made("id,x\n1,a\n,b\n").fields[0].primary_key);
    assert!(infer("t", source(Format::Csv, "id,x\n")).unwrap_err().to_string().contains("there are no rows"));
}

#[test]
fn objects_may_differ() {
    let made = infer("t", source(Format::JsonLines, "{\"a\": 1}\n{\"b\": [1], \"a\": 2.5}\n")).unwrap();
    let fields: Vec<_> = made.fields.iter().map(|field| format!("{} {}", field.name, field.kind)).collect();
    assert_eq!(fields, ["a float", "b string"]);
}

proptest! {
    /// Whatever is written by the rules is read back.
    #[test]
    fn quoted_cells_come_back(cells in prop::collection::vec(("[a-z,;\"\n ä]{0,12}", "[a-z\"\r\n]{1,6}"), 1..20)) {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let lines = cells.iter().map(|(a, b)| format!("{},{}\n", quoted(a), quoted(b)));
        let text = format!("a,b\n{}", lines.collect::<String>());
        let expected: Vec<_> = cells.iter().map(|(a, b)| {
            let mut row = json!({"b": b});
            if !a.is_empty() {
                row["a"] = json!(a);
            }
            row
        }).collect();
        let rows = csv(text).unwrap();
        prop_assert_eq!(rows.len(), expected.len());
        for (row, expected) in rows.iter().zip(&expected) {
            prop_assert_eq!(row.as_object().unwrap().get("a"), expected.as_object().unwrap().get("a"));
            prop_assert_eq!(&row["b"], &expected["b"]);
        }
    }

    /// Nothing that a file can say is a reason to panic.
    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for format in [Format::Csv, Format::Tsv, Format::JsonLines] {
            drop(read(source(format, bytes.clone()), texts(&["a"])));
            drop(infer("t", source(format, bytes.clone())));
        }
    }
}

#[test]
fn descriptions_name_the_file_and_not_where_it_lies() {
    let made = |name: &str| {
        let source = Source { name: name.to_owned(), ..source(Format::Csv, "a\n1\n") };
        infer("t", source).unwrap().description
    };
    assert_eq!(made("/home/ann/secret plans/cities.csv"), "Rows of cities.csv");
    assert_eq!(made("cities.csv"), "Rows of cities.csv");
    assert_eq!(made(r"C:\Users\ann\cities.csv"), "Rows of cities.csv");
    assert_eq!(made("https://ann:pass@example.org/a/cities.csv?token=x/y"), "Rows of cities.csv");
}
