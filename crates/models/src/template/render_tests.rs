use super::*;
use serde_json::json;

fn render(text: &str) -> String {
    let variables = json!({
        "nothing": null, "html": "<b> & 'c'", "map": { "z": 1, "a": "it's" }, "list": [1, 2], "yes": true,
    });
    Templates::new().render(text, variables.as_object().unwrap()).unwrap().to_string()
}

#[test]
fn what_is_missing_or_null_prints_nothing() {
    assert_eq!(render("[{{ missing }}{{ missing.deep.er }}{{ nothing }}{{ map.none }}]"), "[]");
    assert_eq!(render("{% if nothing %}a{% endif %}{% for x in missing %}b{% endfor %}c"), "c");
}

#[test]
fn nothing_is_escaped() {
    assert_eq!(render("{{ html }} {{ html | tojson }}"), r#"<b> & 'c' "<b> & 'c'""#);
    assert_eq!(render("{{ list | tojson }}"), "[1, 2]");
    assert_eq!(render("{{ map | tojson }} {{ nothing | tojson }}"), r#"{"z": 1, "a": "it's"} null"#);
}

#[test]
fn maps_are_walked_as_python_does_and_in_their_order() {
    assert_eq!(render("{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}"), "z=1;a=it's;");
    assert_eq!(render("{% for k in map.keys() %}{{ loop.index }}{{ k }}{% endfor %}"), "1z2a");
}

#[test]
fn newlines_stay_but_for_one_at_the_end() {
    assert_eq!(render("a\n{% if yes %}\nb\n{% endif %}\nc\n"), "a\n\nb\n\nc");
}

#[test]
fn what_does_not_end_is_stopped() {
    let loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    let reason = Templates::new().render(loops, &Map::new()).unwrap_err();
    assert_eq!(reason, "it takes too many steps; are there loops within loops?");
    let grows = "{% for a in range(99999) %}{{ 'a' * 9999 }}{% endfor %}";
    let reason = Templates::new().render(grows, &Map::new()).unwrap_err();
    assert_eq!(reason, "it becomes longer than 16777216 bytes");
}

#[test]
fn a_prompt_over_very_many_facts_is_rendered() {
    let facts: Vec<_> = (0..10_000).map(|n| json!({ "s": n, "p": "knows", "o": n + 1 })).collect();
    let variables = json!({ "facts": facts });
    let text = "{% for f in facts %}{% if f.p %}{{ f.s }} {{ f.p }} {{ f.o }}\n{% endif %}{% endfor %}";
    let rendered = Templates::new().render(text, variables.as_object().unwrap()).unwrap().to_string();
    assert_eq!(rendered.lines().count(), 10_000);
}

#[test]
fn a_reason_says_where() {
    let reason = Templates::new().render("a\n{{ x | telepathy }}", &Map::new()).unwrap_err();
    assert!(reason.starts_with("line 2: unknown filter"), "{reason}");
}
