use super::*;

#[test]
fn addresses_are_taken_as_people_write_them() {
    for (base, shown) in [
        ("http://localhost:8000/v1", "http://localhost:8000/v1/chat"),
        (" http://h/v1// ", "http://h/v1/chat"),
        ("https://me:secret@h/v1", "https://h/v1/chat"),
        ("https://h/v1?api-version=2&key=secret", "https://h/v1/chat"),
        ("http://h/v1/chat", "http://h/v1/chat"),
        ("http://h/v1/chat/?a=b", "http://h/v1/chat"),
        ("http://h", "http://h/chat"),
    ] {
        assert_eq!(address(base, "/chat").unwrap().1, shown);
    }
    let (url, _) = address("https://h/v1?api-version=2", "/chat").unwrap();
    assert_eq!(url.as_str(), "https://h/v1/chat?api-version=2");
    let with_query = |base: &str| address(base, "/chat?api-version=3&alt=sse").unwrap().0.to_string();
    assert_eq!(with_query("https://h/v1"), "https://h/v1/chat?api-version=3&alt=sse");
    assert_eq!(with_query("https://h/v1?api-version=2"), "https://h/v1/chat?api-version=2&alt=sse");
    for base in ["", "localhost", "ftp://h/v1", "http://", "file:///etc", "me:secret@h", "h?key=secret"] {
        let error = address(base, "/chat").unwrap_err().to_string();
        assert!(error.contains("is not a web address") && !error.contains("secret"), "{base}: {error}");
    }
}

#[test]
fn labels_are_plain_whatever_they_hold() {
    assert_eq!(plain("i1/step-2_x"), "i1/step-2_x");
    assert_eq!(plain("a b%ö\n"), "a%20b%25%C3%B6%0A");
}

#[test]
fn only_this_machine_is_reached_without_a_proxy() {
    let local = |url: &str| is_this_machine(&Url::parse(url).unwrap());
    assert!(local("http://localhost:1") && local("http://127.0.0.1") && local("http://[::1]:8"));
    assert!(!local("http://10.0.0.1") && !local("https://api.openai.com") && !local("http://localhost.evil.org"));
}
