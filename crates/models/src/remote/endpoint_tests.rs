use super::*;
use crate::remote::Key;
use trellis_orchestrator::ports::RealWorld;

fn endpoint(base: &str, key: &str) -> Result<Endpoint, EndpointError> {
    let key = Secret::new(key).map(|secret| Key { header: "authorization".to_owned(), scheme: "Bearer ", secret });
    let access = key.map_or(Access::Free, Access::Key);
    let (name, base, path) = ("openai".to_owned(), base.to_owned(), "/chat".to_owned());
    let config = EndpointConfig { name, base, path, access, ..EndpointConfig::default() };
    Endpoint::new(config, CallSettings::default(), Arc::new(RealWorld))
}

#[test]
fn keys_are_shown_nowhere() {
    let endpoint = endpoint("http://me:pass-word@localhost", "sk-very-secret").unwrap();
    let shown = format!("{endpoint:?} {:?}", endpoint.secrets);
    assert!(!shown.contains("secret") && !shown.contains("pass-word"), "{shown}");
    assert_eq!(endpoint.words("no: sk-very-secret,\n pass-word"), "no: [redacted], [redacted]");
}

#[test]
fn a_key_that_cannot_be_sent_is_not_repeated() {
    let error = endpoint("http://localhost", "sk-very\nsecret").unwrap_err();
    assert_eq!(error.to_string(), "the key for openai holds characters that cannot be sent; copy it again");
}

#[test]
fn what_was_cached_costs_less() {
    let prices = Prices { input: 2.0, cached_input: Some(0.5), output: 8.0 };
    assert_eq!(prices.cost(Some(1000), Some(400), Some(100)), Some(1200 + 200 + 800));
    assert_eq!(Prices { cached_input: None, ..prices }.cost(Some(1000), Some(400), Some(0)), Some(2000));
    assert_eq!(prices.cost(None, None, Some(1)), None);
}

#[test]
fn models_on_this_machine_and_in_private_networks_are_near() {
    let is_near = |base: &str| endpoint(base, "").unwrap().is_near();
    for near in
        ["http://localhost:11434", "http://127.0.0.1/v1", "http://[::1]:8080", "http://10.0.0.7", "http://gpu-box"]
    {
        assert!(is_near(near), "{near}");
    }
    for far in ["https://api.openai.com/v1", "https://8.8.8.8", "https://[2001:db8::1]", "https://10.example.org"] {
        assert!(!is_near(far), "{far}");
    }
}
