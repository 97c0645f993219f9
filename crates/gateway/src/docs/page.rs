//! The document as a page for people: no scripts, nothing from elsewhere.

use serde_json::{Map, Value};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const METHODS: [&str; 4] = ["get", "post", "put", "delete"];

/// The page of an `OpenAPI` document.
pub(super) fn write(document: &Value) -> String {
    let title = text(&document["info"]["title"]);
    let (mut contents, mut body) = (String::new(), String::new());
    for tag in list(&document["tags"]) {
        let name = text(&tag["name"]);
        add(&mut contents, format_args!("<li class=\"group\">{name}</li>"));
        add(&mut body, format_args!("<h2>{name}</h2>{}", prose(&tag["description"])));
        for (path, method, operation) in operations(document) {
            if list(&operation["tags"]).iter().any(|of| of == &tag["name"]) {
                let id = text(&operation["operationId"]);
                let summary = text(&operation["summary"]);
                add(&mut contents, format_args!("<li><a href=\"#{id}\">{summary}</a></li>"));
                body.push_str(&section(path, method, operation));
            }
        }
    }
    add(&mut contents, format_args!("<li class=\"group\">shapes</li>"));
    body.push_str("<h2>shapes</h2>");
    for (name, schema) in members(&document["components"]["schemas"]) {
        let name = escape(name);
        add(&mut contents, format_args!("<li><a href=\"#shape-{name}\">{name}</a></li>"));
        let table = properties(schema);
        let about = prose(&schema["description"]);
        add(&mut body, format_args!("<section id=\"shape-{name}\"><h3>{name}</h3>{about}{table}</section>"));
    }
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title} API</title><style>{STYLE}</style></head><body><nav><h1>{title}\
         </h1><p class=\"quiet\">version {} · <a href=\"/api/openapi.json\">openapi.json</a></p><ul>{contents}</ul>\
         </nav><main>{}{body}</main></body></html>",
        text(&document["info"]["version"]),
        prose(&document["info"]["description"]),
    )
}

fn operations(document: &Value) -> impl Iterator<Item = (&str, &'static str, &Value)> {
    let paths = members(&document["paths"]);
    paths.flat_map(|(path, item)| {
        let known = |name: &str| METHODS.into_iter().find(|method| *method == name);
        members(item).filter_map(move |(name, operation)| Some((path.as_str(), known(name)?, operation)))
    })
}

fn section(path: &str, method: &str, operation: &Value) -> String {
    let mut out = format!(
        "<section id=\"{}\"><h3>{}</h3><p class=\"path\"><b class=\"{method}\">{method}</b> <code>{}</code></p>{}",
        text(&operation["operationId"]),
        text(&operation["summary"]),
        escape(path),
        prose(&operation["description"]),
    );
    let rows: Vec<_> = list(&operation["parameters"]).iter().map(parameter).collect();
    out.push_str(&table("Parameters", &rows));
    if let Some(body) = operation.get("requestBody") {
        let kinds: Vec<_> = members(&body["content"]).map(|(_, content)| kind(&content["schema"])).collect();
        add(&mut out, format_args!("<h4>Body</h4><p>{}</p>{}", kinds.join(", "), examples(body)));
    }
    let rows: Vec<_> = members(&operation["responses"]).map(|(status, reply)| response(status, reply)).collect();
    out.push_str(&table("Replies", &rows));
    for (status, reply) in members(&operation["responses"]) {
        let shown = examples(reply);
        if !shown.is_empty() {
            add(&mut out, format_args!("<h4>Such as {}</h4>{shown}", escape(status)));
        }
    }
    out.push_str("</section>");
    out
}

/// What a body may look like: text as it is, everything else as JSON.
fn examples(body: &Value) -> String {
    let mut out = String::new();
    for example in members(&body["content"]).filter_map(|(_, content)| content.get("example")) {
        let written = || serde_json::to_string_pretty(example).expect("JSON can always be written");
        let text = example.as_str().map_or_else(written, str::to_owned);
        add(&mut out, format_args!("<pre>{}</pre>", escape(text.trim_end())));
    }
    out
}

