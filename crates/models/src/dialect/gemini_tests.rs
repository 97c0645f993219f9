use super::super::tests::{fault, pieces, read, request, thoughtful, two_functions};
use super::*;
use trellis_domain::usage::TokenDetails;

#[test]
fn it_is_asked_in_its_words() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let strict = SchemaEnforcement::Strict(schema.clone());
    let body = Gemini.body("m", &request("Be kind."), &strict, LeftOut::default());
    let expected = json!({
        "contents": [{ "role": "user", "parts": [{ "text": "Why?" }] }],
        "systemInstruction": { "parts": [{ "text": "Be kind." }] },
        "generationConfig": { "responseMimeType": "application/json", "responseJsonSchema": schema },
    });
    assert_eq!(body, expected);
    let body = Gemini.body("m", &request("Be kind."), &strict, LeftOut(FORMAT | SYSTEM));
    assert_eq!(body["generationConfig"]["responseSchema"]["properties"], json!({ "a": { "type": "STRING" } }));
    assert!(body["systemInstruction"].is_null() && body["generationConfig"]["responseJsonSchema"].is_null());
    assert_eq!(body["contents"][0]["parts"][0]["text"], "Be kind.\n\nWhy?");
    let body = Gemini.body("m", &request(""), &SchemaEnforcement::Free, LeftOut::default());
    assert!(body["generationConfig"].is_null() && body["systemInstruction"].is_null());
    let set = Sampling { temperature: Some(0.5), top_p: Some(0.9), max_tokens: Some(300), ..Sampling::default() };
    let mut body = json!({});
    Gemini.sample(&mut body, &set, LeftOut(TOP_P));
    assert_eq!(body, json!({ "generationConfig": { "temperature": 0.5, "maxOutputTokens": 300 } }));
    for (effort, thinking) in [("low", json!({ "thinkingLevel": "LOW" })), ("512", json!({ "thinkingBudget": 512 }))] {
        let mut body = json!({});
        let set = Sampling { reasoning_effort: Some(effort.to_owned()), ..Sampling::default() };
        Gemini.sample(&mut body, &set, LeftOut::default());
        assert_eq!(body["generationConfig"]["thinkingConfig"], thinking);
    }
    let text = Understood::default();
    assert!(Gemini.was_held(&text, LeftOut::default()) && !Gemini.was_held(&text, LeftOut(FORMAT)));
}

#[test]
fn functions_are_declared_and_one_of_them_must_be_called() {
    let functions = two_functions();
    let offered = SchemaEnforcement::Functions { functions: &functions, strict: true };
    let body = Gemini.body("m", &request(""), &offered, LeftOut::default());
    let declared = body["tools"][0]["functionDeclarations"].as_array().unwrap();
    let [search, _, answer] = declared.as_slice() else { panic!("{body}") };
    assert_eq!((&search["name"], &answer["name"]), (&json!("web_search"), &json!("final_answer")));
    assert_eq!(search["parametersJsonSchema"]["additionalProperties"], false);
    assert_eq!(body["toolConfig"], json!({ "functionCallingConfig": { "mode": "ANY" } }));
    let body = Gemini.body("m", &request(""), &offered, LeftOut(FORCES | FORMAT));
    let search = &body["tools"][0]["functionDeclarations"][0];
    assert!(body["toolConfig"].is_null() && search["parametersJsonSchema"].is_null());
    assert_eq!(search["parameters"]["properties"]["q"], json!({ "type": "STRING", "description": "the q" }));
}

#[test]
fn a_signature_goes_back_with_the_part_that_it_came_with() {
    let signed = thoughtful(&["google:s1"]);
    let contents = |request: &ModelRequest, left_out| {
        Gemini.body("m", request, &SchemaEnforcement::Free, left_out)["contents"].clone()
    };
    let call = json!({ "name": "f", "args": {}, "id": "c1" });
    let response = json!({ "name": "f", "response": { "output": "r" }, "id": "c1" });
    let expected = json!([
        { "role": "user", "parts": [{ "text": "Why?" }] },
        { "role": "model", "parts": [{ "functionCall": call, "thoughtSignature": "s1" }] },
        { "role": "user", "parts": [{ "functionResponse": response }] },
    ]);
    assert_eq!(contents(&signed, LeftOut::default()), expected);
    let stood_in = contents(&signed, LeftOut(THOUGHTS));
    assert_eq!(stood_in[1]["parts"][0]["thoughtSignature"], NOT_SIGNED, "it takes none of those");
    let foreign = contents(&thoughtful(&["anthropic:s1"]), LeftOut::default());
    assert!(foreign[1]["parts"][0]["thoughtSignature"].is_null(), "nobody asked for one");
}

