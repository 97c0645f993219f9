use super::*;
use proptest::prelude::*;

/// Written and read by AWS's own library.
const BY_BOTOCORE: &str = "0000009d00000057b9bbf89f0b3a6576656e742d74797065070011636f6e74656e74426c6f636b44656c74610d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b22636f6e74656e74426c6f636b496e646578223a302c2264656c7461223a7b2274657874223a224869227d2c2270223a226162227d8b38b268";
const READ: &str = r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"Hi"},"p":"ab"}}"#;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// A frame with these headers, each with its type.
fn frame(headers: &[(&str, u8, &[u8])], payload: &str) -> Vec<u8> {
    let mut written = Vec::new();
    for (name, kind, value) in headers {
        written.push(u8::try_from(name.len()).unwrap());
        written.extend(name.bytes());
        written.push(*kind);
        if matches!(kind, 6 | 7) {
            written.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        }
        written.extend(*value);
    }
    let length = |length: usize| u32::try_from(length).unwrap().to_be_bytes();
    let mut frame = [length(PRELUDE + written.len() + payload.len() + CHECKSUM), length(written.len())].concat();
    frame.extend(checksum(&frame).to_be_bytes());
    frame.extend(written);
    frame.extend(payload.bytes());
    frame.extend(checksum(&frame).to_be_bytes());
    frame
}

fn read(bytes: &[u8]) -> Vec<Result<String, FrameError>> {
    let mut frames = FrameReader::default();
    frames.push(bytes);
    std::iter::from_fn(|| frames.next()).take(3).collect()
}

#[test]
fn checksums_are_those_of_everybody_else() {
    assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
}

#[test]
fn frames_are_read_however_they_are_split() {
    let whole = bytes(BY_BOTOCORE);
    let both = [whole.clone(), whole.clone()].concat();
    assert_eq!(read(&both), [Ok(READ.to_owned()), Ok(READ.to_owned())]);
    let mut frames = FrameReader::default();
    let mut seen = Vec::new();
    for byte in both {
        frames.push(&[byte]);
        seen.extend(frames.next());
    }
    assert_eq!((seen.len(), frames.is_cut()), (2, false));
    frames.push(&whole[..20]);
    assert!(frames.next().is_none() && frames.is_cut());
}

#[test]
fn every_kind_of_header_is_stepped_over() {
    let headers: [(&str, u8, &[u8]); 11] = [
        ("a", 0, b""),
        ("b", 1, b""),
        ("c", 2, b"1"),
        ("d", 3, b"12"),
        ("e", 4, b"1234"),
        ("f", 5, b"12345678"),
        ("g", 6, b"bytes"),
        ("h", 8, b"12345678"),
        ("i", 9, b"1234567812345678"),
        (":message-type", 7, b"event"),
        (":event-type", 7, b"metadata"),
    ];
    assert_eq!(read(&frame(&headers, "{}")), [Ok(r#"{"metadata":{}}"#.to_owned())]);
    assert_eq!(read(&frame(&[("a", 10, b"")], "{}")), [Err(FrameError::Damaged)]);
}

#[test]
fn failures_are_messages_too() {
    let exception: [(&str, u8, &[u8]); 2] =
        [(":message-type", 7, b"exception"), (":exception-type", 7, b"throttlingException")];
    let said = read(&frame(&exception, r#"{"message":"slow down"}"#));
    assert_eq!(said, [Ok(r#"{"throttlingException":{"message":"slow down"}}"#.to_owned())]);
    let error: [(&str, u8, &[u8]); 2] = [(":error-code", 7, b"InternalError"), (":error-message", 7, b"oh \"no\"")];
    let said = read(&frame(&error, ""));
    assert_eq!(said, [Ok(r#"{"error":{"code":"InternalError","message":"oh \"no\""}}"#.to_owned())]);
}

#[test]
fn damage_is_noticed_and_lengths_are_bounded() {
    let whole = bytes(BY_BOTOCORE);
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        assert_eq!(read(&damaged)[..1], [Err(FrameError::Damaged)], "byte {place}");
    }
    let claiming = |total: u32, headers: u32| {
        let mut frame = [total.to_be_bytes(), headers.to_be_bytes()].concat();
        frame.extend(checksum(&frame).to_be_bytes());
        read(&frame)[..1].to_vec()
    };
    assert_eq!(claiming(u32::MAX, 0), [Err(FrameError::TooLong)]);
    assert_eq!(claiming(1 << 20, 1 << 19), [Err(FrameError::TooLong)]);
    assert_eq!(claiming(15, 0), [Err(FrameError::Damaged)]);
    assert_eq!(claiming(100, 99), [Err(FrameError::Damaged)]);
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200), pieces in 1..9_usize) {
        let mut frames = FrameReader::default();
        for piece in bytes.chunks(pieces) {
            frames.push(piece);
            if frames.next().is_some_and(|read| read.is_err()) {
                break;
            }
        }
    }
}
