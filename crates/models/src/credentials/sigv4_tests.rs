use super::*;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
/// 2015-08-30T12:36:00Z, with a fraction that is not signed.
const SUITE_TIME: Timestamp = Timestamp::from_micros(1_440_938_160_000_007);
const SUITE: Signer<'_> = Signer {
    access_key: "AKIDEXAMPLE",
    secret_key: SECRET,
    session_token: None,
    region: "us-east-1",
    service: "service",
};
const SUITE_TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

/// What was signed, and the signature.
fn signed(signer: Signer<'_>, method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> (String, String) {
    let url = Url::parse(url).unwrap();
    let now = if signer.service == "bedrock" { BEDROCK_TIME } else { SUITE_TIME };
    let SignedHeaders { authorization, .. } =
        signer.sign(ToSign { method, url: &url, headers, body: body.as_bytes() }, now);
    let (names, signature) = authorization.split_once(", Signature=").unwrap();
    (names.split_once("SignedHeaders=").unwrap().1.to_owned(), signature.to_owned())
}

#[test]
fn a_signature_names_key_scope_and_headers() {
    let url = Url::parse("https://example.amazonaws.com/").unwrap();
    let made = SUITE.sign(ToSign { method: "GET", url: &url, headers: &[], body: b"" }, SUITE_TIME);
    let authorization = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                         SignedHeaders=host;x-amz-date, \
                         Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    assert_eq!(made.authorization, authorization);
    assert_eq!(made.date, "20150830T123600Z");
}

/// From AWS's published test suite for this signature.
#[test]
fn signatures_are_those_of_the_published_suite() {
    let with_token = Signer { session_token: Some(SUITE_TOKEN), ..SUITE };
    let unreserved = "https://example.amazonaws.com/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let trimmed: [(&str, &str); 2] = [("My-Header1", " value1"), ("My-Header2", "\"a   b   c\"")];
    let home = "https://example.amazonaws.com/";
    for (signer, method, url, headers, names, signature) in [
        (
            SUITE,
            "POST",
            home,
            &[][..],
            "host;x-amz-date",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            SUITE,
            "GET",
            unreserved,
            &[],
            "host;x-amz-date",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
        ),
        (
            SUITE,
            "GET",
            "https://example.amazonaws.com/example/$delete",
            &[],
            "host;x-amz-date",
            "a853c9b21b528b19643d00910d35b83a10c366a10833ceefb45edd6c80e40f27",
        ),
        (
            SUITE,
            "GET",
            "https://example.amazonaws.com/?Param2=value2&Param1=value1",
            &[],
            "host;x-amz-date",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            SUITE,
            "GET",
            home,
            &trimmed,
            "host;my-header1;my-header2;x-amz-date",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
        (
            with_token,
            "POST",
            home,
            &[],
            "host;x-amz-date;x-amz-security-token",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        ),
    ] {
        assert_eq!(signed(signer, method, url, headers, ""), (names.to_owned(), signature.to_owned()), "{url}");
    }
}

/// 2026-11-17T10:20:30Z.
const BEDROCK_TIME: Timestamp = Timestamp::from_micros(1_794_910_830_000_000);

/// Made with botocore: addresses that hold encoded colons and slashes, a port, a query, and a session token.
#[test]
fn signatures_are_those_of_aws_own_library() {
    let bedrock = Signer { region: "eu-central-1", service: "bedrock", ..SUITE };
    let with_token = Signer { session_token: Some("FwoGZXIvYXdzEXAMPLE/token+with=signs=="), ..bedrock };
    let host = "https://bedrock-runtime.eu-central-1.amazonaws.com";
    let named = format!("{host}/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream");
    let profile = format!(
        "{host}/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Ainference-profile%2Feu.anthropic.claude-x/converse-stream"
    );
    let local = "http://127.0.0.1:8080/model/m/converse-stream?b=2%203&a=%C3%B6";
    let (plain, temporary) = ("content-type;host;x-amz-date", "content-type;host;x-amz-date;x-amz-security-token");
    for (signer, url, names, signature) in [
        (bedrock, named.as_str(), plain, "815dcc50b4547ee2488615fea8d479dff71bce11a245d6bdf5870b7a681081bf"),
        (bedrock, &profile, plain, "6390ac658e59135ad26067b49094f5dc00763c84eafcd337a6baea606d5a32fa"),
        (bedrock, local, plain, "b26374cfcd9e5c4cb6cd20d17c069ebcf66d5dd3a076a19cb34484ab9bfbc0c0"),
        (with_token, &named, temporary, "1de19a1e3e29074159718db9bb5d9ef3d1bbd08b8f644f7efc8af6d7789e28d2"),
        (with_token, local, temporary, "f3da0f36da4909de4c66440c318840706b330e86ec5450c9ef93724e96070556"),
    ] {
        let headers = [("Content-Type", "application/json")];
        let made = signed(signer, "POST", url, &headers, r#"{"messages":[]}"#);
        assert_eq!(made, (names.to_owned(), signature.to_owned()), "{url}");
    }
}
