use super::*;

const LONGEST: usize = 1 << 20;

/// The lines of a stream that arrives in pieces of this size, and what is left at its end.
fn lines(stream: &[u8], piece: usize) -> Vec<Result<String, LineError>> {
    let mut lines = LineReader::new(LONGEST);
    let mut given = Vec::new();
    for bytes in stream.chunks(piece) {
        lines.push(bytes);
        given.extend(std::iter::from_fn(|| lines.next()));
    }
    given.extend(lines.rest());
    given
}

#[test]
fn lines_are_the_same_however_the_bytes_arrive() {
    let stream = "data: Möös\r\n\r\n{\"a\": \"😀\"}\nend".as_bytes();
    let expected: Vec<Result<String, LineError>> =
        ["data: Möös", "", "{\"a\": \"😀\"}", "end"].map(|line| Ok(line.to_owned())).to_vec();
    for piece in 1..=stream.len() {
        assert_eq!(lines(stream, piece), expected, "pieces of {piece}");
    }
    assert_eq!(lines(b"", 1), []);
}

#[test]
fn what_is_not_utf8_harms_its_own_line() {
    assert_eq!(lines(b"good\n\xff\xfe\nagain\n", 3), [Ok("good".into()), Err(LineError::NotUtf8), Ok("again".into())]);
    assert_eq!(lines(b"half \xc3", 3), [Err(LineError::NotUtf8)]);
}

#[test]
fn a_line_without_end_is_given_up() {
    let mut lines = LineReader::new(LONGEST);
    let mut pushed = 0;
    while lines.next().is_none() {
        lines.push(&vec![b'x'; 1 << 16]);
        pushed += 1 << 16;
    }
    assert!(pushed <= LONGEST + (1 << 16), "{pushed} bytes were kept");
}

#[test]
fn fields_have_names_and_values() {
    for (line, expected) in [
        ("data: a: b", ("data", "a: b")),
        ("data:  a", ("data", " a")),
        ("data:a", ("data", "a")),
        ("data", ("data", "")),
        (": keep-alive", ("", "keep-alive")),
    ] {
        assert_eq!(field(line), expected, "{line}");
    }
}
