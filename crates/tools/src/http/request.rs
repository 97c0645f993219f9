//! What a tool sends: the item's templates with the arguments of a call in them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, Url};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What may stand in a part of an address as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Headers that say where a request goes or where it ends: whoever could set them could speak to somebody else.
const RESERVED: [&str; 5] = ["host", "content-length", "transfer-encoding", "connection", "idempotency-key"];
/// What the place of a secret begins with.
const SECRET: &str = "secret:";
const METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// A request with places for arguments: `{name}` in the address, in the query, in headers and in texts of the body.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    method: Method,
    url: String,
    query: Map<String, Value>,
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    /// Arguments that a call may leave out, by the tool's own words.
    optional: BTreeSet<String>,
}

/// One request, ready but for its secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct Filled {
    pub method: Method,
    pub url: Url,
    pub headers: BTreeMap<String, Vec<HeaderPart>>,
    pub body: Option<Value>,
}

/// A piece of a header's value. What an argument says can never become a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderPart {
    Text(String),
    /// The name of a secret.
    Secret(String),
}

impl Template {
    /// The template in a tool's item. The error says which member is wrong, and how.
    pub fn read(settings: &Map<String, Value>) -> Result<Self, (&'static str, String)> {
        let text = |name: &'static str| match settings.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err((name, format!("`{name}` is no text"))),
        };
        let url = text("url")?.filter(|url| !url.trim().is_empty()).ok_or(("url", "`url` is missing".to_owned()))?;
        let body = settings.get("body").filter(|body| !body.is_null()).cloned();
        let usual = if body.is_some() { "POST" } else { "GET" };
        let method = text("method")?.unwrap_or(usual).to_ascii_uppercase();
        let method = METHODS.into_iter().find(|known| known.as_str() == method).ok_or_else(|| {
            let known: Vec<_> = METHODS.iter().map(Method::as_str).collect();
            ("method", format!("`{method}` is no method; use one of {}", known.join(", ")))
        })?;
        let object = |name: &'static str| match settings.get(name) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members.clone()),
            Some(_) => Err((name, format!("`{name}` is no object"))),
        };
        let header = |(name, value): (String, Value)| match value {
            Value::String(_) if RESERVED.contains(&name.to_ascii_lowercase().as_str()) => {
                Err(("headers", format!("the header `{name}` follows from the request and cannot be set")))
            }
            Value::String(value) => Ok((name, value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(("headers", format!("the header `{name}` is no text")))
            }
        };
        let headers = object("headers")?.into_iter().map(header).collect::<Result<_, _>>()?;
        let (url, optional) = (url.trim().to_owned(), optional(settings));
        let template = Self { method, url, query: object("query")?, headers, body, optional };
        template.check_host()?;
        Ok(template)
    }

    /// Where it goes is the item's business and no argument's.
    fn check_host(&self) -> Result<(), (&'static str, String)> {
        let wrong = |what: &str| Err(("url", format!("`{}` {what}", self.url)));
        let Some((scheme, rest)) = self.url.split_once("://") else { return wrong("is no http or https address") };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if scheme.contains('{') || host.contains('{') {
            return wrong("has an argument in its host");
        }
        match Url::parse(&fill(&self.url, &|_| Some("x".to_owned()))) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(()),
            Ok(_) | Err(_) => wrong("is no http or https address"),
        }
    }

    /// The address with nothing in its places, to see where it leads.
    pub fn place(&self) -> Option<Url> {
        Url::parse(&fill(&self.url, &|_| Some("x".to_owned()))).ok()
    }

    /// The names of the secrets that its headers need.
    pub fn secrets(&self) -> Vec<String> {
        let secrets = self.headers.values().flat_map(|value| places(value));
        secrets.filter_map(|place| place.strip_prefix(SECRET).map(str::to_owned)).collect()
    }

    /// The request of one call. Query parameters whose argument is missing are left out.
    pub fn fill(&self, arguments: &Map<String, Value>) -> Result<Filled, String> {
        let given = |name: &str| arguments.get(name).filter(|value| !value.is_null());
        if let Some(missing) = places(&self.url).find(|name| given(name).is_none()) {
            return Err(format!("the argument `{missing}` is missing"));
        }
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        for (name, value) in places(path).filter_map(|name| Some((name, plain(given(name)?)))) {
            // Dots lead out of the path, encoded or not, and nothing at all leads to what stands above.
            if value.chars().all(|c| c == '.') {
                return Err(format!("the argument `{name}` cannot be \"{value}\": it is a part of the address"));
            }
        }
        let encoded = |name: &str| given(name).map(|value| utf8_percent_encode(&plain(value), PLAIN).to_string());
        let filled = fill(&self.url, &encoded);
        let mut url = Url::parse(&filled).map_err(|error| format!("`{filled}` is no address: {error}"))?;
        for (name, value) in &self.query {
            if let Some(repeated) = repeated(value) {
                let all = |value| Value::as_array(value).map_or(std::slice::from_ref(value), Vec::as_slice);
                let values = given(repeated).map(all).unwrap_or_default().iter();
                url.query_pairs_mut().extend_pairs(values.map(|value| (name, plain(value))));
                continue;
            }
            let value = plain(value);
            if places(&value).all(|name| given(name).is_some()) {
                url.query_pairs_mut().append_pair(name, &fill(&value, &|name| given(name).map(plain)));
            }
        }
        let mut headers = BTreeMap::new();
        let is_left_out = |place: &str| self.optional.contains(place) && given(place).is_none();
        for (name, value) in self.headers.iter().filter(|(_, value)| !places(value).any(is_left_out)) {
            let part = |piece: Piece<'_>| match piece {
                Piece::Text(text) => Ok(HeaderPart::Text(text.to_owned())),
                Piece::Place(place) => match (place.strip_prefix(SECRET), given(place)) {
                    (Some(secret), _) => Ok(HeaderPart::Secret(secret.to_owned())),
                    (None, Some(value)) => Ok(HeaderPart::Text(plain(value))),
                    (None, None) => Err(format!("the argument `{place}` is missing")),
                },
            };
            headers.insert(name.clone(), pieces(value).map(part).collect::<Result<_, _>>()?);
        }
        let body = self.body.as_ref().map(|body| fill_value(body, arguments)).filter(|body| !body.is_null());
        Ok(Filled { method: self.method.clone(), url, headers, body })
    }
}

