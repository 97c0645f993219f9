//! Templates mean what they mean elsewhere: rendered by a second engine, they give the same.

use super::*;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::{Value, json};

fn variables() -> Value {
    json!({
        "none": null, "yes": true, "no": false, "n": 7, "minus": -7, "half": 0.5, "big": 18_446_744_073_709_551_615_u64,
        "text": "Hello, wide World", "lines": "one\ntwo\r\n\nfour", "html": "<b> & 'c' \"d\"", "umlaut": "äÖß ﬁ",
        "list": [3, 1, 2, 3], "words": ["b", "A", "c", "a"], "empty": [], "map": { "z": 1, "a": "it's", "k": [1, 2] },
        "people": [
            { "name": "Ann", "age": 30, "town": { "name": "Ulm" } },
            { "name": "bob", "age": 25, "town": { "name": "Bonn" } },
            { "name": "Cid", "age": 30 },
        ],
    })
}

fn ours(text: &str) -> Result<String, String> {
    Templates::new().render(text, variables().as_object().unwrap()).map(|text| text.to_string())
}

fn theirs(text: &str) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_formatter(
        |out, state, value| {
            if value.is_none() { Ok(()) } else { minijinja::escape_formatter(out, state, value) }
        },
    );
    environment.render_str(text, minijinja::Value::from(Serde(&variables()))).map_err(|error| error.to_string())
}

