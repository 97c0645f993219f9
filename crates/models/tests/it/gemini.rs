//! Gemini and Vertex AI over real connections.

use crate::ask::{KEY, ask, held, permanent, transient};
use crate::configured::{ARGUMENTS, FUNCTION, called, connected, connected_in, gone_on_with};
use crate::stub::{Script, Seen, Stub, answer, stream};
use crate::tools::offering;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rsa::KeyPair;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use trellis_domain::Timestamp;
use trellis_domain::parts::{ReplyPart, StopReason};
use trellis_models::{KeyPlace, Provider, ProviderSettings};
use trellis_orchestrator::ports::{BoxFuture, World};

fn provider(stub: &Stub) -> Arc<dyn Provider> {
    let own = ProviderSettings {
        address: Some(format!("{}/v1beta", stub.base)),
        key: Some(KeyPlace::Variable("GEMINI_API_KEY".to_owned())),
        ..ProviderSettings::default()
    };
    connected("gemini/gemini-3-pro", own, &[("GEMINI_API_KEY", KEY)])
}

fn events(messages: &[Value]) -> Script {
    stream(messages.iter().map(|message| format!("data: {message}\r\n\r\n")))
}

fn said(parts: Value, finish: Option<&str>) -> Value {
    let candidate = json!({ "content": { "role": "model", "parts": parts }, "finishReason": finish, "index": 0 });
    json!({ "candidates": [candidate], "modelVersion": "gemini-3-pro-001",
        "usageMetadata": { "promptTokenCount": 11, "candidatesTokenCount": 3, "thoughtsTokenCount": 1 } })
}

/// A reply in words.
pub(crate) fn spoken(text: &str) -> Script {
    events(&[said(json!([{ "text": text }]), Some("STOP"))])
}

pub(crate) fn signed_call(function: &str, arguments: &str) -> Script {
    let call = json!({ "name": function, "args": serde_json::from_str::<Value>(arguments).unwrap() });
    events(&[said(json!([{ "functionCall": call, "thoughtSignature": "c2ln" }]), Some("STOP"))])
}

#[tokio::test]
async fn a_call_goes_back_with_its_signature() {
    let stub = Stub::always(signed_call(FUNCTION, ARGUMENTS)).await;
    let provider = provider(&stub);
    let reply = ask(&*provider, &offering()).await.0.unwrap();
    assert_eq!(called(&reply), (FUNCTION, serde_json::from_str(ARGUMENTS).unwrap()));
    assert_eq!((reply.model.as_str(), reply.in_token, reply.out_token), ("gemini/gemini-3-pro-001", Some(11), Some(4)));
    assert_eq!((reply.stop, reply.enforced), (Some(StopReason::Calls), true));
    ask(&*provider, &gone_on_with(&reply)).await.0.unwrap();
    let [first, second] = &stub.seen()[..] else { panic!("two requests") };
    assert_eq!(first.path, "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse");
    assert_eq!(first.headers["x-goog-api-key"], KEY);
    assert_eq!(first.body["toolConfig"]["functionCallingConfig"]["mode"], "ANY");
    assert_eq!(second.body["contents"][1]["parts"][0]["thoughtSignature"], "c2ln");
    let response = json!({ "name": FUNCTION, "response": { "output": "Moss." } });
    assert_eq!(second.body["contents"][2]["parts"][0]["functionResponse"], response);
}

/// In Google's words: a call of another model has no signature, and this one insists on it.
#[tokio::test]
async fn a_model_that_insists_on_signatures_gets_what_stands_for_one() {
    let missing = json!([{ "error": { "code": 400, "status": "INVALID_ARGUMENT",
        "message": "Function call is missing a thought_signature in functionCall parts." } }]);
    let stub = Stub::start(move |_, seen: &Seen| {
        let part = &seen.body["contents"][1]["parts"][0];
        let is_missing = part["functionCall"].is_object() && part["thoughtSignature"].is_null();
        if is_missing { answer("400 Bad Request", "", &missing.to_string()) } else { signed_call(FUNCTION, ARGUMENTS) }
    })
    .await;
    let provider = provider(&stub);
    let mut reply = ask(&*provider, &offering()).await.0.unwrap();
    reply.parts.retain(|part| !matches!(part, ReplyPart::Thought { .. }));
    ask(&*provider, &gone_on_with(&reply)).await.0.unwrap();
    let stood_in = &stub.seen()[2].body["contents"][1]["parts"][0]["thoughtSignature"];
    assert_eq!((stub.seen().len(), stood_in), (3, &json!("skip_thought_signature_validator")));
}

#[tokio::test]
async fn schemas_are_said_in_the_older_form_where_the_newer_is_not_known() {
    let unknown = json!({ "error": { "code": 400, "status": "INVALID_ARGUMENT",
        "message": "Invalid JSON payload received. Unknown name \"responseJsonSchema\" at 'generation_config'" } });
    let stub = Stub::start(move |_, seen| {
        if !seen.body["generationConfig"]["responseJsonSchema"].is_null() {
            return answer("400 Bad Request", "", &unknown.to_string());
        }
        events(&[
            said(json!([{ "text": "{\"pattern\":" }]), None),
            said(json!([{ "text": "\"react\"}" }]), Some("STOP")),
        ])
    })
    .await;
    let reply = ask(&*provider(&stub), &held()).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.enforced), ("{\"pattern\":\"react\"}", false));
    let format = &stub.seen()[1].body["generationConfig"];
    assert_eq!(
        format["responseSchema"]["properties"]["pattern"],
        json!({ "type": "STRING", "enum": ["react", "plan"] })
    );
}