fn parameter(parameter: &Value) -> [String; 3] {
    let name = format!("<code>{}</code>", text(&parameter["name"]));
    let place = text(&parameter["in"]);
    let needed = if parameter["required"] == true { format!("{place}, required") } else { place };
    [name, format!("{}<br><small>{needed}</small>", kind(&parameter["schema"])), inline(&parameter["description"])]
}

fn response(status: &str, reply: &Value) -> [String; 3] {
    let shapes = members(&reply["content"]).map(|(media, content)| {
        let media =
            if media == "application/json" { String::new() } else { format!("<small>{}</small> ", escape(media)) };
        media + &kind(&content["schema"])
    });
    [format!("<code>{}</code>", escape(status)), shapes.collect::<Vec<_>>().join("<br>"), inline(&reply["description"])]
}

/// The members of an object; of one that is made of parts, those of each part.
fn properties(schema: &Value) -> String {
    let parts = list(&schema["allOf"]);
    if !parts.is_empty() {
        return parts.iter().map(properties).collect();
    }
    let needed = list(&schema["required"]);
    let row = |(name, of): (&String, &Value)| {
        let optional =
            if needed.iter().any(|needed| needed == name) { "" } else { "<br><small>may be left out</small>" };
        [format!("<code>{}</code>", escape(name)), kind(of) + optional, inline(&of["description"])]
    };
    let rows: Vec<_> = members(&schema["properties"]).map(row).collect();
    if rows.is_empty() { format!("<p>{}</p>", kind(schema)) } else { table("", &rows) }
}

/// A schema in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return format!("<a href=\"#shape-{0}\">{0}</a>", escape(name));
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("<code>{}</code>", text(word))).collect::<Vec<_>>().join(" ");
    }
    for (parts, between) in [(&schema["oneOf"], " or "), (&schema["allOf"], " with ")] {
        if !list(parts).is_empty() {
            return list(parts).iter().map(kind).collect::<Vec<_>>().join(between);
        }
    }
    let types = match schema["type"].as_array() {
        Some(types) => types.iter().map(text).collect::<Vec<_>>().join(" or "),
        None => text(&schema["type"]),
    };
    match (schema.get("items"), schema.get("additionalProperties")) {
        (Some(items), _) => format!("{types} of {}", kind(items)),
        (None, Some(of @ Value::Object(_))) => format!("{types} of {}", kind(of)),
        (None, _) if types.is_empty() => "anything".to_owned(),
        (None, _) => types,
    }
}

fn table(heading: &str, rows: &[[String; 3]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heading = if heading.is_empty() { String::new() } else { format!("<h4>{heading}</h4>") };
    let row = |[name, kind, about]: &[String; 3]| format!("<tr><th>{name}</th><td>{kind}</td><td>{about}</td></tr>");
    format!("{heading}<table>{}</table>", rows.iter().map(row).collect::<String>())
}

/// Paragraphs, with code between backticks.
fn prose(value: &Value) -> String {
    let paragraphs = value.as_str().unwrap_or_default().split("\n\n").filter(|paragraph| !paragraph.is_empty());
    let mut out = String::new();
    for paragraph in paragraphs {
        add(&mut out, format_args!("<p>{}</p>", coded(paragraph)));
    }
    out
}

fn inline(value: &Value) -> String {
    coded(value.as_str().unwrap_or_default())
}

fn coded(words: &str) -> String {
    let parts = escape(words);
    let parts = parts.split('`').enumerate();
    parts.map(|(n, part)| if n % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() }).collect()
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn add(out: &mut String, words: std::fmt::Arguments<'_>) {
    out.write_fmt(words).expect("a text can always be written to");
}