/// The names of arguments that need not be given.
fn optional(settings: &Map<String, Value>) -> BTreeSet<String> {
    let arguments = settings.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let optional = arguments.filter(|argument| argument["required"] == false);
    optional.filter_map(|argument| argument["name"].as_str().map(str::to_owned)).collect()
}

/// The argument of `["{name}"]`: a parameter of a query that is repeated for each member of a list.
fn repeated(value: &Value) -> Option<&str> {
    let [Value::String(only)] = value.as_array()?.as_slice() else { return None };
    only.strip_prefix('{')?.strip_suffix('}').filter(|name| is_name(name))
}

/// A value as text: texts as they are, everything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A text with places, in pieces.
enum Piece<'t> {
    Text(&'t str),
    Place(&'t str),
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((name, after)) = rest.strip_prefix('{').and_then(|inside| inside.split_once('}'))
            && is_name(name)
        {
            rest = after;
            return Some(Piece::Place(name));
        }
        // Braces that hold something else are text.
        let end = rest.char_indices().skip(1).find(|(_, c)| *c == '{').map_or(rest.len(), |(at, _)| at);
        let (before, behind) = rest.split_at(end);
        rest = behind;
        Some(Piece::Text(before))
    })
}

/// The places in a text, such as `city` in `cities/{city}`.
fn places(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).filter_map(|piece| if let Piece::Place(name) = piece { Some(name) } else { None })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.:".contains(c))
}

fn fill(text: &str, with: &dyn Fn(&str) -> Option<String>) -> String {
    let piece = |piece: Piece<'_>| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Place(name) => with(name).unwrap_or_default(),
    };
    pieces(text).map(piece).collect()
}