#[tokio::test]
async fn errors_in_lists_and_in_streams_say_what_was_wrong() {
    let error = |code: u16, message: &str| json!({ "error": { "code": code, "message": message } });
    let stub = Stub::each([
        answer("429 Too Many Requests", "", &json!([error(429, "Quota exceeded.")]).to_string()),
        events(&[error(503, "The model is overloaded.")]),
        events(&[json!({ "promptFeedback": { "blockReason": "SAFETY" } })]),
        answer("200 OK", "", &json!([error(400, "API key not valid.")]).to_string()),
    ])
    .await;
    let provider = provider(&stub);
    assert_eq!(
        transient(ask(&*provider, &offering()).await.0).0,
        "gemini answered 429 Too Many Requests: Quota exceeded."
    );
    assert_eq!(transient(ask(&*provider, &offering()).await.0).0, "gemini failed: The model is overloaded.");
    assert_eq!(permanent(ask(&*provider, &offering()).await.0), "gemini withheld the reply by its filter");
    assert_eq!(permanent(ask(&*provider, &offering()).await.0), "gemini failed: API key not valid.");
}

/// A clock that a test sets.
#[derive(Debug)]
struct Clock(AtomicI64);

impl Clock {
    fn starting() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_794_910_830_000_000)))
    }

    fn pass(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_micros()).unwrap(), Ordering::SeqCst);
    }
}

impl World for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn fresh_id(&self) -> String {
        "id".to_owned()
    }
}

/// Made for these tests and used nowhere else.
const PRIVATE_KEY: &str = include_str!("../service-account-for-tests.pem");

/// A server that gives tokens, numbered and valid for an hour, and takes nothing but these.
fn cloud(seen: &Seen, number: usize) -> Script {
    let token = |number: usize| {
        json!({ "access_token": format!("ya29.token-{number}"), "expires_in": 3599,
        "token_type": "Bearer" })
    };
    match seen.path.as_str() {
        "/token" | "/computeMetadata/v1/instance/service-accounts/default/token" => {
            answer("200 OK", "content-type: application/json\r\n", &token(number).to_string())
        }
        _ => events(&[said(json!([{ "text": "Moss" }]), Some("STOP"))]),
    }
}

fn project(stub: &Stub) -> ProviderSettings {
    ProviderSettings { address: Some(stub.base.clone()), ..ProviderSettings::default() }
}

/// The key file of a service account whose tokens this server gives, and which variables name it.
struct KeyFile(std::path::PathBuf);

impl KeyFile {
    fn write(stub: &Stub, name: &str) -> Self {
        let file = json!({ "type": "service_account", "client_email": "me@p.iam.gserviceaccount.com",
            "private_key": PRIVATE_KEY, "private_key_id": "k1", "token_uri": format!("{}/token", stub.base) });
        let place = std::env::temp_dir().join(format!("trellis-{}-{name}.json", std::process::id()));
        std::fs::write(&place, file.to_string()).unwrap();
        Self(place)
    }

