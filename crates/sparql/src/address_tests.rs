use super::*;

fn credentials(password: Option<&str>, token: Option<&str>) -> Credentials {
    Credentials { password: password.and_then(Secret::new), token: token.and_then(Secret::new) }
}

fn doors(text: &str) -> [String; 3] {
    let address = Address::parse(text, Credentials::default()).unwrap();
    [address.query, address.update, address.data].map(|door| door.to_string())
}

#[test]
fn a_dataset_has_three_doors_below_it() {
    let of_fuseki = ["http://h:3030/ds/query", "http://h:3030/ds/update", "http://h:3030/ds/data"];
    assert_eq!(doors("http://h:3030/ds"), of_fuseki);
    assert_eq!(doors("http://h:3030/ds/"), of_fuseki);
}

#[test]
fn doors_of_other_endpoints_are_named() {
    let named = "https://h/repositories/r?query=&update=statements&data=/rdf-graphs/service";
    let expected = ["https://h/repositories/r", "https://h/repositories/r/statements", "https://h/rdf-graphs/service"];
    assert_eq!(doors(named), expected);
    let unknown = Address::parse("http://h/ds?timeout=3", Credentials::default()).unwrap_err();
    assert_eq!(unknown, AddressError::UnknownOption("timeout".to_owned()));
}

#[test]
fn nobody_sees_a_password() {
    let address = Address::parse("http://ann:s%40cret@h:3030/ds", Credentials::default()).unwrap();
    assert_eq!(address.to_string(), "http://h:3030/ds");
    assert!(!format!("{address:?}").contains("cret"));
    assert!(matches!(&address.way_in, WayIn::User { name, password } if name == "ann" && password == "s@cret"));
}

#[test]
fn secrets_come_by_reference_and_only_one_of_them_counts() {
    let parse = |text, password, token| Address::parse(text, credentials(password, token)).map(|found| found.way_in);
    let user = parse("http://ann@h/ds", Some("secret"), None).unwrap();
    assert!(matches!(&user, WayIn::User { name, password } if name == "ann" && password == "secret"));
    assert!(matches!(parse("http://h/ds", None, Some("token")).unwrap(), WayIn::Token(_)));
    assert_eq!(parse("http://ann@h/ds", None, Some("token")).err(), Some(AddressError::TwoWaysIn));
    assert_eq!(parse("http://h/ds", Some("secret"), None).err(), Some(AddressError::NoUser));
    for wrong in ["", "ds", "ftp://h/ds", "http://h/ds#part"] {
        assert_eq!(parse(wrong, None, None).err(), Some(AddressError::NotAnAddress), "{wrong}");
    }
}