/// What was shortened has lost its signature, and the model insists on one per step.
#[test]
fn a_missing_signature_is_stood_in_for_beside_others() {
    let call = |id: &str| ReplyPart::Call { id: Some(id.to_owned()), function: "f".to_owned(), arguments: "{}".into() };
    let mut request = thoughtful(&["google:s1"]);
    let error = ChatTurn::ToolResult { call: None, function: "f".to_owned(), text: "no".into(), is_error: true };
    request.turns.splice(0..0, [ChatTurn::Assistant { parts: vec![call("a"), call("b")] }, error]);
    let body = Gemini.body("m", &request, &SchemaEnforcement::Free, LeftOut::default());
    let first = &body["contents"][1]["parts"];
    assert_eq!((&first[0]["thoughtSignature"], &first[1]["thoughtSignature"]), (&json!(NOT_SIGNED), &Value::Null));
    assert_eq!(body["contents"][2]["parts"][0]["functionResponse"]["response"], json!({ "error": "no" }));
    assert_eq!(body["contents"][3]["parts"][0]["thoughtSignature"], "s1");
    let last = ReplyPart::Thought { text: "".into(), signature: Some("google:end".into()) };
    request.turns = vec![ChatTurn::Assistant { parts: vec![ReplyPart::Text { text: "Moss".into() }, last] }];
    let body = Gemini.body("m", &request, &SchemaEnforcement::Free, LeftOut::default());
    let parts = json!([{ "text": "Moss" }, { "text": "", "thoughtSignature": "end" }]);
    assert_eq!(body["contents"][1]["parts"], parts);
}

fn said(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }], "modelVersion": "g-1" })
}

#[test]
fn streams_are_read() {
    let mut last = said(json!([{ "text": "ss" }]));
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] = json!({ "promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 3,
        "thoughtsTokenCount": 20, "totalTokenCount": 33 });
    let (text, understood) =
        read(&Gemini, &[said(json!([{ "text": "hm", "thought": true }])), said(json!([{ "text": "Mo" }])), last]);
    let expected = Understood {
        model: Some("g-1".to_owned()),
        in_token: Some(10),
        out_token: Some(23),
        details: TokenDetails { cached: Some(4), reasoning: Some(20), ..TokenDetails::default() },
        stop: Some(Stop::Finished),
        ..Understood::default()
    };
    assert_eq!((text.as_str(), understood), ("Moss", expected));
    let finish = |reason: &str| json!({ "candidates": [{ "finishReason": reason }] });
    assert_eq!(read(&Gemini, &[finish("MAX_TOKENS")]).1.stop, Some(Stop::Length));
    assert_eq!(read(&Gemini, &[finish("SAFETY")]).1.stop, Some(Stop::Withheld));
    let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } });
    assert_eq!(read(&Gemini, &[blocked]).1.stop, Some(Stop::Withheld));
    assert!(read(&Gemini, &[json!({ "status": "ok" })]).1.unrecognised.is_some());
    let at_once = json!([said(json!([{ "text": "Mo" }])), said(json!([{ "text": "ss" }]))]);
    let (text, understood) = read(&Gemini, &[at_once]);
    assert_eq!((text.as_str(), understood.over), ("Moss", true));
}

#[test]
fn calls_are_read_with_their_signatures() {
    let call = |id: Option<&str>| json!({ "name": "f", "args": { "q": 1 }, "id": id });
    let parts = json!([{ "functionCall": call(Some("a")), "thoughtSignature": "s1" }, { "functionCall": call(None) }]);
    let mut understood = Understood::default();
    let mut message = said(parts);
    message["candidates"][0]["finishReason"] = json!("STOP");
    let said = Gemini.read(&message.to_string(), &mut understood).unwrap();
    let piece = |place, id: Option<&str>| {
        let (id, function) = (id.map(str::to_owned), Some("f".to_owned()));
        Said::Call(CallPiece { place, id, function, arguments: "{\"q\":1}".to_owned() })
    };
    assert_eq!(said, [Said::Signature("google:s1".to_owned()), piece(1, Some("a")), piece(2, None)]);
    assert_eq!(understood.stop, Some(Stop::Calls));
    let alone = super::tests::said(json!([{ "functionCall": call(None) }]));
    assert_eq!(pieces(&Gemini, &alone).len(), 1);
}

#[test]
fn errors_are_read_alone_and_in_a_list() {
    let error = json!({ "error": { "code": 400, "message": "no", "status": "INVALID_ARGUMENT" } });
    for message in [error.clone(), json!([error])] {
        let fault = fault(&Gemini, &message.to_string());
        assert_eq!((fault.words.as_str(), fault.passing, fault.status), ("no", false, Some(400)));
    }
    let busy = json!({ "error": { "code": 503, "message": "overloaded", "status": "UNAVAILABLE" } });
    assert!(fault(&Gemini, &busy.to_string()).passing);
    let broken = json!({ "candidates": [{ "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "call:f(" }] });
    let fault = fault(&Gemini, &broken.to_string());
    assert!(fault.passing && fault.words == "the reply ended with MALFORMED_FUNCTION_CALL: call:f(");
}
