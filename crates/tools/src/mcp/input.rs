//! What a server asks a person for before it does what it was called for, and how it is answered.
//!
//! Since version 2026-07-28 of the protocol a server asks in the result of a call, which is made again with the answer. Before,
//! it asked with a request of its own while the call waited: for that somebody would have to sit there, so servers of those
//! versions are told that nobody can be asked.

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest, InputRequiredResult, InputResponses,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use trellis_domain::input::{Form, GivenInput, InputRequired};
use trellis_domain::plain_lines;
use trellis_orchestrator::ports::ToolQuestion;

/// A server that asks for more than this is not answered.
const TOO_MUCH: &str = "the server asks for more than can be shown to a person";
/// The same of one whose names and values cannot be shown as they are.
const NOT_PLAIN: &str = "the server asks with names or values that no person can be shown: they hold a secret, or \
    characters that hide something";
/// The parts of a schema whose texts are names of fields and values that are answered.
const ANSWERED_BY: [&str; 3] = ["required", "enum", "const"];

/// What a server asks for, or why nobody is asked.
pub(super) fn question(asked: InputRequiredResult) -> Result<ToolQuestion, String> {
    let state = asked.request_state;
    if state.as_ref().is_some_and(|state| state.len() > InputRequired::MOST_STATE) {
        return Err(format!(
            "the state that the server wants to be told again is larger than {} KB",
            InputRequired::MOST_STATE >> 10
        ));
    }
    let requests = asked.input_requests.unwrap_or_default();
    if requests.len() > InputRequired::MOST_FORMS {
        return Err(format!("{TOO_MUCH}: {} forms at once", requests.len()));
    }
    let forms = requests.into_iter().map(|(name, request)| form(name, request)).collect::<Result<_, _>>()?;
    Ok(ToolQuestion { forms, state })
}

fn form(name: String, request: InputRequest) -> Result<Form, String> {
    let asked = match request {
        InputRequest::Elicitation(request) => request.params,
        InputRequest::CreateMessage(_) => {
            return Err("the server wants to ask a model, which it cannot here".to_owned());
        }
        InputRequest::ListRoots(_) => {
            return Err("the server asks for folders, of which there are none here".to_owned());
        }
        _ => return Err("the server asks in a way that is not known here".to_owned()),
    };
    let ElicitRequestParams::FormElicitationParams { mut message, requested_schema, .. } = asked else {
        return Err("the server wants a person to open an address, which is not possible here".to_owned());
    };
    let Ok(Value::Object(schema)) = serde_json::to_value(requested_schema) else {
        return Err("the server asks for something that is no form".to_owned());
    };
    if name.len() > Form::MOST_NAME || Value::Object(schema.clone()).to_string().len() > Form::MOST_SCHEMA {
        return Err(TOO_MUCH.to_owned());
    }
    message.truncate(message.floor_char_boundary(Form::MOST_MESSAGE));
    Ok(Form { name, message, schema })
}

/// The form as it is shown to people: without secrets, and without what steers a terminal or hides something. What an
/// answer is told by must stay as it is, so that a form in which that would change is refused.
pub(super) fn shown(form: Form, redacted: &dyn Fn(&str) -> String) -> Result<Form, String> {
    let plain = |text: &str| plain_lines(&redacted(text));
    let Form { name, message, schema } = form;
    if !is_plain(&name, &plain) {
        return Err(NOT_PLAIN.to_owned());
    }
    let mut schema = Value::Object(schema);
    make_plain(&mut schema, "", &plain)?;
    let Value::Object(schema) = schema else { return Err(NOT_PLAIN.to_owned()) };
    Ok(Form { name, message: plain(&message), schema })
}

/// Whether a name can be shown as it is, in one line.
fn is_plain(name: &str, plain: &dyn Fn(&str) -> String) -> bool {
    !name.contains('\n') && plain(name) == name
}