/// A text that is nothing but a place becomes the argument as it is; `{*}` becomes all of them.
fn fill_value(body: &Value, arguments: &Map<String, Value>) -> Value {
    match body {
        Value::String(text) if text == "{*}" => Value::Object(arguments.clone()),
        Value::String(text) => {
            let whole = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).filter(|name| is_name(name));
            match whole {
                Some(name) => arguments.get(name).cloned().unwrap_or(Value::Null),
                None => fill(text, &|name| arguments.get(name).map(plain)).into(),
            }
        }
        Value::Array(members) => members.iter().map(|member| fill_value(member, arguments)).collect(),
        Value::Object(members) => {
            let filled = members.iter().map(|(name, member)| (name.clone(), fill_value(member, arguments)));
            // What was not given is not sent.
            Value::Object(filled.filter(|(_, member)| !member.is_null()).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => body.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(settings: Value) -> Result<Template, (&'static str, String)> {
        Template::read(settings.as_object().unwrap())
    }

    fn filled(settings: Value, arguments: Value) -> Result<Filled, String> {
        template(settings).unwrap().fill(arguments.as_object().unwrap())
    }

    #[test]
    fn arguments_cannot_leave_their_place() {
        let settings = json!({ "url": "https://api.example.com/v1/{city}/now?key=1", "query": { "units": "{units}" } });
        let url =
            |city: &str| filled(settings.clone(), json!({ "city": city, "units": "a&b=c" })).unwrap().url.to_string();
        assert_eq!(url("São Paulo"), "https://api.example.com/v1/S%C3%A3o%20Paulo/now?key=1&units=a%26b%3Dc");
        assert_eq!(
            url("../../admin?x#y"),
            "https://api.example.com/v1/..%2F..%2Fadmin%3Fx%23y/now?key=1&units=a%26b%3Dc"
        );
        assert_eq!(url("@evil.net/"), "https://api.example.com/v1/%40evil.net%2F/now?key=1&units=a%26b%3Dc");
    }

    #[test]
    fn no_argument_leads_out_of_the_path() {
        let settings = json!({ "url": "https://a.example/users/{user}/{part}.{kind}?like={like}" });
        let with = |user: &str, part: &str, kind: &str| {
            let arguments = json!({ "user": user, "part": part, "kind": kind, "like": ".." });
            filled(settings.clone(), arguments).map(|filled| filled.url.to_string())
        };
        assert_eq!(with(".env", "a", "b"), Ok("https://a.example/users/.env/a.b?like=..".to_owned()));
        assert_eq!(with("%2e%2e", "a", "b"), Ok("https://a.example/users/%252e%252e/a.b?like=..".to_owned()));
        for (user, part, kind) in [("..", "a", "b"), (".", "a", "b"), ("", "a", "b"), ("u", ".", "b"), ("u", "a", "")] {
            let refused = with(user, part, kind).unwrap_err();
            assert!(refused.contains("is a part of the address"), "{refused}");
        }
    }

    #[test]
    fn what_is_optional_is_left_out_and_what_is_needed_is_asked_for() {
        let settings = json!({ "url": "https://a.example/{id}", "query": { "limit": "{limit}", "fixed": 3 } });
        assert_eq!(filled(settings.clone(), json!({ "id": 7 })).unwrap().url.as_str(), "https://a.example/7?fixed=3");
        assert_eq!(filled(settings, json!({ "limit": 7 })).unwrap_err(), "the argument `id` is missing");
    }

    #[test]
    fn a_body_keeps_the_types_of_its_arguments() {
        let body = json!({ "q": "{question}", "top": "{top}", "all": "{*}", "note": "about {question}", "none": "{missing}", "n": 1 });
        let sent =
            filled(json!({ "url": "https://a.example/", "body": body }), json!({ "question": "why?", "top": [1, 2] }))
                .unwrap();
        assert_eq!(sent.method, Method::POST);
        let all = json!({ "question": "why?", "top": [1, 2] });
        assert_eq!(sent.body, Some(json!({ "q": "why?", "top": [1, 2], "all": all, "note": "about why?", "n": 1 })));
    }

    #[test]
    fn lists_are_repeated_and_what_may_be_left_out_is() {
        let argument = |name: &str| json!({ "name": name, "required": false });
        let settings = json!({
            "url": "https://a.example/", "method": "POST", "query": { "tag": ["{tags}"] }, "body": "{body}",
            "headers": { "x-trace": "{trace}", "x-kind": "a" }, "arguments": [argument("trace"), argument("body")],
        });
        let sent = filled(settings.clone(), json!({ "tags": ["a b", 3], "trace": "t" })).unwrap();
        assert_eq!(sent.url.as_str(), "https://a.example/?tag=a+b&tag=3");
        assert_eq!(sent.headers.len(), 2);
        let sent = filled(settings, json!({ "tags": "one" })).unwrap();
        assert_eq!((sent.url.as_str(), sent.body), ("https://a.example/?tag=one", None));
        assert_eq!(sent.headers.keys().collect::<Vec<_>>(), ["x-kind"]);
    }

    #[test]
    fn secrets_stay_places_until_it_is_sent() {
        let headers = json!({ "authorization": "Bearer {secret:WEATHER}", "x-user": "{user}" });
        let settings = json!({ "url": "https://a.example/", "headers": headers });
        assert_eq!(template(settings.clone()).unwrap().secrets(), ["WEATHER"]);
        let sent = filled(settings, json!({ "user": "{secret:WEATHER}" })).unwrap();
        let text = |text: &str| HeaderPart::Text(text.to_owned());
        assert_eq!(sent.headers["authorization"], [text("Bearer "), HeaderPart::Secret("WEATHER".to_owned())]);
        assert_eq!(sent.headers["x-user"], [text("{secret:WEATHER}")], "what an argument says is text");
    }

    #[test]
    fn mistakes_are_named() {
        for (settings, member, words) in [
            (json!({}), "url", "is missing"),
            (json!({ "url": 3 }), "url", "is no text"),
            (json!({ "url": "ftp://a.example/" }), "url", "no http or https address"),
            (json!({ "url": "https://{host}/x" }), "url", "an argument in its host"),
            (json!({ "url": "https://a.example", "method": "BREW" }), "method", "is no method"),
            (json!({ "url": "https://a.example", "headers": { "x": 1 } }), "headers", "is no text"),
            (json!({ "url": "https://a.example", "headers": { "Host": "b.example" } }), "headers", "cannot be set"),
            (json!({ "url": "https://a.example", "query": [] }), "query", "is no object"),
        ] {
            let (wrong, why) = template(settings).unwrap_err();
            assert!(wrong == member && why.contains(words), "{wrong}: {why}");
        }
    }
}
