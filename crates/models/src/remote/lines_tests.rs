use super::*;

#[test]
fn a_message_of_very_many_lines_is_read_once() {
    let mut messages = Messages::new(Framing::Events);
    assert_eq!(messages.line("data: [0".to_owned()), Ok(Brought::Nothing));
    // Reading it again with each line would take an hour.
    let lines = (LONGEST_LINE - 16) / 4;
    for _ in 0..lines {
        assert_eq!(messages.line("data: ,1 ".to_owned()), Ok(Brought::Nothing));
    }
    assert_eq!(messages.line("data: ]".to_owned()), Ok(Brought::Nothing));
    let Ok(Brought::Message(message)) = messages.line(String::new()) else { panic!("no message") };
    assert_eq!(message.len(), "[0".len() + lines * "\n,1 ".len() + "\n]".len());
}

/// What a stream of these lines brings, and what was not recognised.
fn messages(framing: Framing, stream: &str) -> (Vec<Brought>, Option<String>) {
    let mut messages = Messages::new(framing);
    let mut brought: Vec<_> = stream.lines().map(|line| messages.line(line.to_owned()).unwrap()).collect();
    brought.push(messages.end());
    brought.retain(|brought| *brought != Brought::Nothing);
    (brought, messages.unrecognised)
}

fn message(text: &str) -> Brought {
    Brought::Message(text.to_owned())
}

#[test]
fn events_are_put_together() {
    for (stream, expected) in [
        ("data: a\n\ndata:b\n\n", vec![message("a"), message("b")]),
        (
            ": keep-alive\n\nevent: x\nid: 7\nretry: 3\ndata: a\n\n: more\n\ndata: [DONE]",
            vec![message("a"), message("[DONE]")],
        ),
        ("data: {\"a\":\ndata:  1}\n\n", vec![message("{\"a\":\n 1}")]),
        ("data: {}\ndata: {\"b\": 2}\ndata: [DONE]\n", vec![message("{}"), message("{\"b\": 2}"), message("[DONE]")]),
        ("\u{feff}data: a\n\n", vec![message("a")]),
        ("data: [1,\ndata: 2]\n\ndata: 3\ndata: 4\n", vec![message("[1,\n2]"), message("3"), message("4")]),
        ("data:\n\ndata: \n\n", vec![]),
    ] {
        assert_eq!(messages(Framing::Events, stream), (expected, None), "{stream}");
    }
}

#[test]
fn a_server_that_does_not_stream_is_noticed() {
    let document = |text: &str| vec![Brought::Document(text.to_owned())];
    assert_eq!(messages(Framing::Events, "\n\n{\"a\": 1}").0, document("{\"a\": 1}"));
    assert_eq!(messages(Framing::JsonLines, "{").0, document("{"));
    assert_eq!(messages(Framing::JsonLines, "{\"a\": 1}\n\n{}").0, [message("{\"a\": 1}"), message("{}")]);
}

#[test]
fn what_belongs_to_no_event_is_kept_for_the_message() {
    let (brought, unrecognised) = messages(Framing::Events, "<html>\n<body>hello</body>\n");
    assert_eq!((brought, unrecognised.as_deref()), (vec![], Some("<html>")));
}