/// `member` is what the value is called in the schema.
fn make_plain(value: &mut Value, member: &str, plain: &dyn Fn(&str) -> String) -> Result<(), String> {
    match value {
        Value::String(text) if ANSWERED_BY.contains(&member) => {
            if !is_plain(text, plain) {
                return Err(NOT_PLAIN.to_owned());
            }
        }
        Value::String(text) => *text = plain(text),
        Value::Array(items) => items.iter_mut().try_for_each(|item| make_plain(item, member, plain))?,
        Value::Object(members) => {
            for (name, value) in members {
                if !is_plain(name, plain) {
                    return Err(NOT_PLAIN.to_owned());
                }
                make_plain(value, name, plain)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

/// The call as it is made again.
pub(super) fn answered(call: CallToolRequestParams, given: &GivenInput) -> CallToolRequestParams {
    let response = |(name, content): (&String, &Option<_>)| {
        let result = match content {
            Some(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(Clone::clone(content)))
            }
            None => ElicitResult::new(ElicitationAction::Decline),
        };
        Some((name.clone(), serde_json::to_value(result).ok()?))
    };
    let responses: InputResponses = given.answers.iter().filter_map(response).collect();
    let call = call.with_input_responses(responses);
    match &given.state {
        Some(state) => call.with_request_state(state),
        None => call,
    }
}

/// A transport that tells servers of older versions that nobody can be asked.
pub(super) struct AskedInResults<T>(pub(super) T);

impl<T: Transport<RoleClient>> Transport<RoleClient> for AskedInResults<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(request) = &mut message
            && let ClientRequest::InitializeRequest(beginning) = &mut request.request
        {
            beginning.params.capabilities.elicitation = None;
        }
        self.0.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.0.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.0.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(result: Value) -> Result<ToolQuestion, String> {
        question(serde_json::from_value(result).unwrap())
    }

    fn elicitation(message: &str) -> Value {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } })
    }

    #[test]
    fn forms_are_bounded_and_everything_else_is_refused_in_words() {
        let one = json!({ "resultType": "input_required", "inputRequests": { "a": elicitation("How many?") }, "requestState": "s" });
        let read = asked(one).unwrap();
        assert_eq!(
            (read.forms.len(), read.forms[0].message.as_str(), read.state.as_deref()),
            (1, "How many?", Some("s"))
        );
        assert_eq!(read.forms[0].check(&json!({ "n": 3 })), Ok(()));

        let long = json!({ "resultType": "input_required", "inputRequests": { "a": elicitation(&"é".repeat(9_999)) } });
        assert!(asked(long).unwrap().forms[0].message.len() <= Form::MOST_MESSAGE);
        let state = "s".repeat(InputRequired::MOST_STATE + 1);
        let large = asked(json!({ "resultType": "input_required", "requestState": state }));
        assert!(large.unwrap_err().contains("larger than 64 KB"));
        let many: serde_json::Map<_, _> = (0..9).map(|n| (n.to_string(), elicitation("?"))).collect();
        let many = asked(json!({ "resultType": "input_required", "inputRequests": many }));
        assert!(many.unwrap_err().contains("9 forms at once"));
        for (request, why) in [
            (json!({ "method": "roots/list" }), "asks for folders"),
            (
                json!({ "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } }),
                "wants to ask a model",
            ),
            (
                json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "m", "url": "https://a.example",
                    "elicitationId": "e" } }),
                "open an address",
            ),
        ] {
            let refused = asked(json!({ "resultType": "input_required", "inputRequests": { "a": request } }));
            assert!(refused.as_ref().is_err_and(|told| told.contains(why)), "{refused:?}");
        }
    }

    /// Everything of a form reaches the record and people, also what a client shows for itself.
    #[test]
    fn nothing_of_a_form_is_shown_that_is_secret_or_steers_a_terminal() {
        let redacted = |text: &str| text.replace("s3cret", "[redacted]");
        let form = |name: &str, properties: Value| Form {
            name: name.to_owned(),
            message: "Is s3cret\u{202e} yours?".to_owned(),
            schema: json!({ "type": "object", "properties": properties }).as_object().unwrap().clone(),
        };
        let field = json!({ "type": "string", "title": "A \u{1b}[2Jtoken", "description": "such as s3cret", "default": "s3cret" });
        let made = shown(form("a", json!({ "n": field })), &redacted).unwrap();
        let told = serde_json::to_string(&made).unwrap();
        assert!(!told.contains("s3cret") && !told.contains("u001b") && !told.contains('\u{202e}'), "{told}");
        assert_eq!(made.schema["properties"]["n"]["description"], "such as [redacted]");
        for (name, properties) in [
            ("s3cret", json!({ "n": { "type": "string" } })),
            ("a\nb", json!({ "n": { "type": "string" } })),
            ("a", json!({ "n\u{200b}": { "type": "string" } })),
            ("a", json!({ "n": { "type": "string", "enum": ["yes", "s3cret"] } })),
            ("a", json!({ "n": { "type": "string", "oneOf": [{ "const": "no\u{202e}", "title": "Yes" }] } })),
        ] {
            assert_eq!(shown(form(name, properties), &redacted), Err(NOT_PLAIN.to_owned()), "{name}");
        }
    }

    #[test]
    fn answers_travel_with_the_state_and_what_was_declined_is_told() {
        let content = json!({ "n": 3 });
        let answers = [("a".to_owned(), content.as_object().cloned()), ("b".to_owned(), None)];
        let given = GivenInput { state: Some("s".to_owned()), answers: answers.into() };
        let call = serde_json::to_value(answered(CallToolRequestParams::new("one"), &given)).unwrap();
        let responses = json!({ "a": { "action": "accept", "content": { "n": 3 } }, "b": { "action": "decline" } });
        assert_eq!((&call["inputResponses"], &call["requestState"]), (&responses, &json!("s")));
    }
}