/// Each line is a template.
const SAME: &str = r#"
{{ none }}{{ missing }}{{ missing.deep.er }}{{ map.nope }}|{{ yes }} {{ no }} {{ n }} {{ half }} {{ big }} {{ 1.0 }} {{ 1e3 }} {{ 1_000 }}
{{ list }} {{ map }} {{ people[0] }} {{ [none, yes, 1.5, 'a"b', "a'b", "a\nb"] }} {{ {"a": 1, "b": [1]} }}
{{ 1 + 2 * 3 ** 2 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7.5 // 2 }} {{ 2 ** -1 }} {{ 10 / 4 }} {{ -n }}
{{ "a" ~ 1 ~ none ~ yes ~ [1] }} {{ "a" + "b" }} {{ "ab" * 3 }} {{ [1, 2] + [3] }} {{ [1] * 3 }} {{ 1 ~ 2 + 3 ~ 4 }}
{{ 1 < 2 <= 2 }} {{ 1 < 2 > 5 }} {{ "a" < "b" }} {{ 1 == 1.0 }} {{ "1" == 1 }} {{ none == missing }} {{ [1, 2] == [1, 2] }} {{ [1] < [2] }}
{{ 1 in list }} {{ 9 not in list }} {{ "ell" in text }} {{ "a" in map }} {{ "q" in missing }}
{{ yes and n }} {{ no and n }} {{ no or n }} {{ empty or "e" }} {{ not empty }} {{ not 1 == 2 }} {{ not n and n }}
{{ "a" if yes else "b" }} {{ "a" if no else "b" if no else "c" }} [{{ "a" if no }}]
{{ list[0] }} {{ list[-1] }} {{ list[9] }} {{ text[1] }} {{ map["a"] }} {{ people[1].town.name }} {{ people[2].town.name }} {{ list.0 }}
{{ list[1:3] }} {{ list[:2] }} {{ list[-2:] }} {{ list[::2] }} {{ text[7:11] }} {{ text[::-1] }} {{ list[::-1] }} {{ text[-5:] }} {{ umlaut[1:3] }} {{ text[9:3] }}|{{ text[50:] }}|
{% for x in list %}{{ loop.index }}/{{ loop.length }}:{{ x }}{% if not loop.last %}, {% endif %}{% else %}none{% endfor %}
{% for x in empty %}{{ x }}{% else %}nothing{% endfor %} {% for x in missing %}{{ x }}{% else %}nothing{% endfor %}
{% for k, v in map | items %}{{ k }}={{ v }};{% endfor %} {% for k in map %}{{ k }}{% endfor %} {% for c in "abc" %}{{ c }}.{% endfor %}
{% for x in list if x > 1 %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ x }} {% endfor %}
{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.depth }}{{ a }}{{ b }}{{ loop.cycle("x", "y", "z") }} {% endfor %}{% endfor %}
{% for a, (b, c) in [[1, [2, 3]], [4, [5, 6]]] %}{{ a }}{{ b }}{{ c }} {% endfor %}{% for x in list %}{{ loop.previtem }}<{{ x }}<{{ loop.nextitem }} {% endfor %}
{% if n > 10 %}a{% elif n > 5 %}b{% else %}c{% endif %}{% if no %}x{% endif %}
{% set x = 1 %}{% for i in list %}{% set x = i %}{% endfor %}{{ x }} {% set a, b = [1, 2] %}{{ a }}{{ b }} {% set t %}in {{ n }}{% endset %}[{{ t }}]
{% set ns = namespace(count=0) %}{% for i in list %}{% set ns.count = ns.count + i %}{% endfor %}{{ ns.count }} {% set u | upper %}x{% endset %}{{ u }}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }} {% filter upper | replace("L", "1") %}hello {{ n }}{% endfilter %} {% do dict(a=1) %}
{% macro m(a, b="B", c="C") %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }} {{ m(1, 2, 3) }} {{ m(1, c=4) }} {{ m(b=n, a=text) }} {{ m("x") | lower }}
{% macro tree(n) %}{{ n }}{% if n > 0 %}({{ tree(n - 1) }}){% endif %}{% endmacro %}{{ tree(4) }}
  a  {{- n -}}  b  {%- if yes -%}  c  {%- endif %}  d {# no #} e {#- no -#} f {% raw %}{{ raw }}{% endraw %} {%- raw -%} {% x %} {%- endraw -%} g
{{ "a\n\t\"b\" \u00e4 \\" }} {{ 'it''s' }} {{ "a" "b" }} {{ {"a": {"b": {"c": 1}}}.a.b.c }} {{ (1, 2) | length }} {{ [1, 2,] }} {{ ((1)) }}
{{ text | upper }} {{ text | lower }} {{ text | title }} {{ text | capitalize }} {{ umlaut | upper }} {{ umlaut | capitalize }} {{ "a-b (c) [d" | title }}
{{ text | replace("l", "L") }} {{ text | replace("", "-") }} {{ text | replace("q", "") }} {{ 121 | replace(1, 3) }}
{{ text | length }} {{ list | count }} {{ map | length }} {{ umlaut | length }}
{% for k, v in map | dictsort %}{{ k }}{{ v }}{% endfor %} {% for k, v in map | items %}{{ k }}{{ v }}{% endfor %} {{ list | reverse }} {{ text | reverse }} {{ {"b": 1, "A": 2} | dictsort | map("first") | list }} {{ {"b": 1, "A": 2} | dictsort(case_sensitive=true) | map("first") | list }} {{ {"b": 1, "A": 2} | dictsort(by="value", reverse=true) | map("last") | list }}
[{{ "  a b " | trim }}] [{{ "xxaxx" | trim("x") }}] {{ list | join }} {{ list | join(", ") }} {{ people | join(", ", attribute="name") }} {{ "abc" | join("-") }}
{{ "a b  c" | split }} {{ "a,b,c" | split(",") }} {{ "a,b,c" | split(",", 1) }} {{ " a b  c " | split(none, 1) }} {{ lines | lines }}
{{ missing | default("d") }} {{ none | default("d") }} {{ "" | d("d", true) }} {{ n | default(1) }} [{{ missing | default }}]
{{ 2.567 | round }} {{ 2.567 | round(2) }} {{ 2.1 | round(method="ceil") }} {{ 2.9 | round(0, "floor") }} {{ 42 | round }} {{ minus | abs }} {{ -1.5 | abs }}
{{ "42" | int }} {{ "x" | int(0) }} {{ 3.9 | int }} {{ "0x1f" | int(base=16) }} {{ missing | int }} {{ "1.5" | float }} {{ 2 | float }} {{ "x" | float(1.5) }} {{ yes | int }}
{{ people | map(attribute="name") | list }} {{ words | map("upper") | list }} {{ people | map(attribute="town.name", default="?") | join(",") }} {{ map | attr("z") }}
{{ list | first }} {{ list | last }} {{ empty | first }} {{ list | min }} {{ list | max }} {{ list | sum }} {{ people | sum(attribute="age") }}
{{ list | sort }} {{ list | sort(reverse=true) }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ people | sort(attribute="age") | map(attribute="name") | list }} {{ people | sort(attribute="name") | map(attribute="name") | list }}
{{ list | unique }} {{ words | unique }} {{ ["a", "A"] | unique }} {{ ["a", "A"] | unique(case_sensitive=true) }} {{ people | unique(attribute="age") | map(attribute="name") | list }}
{{ "abc" | list }} {{ map | list }} {{ 12 | string ~ "a" }} {{ 1 | bool }} {{ "" | bool }}
{{ range(7) | batch(3) }} {{ range(7) | batch(3, "-") }} {{ range(7) | slice(3) }} {{ range(7) | slice(3, "-") }}
{{ lines | indent }} {{ lines | indent(2, true) }} {{ lines | indent(2, blank=true) }} {{ "a" | indent(2, first=true) }}
{{ list | select("odd") }} {{ list | reject("odd") }} {{ [0, 1, ""] | select }} {{ people | selectattr("age", "gt", 26) | map(attribute="name") | list }} {{ people | rejectattr("town") | map(attribute="name") | list }} {{ list | select("in", [1, 2]) }}
{% for g in people | groupby("age") %}{{ g.grouper }}:{{ g.list | map(attribute="name") | join(",") }} {% endfor %}{% for k, v in people | groupby(attribute="town.name", default="-") %}{{ k }}{{ v | length }} {% endfor %}
{{ [1] | chain([2], [3, 4]) | list }} {{ {"a": 1} | chain({"a": 2, "b": 3}) }} {% for a, b in [1, 2] | zip(["a", "b", "c"]) %}{{ a }}{{ b }}{% endfor %}
{{ "%s is %d (%5.2f%%) %x %-4s| %04d %+d" | format("a", 3, 12.345, 255, "ab", 42, 7) }} {{ "%(a)s-%(b)s" | format(a=1, b="x") }} {{ "%x %o %X" | format(-255, 8, 171) }}
{{ text is defined }} {{ missing is undefined }} {{ none is none }} {{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(4) }} {{ n is number }} {{ n is integer }} {{ half is float }}
{{ text is string }} {{ list is sequence }} {{ map is mapping }} {{ list is iterable }} {{ yes is boolean }} {{ yes is true }} {{ no is false }} {{ n is not none }} {{ "Ab" is startingwith "A" }} {{ "Ab" is endingwith("b") }}
{{ "ab" is lower }} {{ "AB" is upper }} {{ n is eq 7 }} {{ n is ne(7) }} {{ n is lt 8 }} {{ n is ge 8 }} {{ 1 is in list }} {{ "upper" is filter }} {{ "nope" is filter }} {{ "odd" is test }} {{ n is sameas 7 }} {{ n is equalto 7 and yes }}
{{ range(3) | list }} {{ range(1, 4) | list }} {{ range(5, 0, -2) | list }} {{ range(0) | list }} {{ dict(a=1, b=2) }} {{ dict({"a": 1}, b=3) }}
{{ n if n is defined else 3 }} {% if n is divisibleby 7 and list is not string %}y{% endif %} {{ (n + 1) | string | length }} {{ -1 | abs }} {{ text | lower | replace("l", "1") | upper }}
"#;

