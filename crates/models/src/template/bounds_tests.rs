//! No template takes more memory, time or stack than it may, whatever it does.

use super::fault::Fault;
use super::meter::{LONGEST_PROMPT, MEMORY};
use super::*;
use serde_json::json;

fn render(text: &str) -> Result<String, String> {
    let variables =
        json!({ "q": "x".repeat(100_000), "facts": (0..1_000).collect::<Vec<_>>(), "map": { "a": 1, "b": 2 } });
    Templates::new().render(text, variables.as_object().unwrap()).map(|text| text.to_string())
}

/// Refused for its size.
fn is_stopped(text: &str) {
    let reason = render(text).expect_err(text);
    let stopped =
        ["bytes of memory", "too many steps", "it becomes longer", "nested", "at most 100000 numbers", "has at most"];
    assert!(stopped.iter().any(|words| reason.contains(words)), "{text}\n{reason}");
}

#[test]
fn what_grows_a_text_is_stopped_before_it_has_grown() {
    for text in [
        "{{ q | indent(100000000000000, true) }}",
        "{{ 'a\nb' | indent(100000000000000) }}",
        "{{ 'a\nb' | indent(width=100000000000000, first=true, blank=true) }}",
        "{% set ns = namespace(x=q) %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x | length }}",
        "{% set ns = namespace(x=q) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=q) %}{% for i in range(100) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}{% endfor %}",
        "{% set ns = namespace(x=q) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] | join %}{% endfor %}",
        "{% set ns = namespace(x=q) %}{% for i in range(100) %}{% set ns.x = ns.x | replace('x', 'xx') %}{% endfor %}",
        "{% set ns = namespace(x='<') %}{% for i in range(100) %}{% set ns.x = ns.x ~ (ns.x | e) %}{% endfor %}",
        "{{ q | replace('', q) }}",
        "{{ q | replace('x', q) }}",
        "{{ range(100000) | join(q) }}",
        "{{ q | join(q) }}",
        "{{ '%99999999999s' | format('a') }}",
        "{{ '%*d' | format(99999999999, 1) }}",
        "{{ '%-99999999999999999999999999d' | format(1) }}",
        "{{ q * 1000000 }}",
        "{{ 1000000000000 * 'a' }}",
        "{{ 'a' * 99999999999999999999999999999 }}",
        "{{ ('a' * 10000000) ~ ('a' * 10000000) ~ ('a' * 10000000) ~ ('a' * 10000000) }}",
        "{% set x %}{% for i in range(100000) %}{{ q }}{% endfor %}{% endset %}",
        "{% filter upper %}{% for i in range(100000) %}{{ q }}{% endfor %}{% endfilter %}",
        "{% macro m(n) %}{{ q }}{{ q }}{{ q }}{% endmacro %}{% for i in range(100000) %}{{ m(i) }}{% endfor %}",
        "{{ facts | map('replace', '', q) | list | length }}",
        "{{ range(100000) | map('string') | map('indent', 100000, true) | length }}",
    ] {
        is_stopped(text);
    }
}

#[test]
fn what_grows_a_list_is_stopped_before_it_has_grown() {
    for text in [
        "{{ [1] * 100000000000 }}",
        "{{ 100000000000 * range(100000) }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x | chain(ns.x) %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x={'a': 1}) %}{% for i in range(100) %}{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}{{ ns.x == ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x | zip(ns.x) | list %}{% endfor %}{{ ns.x | tojson }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = ns.x + range(100000) %}{% endfor %}",
        "{{ facts | batch(100000000000, 'a') }}",
        "{{ facts | slice(100000000000) }}",
        "{{ facts | slice(100000000000, 'a') }}",
        "{{ (q * 300) | list | length }}",
        "{{ (q * 300) | split('') | length }}",
        "{% for c in q * 300 %}{{ c }}{% endfor %}",
        "{{ range(99999999999999) }}",
        "{{ range(0, 99999999999999, 3) }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{{ q is startingwith q }}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{{ (range(99999) | sort | unique | list) == (range(99999) | list) }}{% endfor %}",
        "{% for a in range(99999) %}{% if q ~ 'a' in q %}{% endif %}{% endfor %}",
    ] {
        is_stopped(text);
    }
}

