//! What a model is found to be able to do.

use crate::ask::{patient, provider};
use crate::speech;
use crate::stub::{Script, Seen, Stub, answer, stream};
use serde_json::json;
use trellis_models::{Can, examine};

fn said(name: &'static str, seen: &Seen) -> Script {
    let offers = seen.body["tools"].as_array().is_some_and(|tools| tools.len() > 1);
    let schema = seen.body.to_string().contains("\"small\"");
    stream(match (offers, schema) {
        (true, _) => speech::call(name, "weather", &["{\"thought\": \"look\", \"place\": \"Marrowby\"}"]),
        (false, true) => speech::reply(name, &["{\"size\": \"large\"}"]),
        (false, false) => speech::reply(name, &["mo", "ss"]),
    })
}

#[tokio::test]
async fn an_obedient_model_can_do_everything() {
    let stub = Stub::start(|_, seen| said("openai", seen)).await;
    let examined = examine(&*provider("openai", &stub.base, patient())).await;
    let can: Vec<_> = examined.findings.iter().map(|finding| (finding.what, finding.can)).collect();
    assert_eq!(
        can,
        [("reply", Can::Yes), ("schema", Can::Yes), ("functions", Can::Yes), ("context", Can::Partly)],
        "{examined:?}"
    );
    assert_eq!(examined.findings[0].says, "streams, 11 tokens read, 4 written, as openai/m-2026");
    assert!(examined.is_reached && examined.model == "openai/m");
}

#[tokio::test]
async fn what_is_refused_or_overlooked_is_told_in_the_providers_words() {
    let stub = Stub::probed(|_, seen| {
        let no = |words: &str| answer("400 Bad Request", "", &json!({ "error": { "message": words } }).to_string());
        match seen.headers["x-trellis-prompt"].as_str() {
            "probe" => stream(speech::reply("openai", &["{\"colour\": \"blue\"}"])),
            _ if seen.body["tools"].is_array() => no("tools are not supported"),
            _ => said("openai", seen),
        }
    })
    .await;
    let examined = examine(&*provider("openai", &stub.base, patient())).await;
    let [_, schema, functions, _] = &examined.findings[..] else { panic!("{examined:?}") };
    assert_eq!(schema.can, Can::Partly);
    assert!(schema.says.contains("it wrote {\"colour\": \"blue\"}"), "{schema:?}");
    assert_eq!(functions.can, Can::No);
    assert!(functions.says.contains("tools are not supported"), "{functions:?}");
}

#[tokio::test]
async fn a_model_that_knows_json_and_no_schemas_is_told_of_as_such() {
    let stub = Stub::start(|_, seen| {
        let words = json!({ "error": { "message": "json_schema is not supported" } }).to_string();
        let refused = seen.body["response_format"]["type"] == "json_schema";
        if refused { answer("400 Bad Request", "", &words) } else { said("openai", seen) }
    })
    .await;
    let examined = examine(&*provider("openai", &stub.base, patient())).await;
    let schema = &examined.findings[1];
    assert_eq!(schema.can, Can::Partly);
    assert!(schema.says.contains("sees to it that it is JSON") && schema.refused.len() == 2, "{schema:?}");
}

#[tokio::test]
async fn a_model_that_does_not_answer_is_not_asked_further() {
    let stub = Stub::always(answer("401 Unauthorized", "", "{\"error\": \"wrong key\"}")).await;
    let examined = examine(&*provider("openai", &stub.base, patient())).await;
    assert_eq!((examined.is_reached, examined.findings.len(), stub.seen().len()), (false, 1, 1));
    assert!(examined.findings[0].says.contains("wrong key"), "{examined:?}");
}
