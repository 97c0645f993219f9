use super::*;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

/// Made for these tests and used nowhere else.
const KEY: &str = include_str!("../../tests/service-account-for-tests.pem");

fn key_file(kind: &str, key: &str) -> String {
    json!({ "type": kind, "client_email": "trellis@example.iam.gserviceaccount.com", "private_key": key,
        "private_key_id": "k1", "token_uri": "https://oauth2.example.com/token" })
    .to_string()
}

#[test]
fn an_assertion_says_who_asks_for_what_and_is_signed() {
    let account = ServiceAccount::read(&key_file("service_account", KEY)).unwrap();
    let assertion = account.assertion(Timestamp::from_micros(1_794_910_830_500_000)).unwrap();
    let parts: Vec<_> = assertion.split('.').collect();
    let [header, claims, signature] = parts.as_slice() else { panic!("{assertion}") };
    let read = |part: &str| -> Value { serde_json::from_slice(&BASE64.decode(part).unwrap()).unwrap() };
    assert_eq!(read(header), json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }));
    let expected = json!({
        "iss": "trellis@example.iam.gserviceaccount.com", "aud": "https://oauth2.example.com/token",
        "scope": "https://www.googleapis.com/auth/cloud-platform", "iat": 1_794_910_830, "exp": 1_794_914_430,
    });
    assert_eq!(read(claims), expected);
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, account.key.public());
    let signature = BASE64.decode(signature).unwrap();
    public.verify(format!("{header}.{claims}").as_bytes(), &signature).unwrap();
    assert!(public.verify(b"something else", &signature).is_err());
}

#[test]
fn what_is_no_key_file_is_refused_with_the_reason() {
    let refused = |file: &str| ServiceAccount::read(file).map(|_| ()).unwrap_err();
    assert_eq!(refused("{}"), KeyFileError::NotAServiceAccount);
    assert_eq!(refused(&key_file("authorized_user", KEY)), KeyFileError::NotAServiceAccount);
    assert_eq!(refused(&key_file("service_account", "no key")), KeyFileError::UnusableKey);
    let broken = KEY.replace("MII", "AAA");
    assert_eq!(refused(&key_file("service_account", &broken)), KeyFileError::UnusableKey);
}