/// Nothing of a template may be nested so deeply that the stack of a thread does not hold it: neither its text, nor its
/// calls, nor its values.
#[test]
fn what_is_nested_without_end_is_refused() {
    let nested = |open: &str, inside: &str, close: &str| {
        format!("{}{inside}{}", open.repeat(60_000 / open.len()), close.repeat(60_000 / open.len()))
    };
    for text in [
        format!("{{{{ {} }}}}", nested("(", "1", ")")),
        format!("{{{{ {} }}}}", nested("[", "1", "]")),
        format!("{{{{ {} }}}}", nested("{'a':", "1", "}")),
        format!("{{{{ {} }}}}", nested("not ", "1", "")),
        format!("{{{{ {} }}}}", nested("- ", "1", "")),
        format!("{{{{ {} }}}}", nested("1 if 1 else ", "1", "")),
        format!("{{{{ {} }}}}", nested("q[", "1", "]")),
        format!("{{{{ {} }}}}", nested("q|f(", "1", ")")),
        nested("{% if 1 %}", "1", "{% endif %}"),
        nested("{% for a in q %}", "1", "{% endfor %}"),
        format!("{{% set {} = 1 %}}", nested("(", "a", ")")),
    ] {
        let reason = check_template(&text).expect_err(&text[..40]);
        assert!(reason.contains("nested more than 40 levels deep") || reason.contains("50000 parts"), "{reason}");
    }
    is_stopped("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
    is_stopped("{% macro m(a) %}{{ [a] | map('upper') | list }}{{ (((m([a, a])))) }}{% endmacro %}{{ m(1) }}");
    is_stopped(
        "{% set ns = namespace(x=[1]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
    );
    let maps = "{% set ns = namespace(x={}) %}{% for i in range(1000) %}{% set ns.x = {'a': ns.x} %}{% endfor %}";
    is_stopped(maps);
}

#[test]
fn long_chains_are_no_nesting() {
    let chain = |part: &str| part.repeat(5_000);
    assert_eq!(render(&format!("{{{{ 1{} }}}}", chain(" + 1"))).unwrap(), "5001");
    assert_eq!(render(&format!("{{{{ (''{}) | length }}}}", chain(" ~ 'a'"))).unwrap(), "5000");
    assert_eq!(render(&format!("{{{{ 'a'{} }}}}", chain("|upper"))).unwrap(), "A");
    assert_eq!(render(&format!("{{{{ q{} }}}}", chain(".a"))).unwrap(), "");
    assert_eq!(render(&format!("{{{{ 0{} }}}}", chain(" or 0"))).unwrap(), "0");
    assert_eq!(render(&format!("{{% if 0 %}}{}{{% endif %}}", chain("{% elif 0 %}"))).unwrap(), "");
}

#[test]
fn a_namespace_cannot_hold_itself() {
    for text in ["{% set ns = namespace() %}{% set ns.x = ns %}", "{% set ns = namespace() %}{% set ns.x = [ns] %}"] {
        let reason = render(text).unwrap_err();
        assert_eq!(reason, "line 1: a namespace cannot be kept inside another value");
    }
}

/// What was dropped gives its memory back: a long rendering may make far more than it ever holds.
#[test]
fn only_what_is_held_at_once_counts() {
    let text = "{% for i in range(2000) %}{% set x = q ~ i %}{% endfor %}done";
    const { assert!(2_000 * 100_000 > MEMORY) };
    assert_eq!(render(text).unwrap(), "done");
}

#[test]
fn a_template_that_collects_a_list_of_facts_is_rendered() {
    let text = "{% set ns = namespace(t='') %}{% for f in facts %}{% set ns.t = ns.t ~ 'Fact ' ~ f ~ '\n' %}{% endfor %}{{ ns.t }}";
    assert_eq!(render(text).unwrap().lines().count(), 1_000);
}

#[test]
fn templates_and_prompts_have_their_longest() {
    let reason = check_template(&"a".repeat(LONGEST_TEMPLATE + 1)).unwrap_err();
    assert_eq!(reason, "it has 1048577 bytes; a template has at most 1048576");
    let parts = "{{a}}".repeat(20_000);
    assert_eq!(check_template(&parts).unwrap_err(), "it has more than 50000 parts; write a shorter template");
    let grows = "{% for a in range(99999) %}{{ 'a' * 9999 }}{% endfor %}";
    assert_eq!(render(grows).unwrap_err(), Fault::TooLong { bytes: LONGEST_PROMPT }.to_string());
}

/// A workspace may write new templates for ever; what was read of them is not kept for ever.
#[test]
fn what_is_kept_of_templates_is_bounded() {
    let templates = Templates::new();
    for number in 0..60 {
        let text = format!("{{{{ {number} }}}}{}", "{{ a }}".repeat(3_000));
        templates.render(&text, &Map::new()).unwrap();
        let kept = templates.kept.lock();
        assert!(
            kept.parts <= KEPT_PARTS && kept.trees.len() < 30,
            "{} parts of {} templates",
            kept.parts,
            kept.trees.len()
        );
    }
}

/// Numbers beyond what a float holds are equal to one that lies between them: no order, and no reason to stumble.
#[test]
fn values_without_a_proper_order_are_sorted_somehow() {
    let text = "{{ (range(9007199254740990, 9007199254741090) | list + [9007199254740992.0] * 50 + ['a', none, [1], true] * 20) | sort | length }}";
    assert_eq!(render(text).unwrap(), "230");
}