    fn variables(&self) -> [(&str, &str); 3] {
        let place = self.0.to_str().unwrap();
        [
            ("GOOGLE_CLOUD_PROJECT", "p"),
            ("GOOGLE_CLOUD_LOCATION", "europe-west4"),
            ("GOOGLE_APPLICATION_CREDENTIALS", place),
        ]
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

#[tokio::test]
async fn a_service_account_exchanges_its_signature_for_a_token_that_is_kept_and_renewed() {
    let stub = Stub::start(|n, seen| cloud(seen, n)).await;
    let file = KeyFile::write(&stub, "renewed");
    let clock = Clock::starting();
    let world: Arc<dyn World> = Arc::<Clock>::clone(&clock);
    let model = connected_in("vertex/gemini-2.5-flash", project(&stub), &file.variables(), world).unwrap();
    assert_eq!(ask(&*model, &held()).await.0.unwrap().text, "Moss");
    ask(&*model, &held()).await.0.unwrap();
    clock.pass(Duration::from_secs(3599 - 226));
    ask(&*model, &held()).await.0.unwrap();
    clock.pass(Duration::from_secs(2));
    ask(&*model, &held()).await.0.unwrap();
    let seen = stub.seen();
    let paths: Vec<_> = seen.iter().map(|seen| seen.path.as_str()).collect();
    let asked =
        "/v1/projects/p/locations/europe-west4/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
    assert_eq!(paths, ["/token", asked, asked, asked, "/token", asked], "renewed shortly before it runs out");
    let bearers: Vec<_> = seen.iter().filter_map(|seen| seen.headers.get("authorization")).collect();
    let [first, second] = ["Bearer ya29.token-0", "Bearer ya29.token-4"];
    assert_eq!(bearers, [first, first, first, second]);
    assert!(is_signed(&String::from_utf8(seen[0].bytes.clone()).unwrap(), &stub.base));
}

/// Whether a form holds what Google asks for, signed with the key of the account.
fn is_signed(form: &str, base: &str) -> bool {
    let assertion =
        form.strip_prefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant%2Dtype%3Ajwt%2Dbearer&assertion=").unwrap();
    let (said, signature) = assertion.rsplit_once('.').unwrap();
    let claims = BASE64.decode(said.split_once('.').unwrap().1).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(
        (&claims["aud"], &claims["iss"]),
        (&json!(format!("{base}/token")), &json!("me@p.iam.gserviceaccount.com"))
    );
    let key = PrivatePkcs8KeyDer::from_pem_slice(PRIVATE_KEY.as_bytes()).unwrap();
    let key = KeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public());
    public.verify(said.as_bytes(), &BASE64.decode(signature).unwrap()).is_ok()
}

#[tokio::test]
async fn a_machine_of_the_cloud_is_asked_for_a_token() {
    let stub = Stub::start(|n, seen| cloud(seen, n)).await;
    let host = stub.base.strip_prefix("http://").unwrap().to_owned();
    let variables =
        [("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "global"), ("GCE_METADATA_HOST", host.as_str())];
    let model = connected("vertex/gemini-2.5-flash", project(&stub), &variables);
    ask(&*model, &held()).await.0.unwrap();
    let [token, asked] = &stub.seen()[..] else { panic!("two requests") };
    assert_eq!(token.headers["metadata-flavor"], "Google");
    assert!(asked.path.starts_with("/v1/projects/p/locations/global/publishers/google/models/"));
    assert_eq!(asked.headers["authorization"], "Bearer ya29.token-0");
}

#[tokio::test]
async fn a_token_that_is_refused_says_why_and_one_that_is_echoed_is_shown_nowhere() {
    let refused = json!({ "error": "invalid_grant", "error_description": "Invalid JWT Signature." });
    let stub = Stub::start(move |n, seen| match (n, seen.path.as_str()) {
        (0, _) => answer("400 Bad Request", "", &refused.to_string()),
        (1, _) => answer("503 Service Unavailable", "", "busy"),
        (_, "/token") => cloud(seen, n),
        (_, _) => answer("403 Forbidden", "", &json!({ "error": { "message": "ya29.token-2 may not" } }).to_string()),
    })
    .await;
    let file = KeyFile::write(&stub, "refused");
    let model = connected("vertex/m", project(&stub), &file.variables());
    let reason = permanent(ask(&*model, &held()).await.0);
    assert!(reason.contains("invalid_grant: Invalid JWT Signature.; is the key"), "{reason}");
    assert!(transient(ask(&*model, &held()).await.0).0.contains("503"));
    let reason = permanent(ask(&*model, &held()).await.0);
    assert_eq!(reason, "vertex answered 403 Forbidden: [redacted] may not");
}

#[tokio::test]
async fn an_old_token_is_used_up_if_there_is_no_new_one() {
    let stub = Stub::start(|n, seen| if n == 2 { answer("500 Oops", "", "") } else { cloud(seen, n) }).await;
    let file = KeyFile::write(&stub, "used-up");
    let clock = Clock::starting();
    let world: Arc<dyn World> = Arc::<Clock>::clone(&clock);
    let model = connected_in("vertex/m", project(&stub), &file.variables(), world).unwrap();
    ask(&*model, &held()).await.0.unwrap();
    clock.pass(Duration::from_secs(3500));
    ask(&*model, &held()).await.0.unwrap();
    assert_eq!(stub.seen()[3].headers["authorization"], "Bearer ya29.token-0");
}

#[test]
fn what_is_missing_for_a_cloud_is_named() {
    let world: Arc<dyn World> = Clock::starting();
    let missing = |wish: &str, variables: &[(&str, &str)]| {
        let refused = connected_in(wish, ProviderSettings::default(), variables, Arc::clone(&world));
        refused.map(|_| ()).unwrap_err().to_string()
    };
    let project = ("GOOGLE_CLOUD_PROJECT", "p");
    assert!(missing("vertex/m", &[]).contains("GOOGLE_CLOUD_PROJECT"));
    assert!(missing("vertex/m", &[project]).contains("GOOGLE_CLOUD_LOCATION"));
    let located = [project, ("GOOGLE_CLOUD_LOCATION", "global"), ("GOOGLE_APPLICATION_CREDENTIALS", "/no/such.json")];
    let reason = missing("vertex/m", &located);
    assert!(reason.contains("/no/such.json") && reason.contains("GOOGLE_APPLICATION_CREDENTIALS"), "{reason}");
    assert!(missing("gemini/m", &[]).contains("GEMINI_API_KEY"));
    assert!(missing("bedrock/m", &[]).contains("AWS_REGION"));
    assert!(missing("bedrock/m", &[("AWS_REGION", "eu-central-1")]).contains("AWS_ACCESS_KEY_ID"));
}