#[test]
fn templates_mean_the_same_as_elsewhere() {
    let mut wrong = Vec::new();
    for text in SAME.lines().filter(|line| !line.is_empty()) {
        let (ours, theirs) = (ours(text), theirs(text));
        if ours != theirs || ours.is_err() {
            wrong.push(format!("{text}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong elsewhere is wrong here, too.
#[test]
fn what_is_refused_elsewhere_is_refused() {
    for text in [
        "{{",
        "{{ }}",
        "{{ 1 + }}",
        "{% if %}",
        "{% if 1 %}",
        "{% endif %}",
        "{% for x %}",
        "{% nope %}",
        "{{ 'a }}",
        "{{ a b }}",
        "{{ x | nope }}",
        "{{ x is nope }}",
        "{{ 1 | upper('a') }}",
        "{{ nope() }}",
        "{{ 1 / 0 }}",
        "{{ 1 + 'a' }}",
        "{{ text.nope() }}",
        "{% for a, b in list %}{% endfor %}",
        "{% for x in 5 %}{% endfor %}",
        "{{ range(1, 2, 0) }}",
        "{% set n.x = 1 %}",
        "{# a",
        "{% raw %}",
        "{{ [1, 2 }}",
        "{{ {'a' 1} }}",
        "{% macro m( %}",
        "{{ '%d' | format('x') }}",
        "{{ '%d' | format }}",
        "{{ list[::0] }}",
    ] {
        assert!(theirs(text).is_err(), "{text} gives {:?} elsewhere", theirs(text));
        assert!(ours(text).is_err(), "{text} gives {:?}", ours(text));
    }
}

/// Names that the other engine knows; one that it learns is noticed here when it is updated.
#[test]
fn every_filter_and_test_that_is_known_elsewhere_is_known_here() {
    let known = |kind: &str, name: &str| theirs(&format!("{{{{ {name:?} is {kind} }}}}")).unwrap() == "True";
    for name in filters::NAMES {
        assert!(known("filter", name), "{name} is known here alone");
    }
    for name in checks::NAMES {
        assert!(known("test", name), "{name} is known here alone");
    }
    // Debug output lists all of them.
    let described = format!("{:?}", Environment::new());
    let listed = |member: &str| -> Vec<String> {
        let start = described.find(&format!("{member}: [")).map(|at| at + member.len() + 3);
        let Some(list) = start.and_then(|start| described[start..].split_once(']')) else { return Vec::new() };
        list.0.split(", ").map(|name| name.trim_matches('"').to_owned()).collect()
    };
    let (filters, tests) = (listed("filters"), listed("tests"));
    assert!(!filters.is_empty() && !tests.is_empty(), "{described}");
    for name in &filters {
        assert!(filters::NAMES.contains(&name.as_str()), "the filter {name} is new elsewhere: bound it here, too");
    }
    for name in &tests {
        assert!(checks::NAMES.contains(&name.as_str()), "the test {name} is new elsewhere: bound it here, too");
    }
}
