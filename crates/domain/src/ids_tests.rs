use super::*;

#[test]
fn ids_are_derived_and_told_apart_by_every_part() {
    let scope = |workspace: &str, flow: &str| Scope {
        workspace: Workspace::new(workspace).unwrap(),
        flow: Flow::new(flow).unwrap(),
    };
    let request = RequestId::new("r").unwrap();
    let session = SessionId::for_request(&scope("a", "b"), &request);
    assert_eq!(session, SessionId::for_request(&scope("a", "b"), &request), "the same request, the same session");
    assert_ne!(session, SessionId::for_request(&scope("ab", "x"), &request));
    assert_ne!(session, SessionId::for_request(&scope("b", "a"), &request));
    let children = [session.child(1, 0), session.child(1, 1), session.child(2, 0), session.child(0, 11)];
    for (place, child) in children.iter().enumerate() {
        assert!(!children[..place].contains(child), "siblings and rounds differ");
    }
    assert_ne!(session.correlation(1), session.correlation(2));
    assert_ne!(session.beside(Hash::of("x")), session.beside(Hash::of("y")));
}

#[test]
fn a_known_derivation_never_changes() {
    // Ids in stored folders depend on it.
    let session = SessionId::for_request(&Scope::default(), &RequestId::new("r").unwrap());
    assert_eq!(session.as_str(), "3acd9942-3ef7-51c2-8fe9-8297dd8dcbd3");
}

#[test]
fn what_would_break_an_iri_or_a_key_is_refused() {
    for bad in ["", "a/b", "a b", "a#b", "a?b", "a%20", "<a>", "a\"", "a\0", "a\n", "{a}", "a|b", "a\\b", "a^b", "a`b"]
    {
        assert!(SessionId::new(bad).is_err(), "{bad:?}");
    }
    assert!(SessionId::new(&"x".repeat(201)).is_err());
    for good in ["8f2c1a", "urn:uuid:1", "a.b_c~d@e+f=g,h-i", "größe"] {
        assert!(SessionId::new(good).is_ok(), "{good}");
    }
}

#[test]
fn names_become_safe_parts_of_iris() {
    let workspace = Workspace::default();
    assert_eq!(
        config_iri(&workspace, "tool", Some("Knowledge query")),
        "urn:trellis:config:default:tool:Knowledge%20query"
    );
    assert_eq!(config_iri(&workspace, "tool", None), "urn:trellis:config:default:tool");
}
