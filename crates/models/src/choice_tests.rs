use super::*;

/// What is chosen, each as one line.
fn chosen(wishes: &[&str], variables: &[(&str, &str)]) -> Result<Vec<String>, ChoiceError> {
    let wishes: Vec<_> = wishes.iter().map(|wish| (*wish).to_owned()).collect();
    let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Ok(choose(&wishes, &get)?.iter().map(ToString::to_string).collect())
}

const REHEARSAL: &str = "rehearsal: scripted replies, no language model is asked";
const OPENAI_KEY: (&str, &str) = ("OPENAI_API_KEY", "sk-open");
const ANTHROPIC_KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-ant");

#[test]
fn without_a_wish_the_environment_chooses() {
    let openai = "openai/gpt-4.1-mini at https://api.openai.com/v1, with a key";
    let anthropic = "anthropic/claude-sonnet-4-6 at https://api.anthropic.com, with a key";
    let host = ("OLLAMA_HOST", "box");
    for (variables, expected) in [
        (vec![], REHEARSAL),
        (vec![("OPENAI_API_KEY", "  "), ("OLLAMA_HOST", "")], REHEARSAL),
        (vec![host, ANTHROPIC_KEY, OPENAI_KEY], openai),
        (vec![host, ANTHROPIC_KEY], anthropic),
        (vec![host], "ollama/llama3.2 at http://box:11434, without a key"),
        (
            vec![("OPENAI_BASE_URL", "http://me:pw@gpu:8000/v1"), ("OPENAI_MODEL", "qwen")],
            "openai/qwen at http://gpu:8000/v1, without a key",
        ),
        (
            vec![ANTHROPIC_KEY, ("ANTHROPIC_BASE_URL", "http://proxy/v1/"), ("ANTHROPIC_MODEL", "claude-x")],
            "anthropic/claude-x at http://proxy, with a key",
        ),
    ] {
        assert_eq!(chosen(&[], &variables), Ok(vec![expected.to_owned()]), "{variables:?}");
    }
}

#[test]
fn wishes_count_before_the_environment_and_keep_their_order() {
    let expected = [
        "ollama/hf.co/org/model:Q4 at http://127.0.0.1:11434, without a key",
        "openai/gpt-x at https://api.openai.com/v1, with a key",
        REHEARSAL,
    ];
    let wishes = ["ollama/hf.co/org/model:Q4", " openai/gpt-x", "", "rehearsal"];
    let variables = [OPENAI_KEY, ("OPENAI_MODEL", "other"), ANTHROPIC_KEY];
    assert_eq!(chosen(&wishes, &variables), Ok(expected.map(str::to_owned).to_vec()));
    let usual = chosen(&["openai"], &variables).unwrap();
    assert_eq!(usual, ["openai/other at https://api.openai.com/v1, with a key"]);
}

#[test]
fn what_is_missing_is_said() {
    for (wishes, variables, expected) in [
        (vec!["gpt-4"], vec![], "there is no provider `gpt-4`; write openai/NAME"),
        (vec!["openai/gpt-4"], vec![], "openai needs a key; set OPENAI_API_KEY"),
        (vec!["anthropic"], vec![OPENAI_KEY], "anthropic needs a key; set ANTHROPIC_API_KEY"),
        (vec![], vec![("OPENAI_BASE_URL", "http://gpu")], "OPENAI_BASE_URL is set, but no model is named"),
        (vec![], vec![ANTHROPIC_KEY, ("ANTHROPIC_MAX_TOKENS", "many")], "ANTHROPIC_MAX_TOKENS is \"many\""),
    ] {
        let error = chosen(&wishes, &variables).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn the_address_of_ollama_is_understood_in_all_its_forms() {
    for (host, expected) in [
        ("box", "http://box:11434"),
        ("box:80", "http://box:80"),
        (":8080", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("http://box", "http://box:11434"),
        ("https://box/", "https://box"),
        ("https://box:8443/ollama/", "https://box:8443/ollama"),
        ("[::1]", "http://[::1]:11434"),
        ("[::]:9", "http://[::1]:9"),
    ] {
        assert_eq!(ollama_address(host), expected, "{host}");
    }
}

#[test]
fn a_choice_keeps_its_key_to_itself() {
    let get = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-very-secret".to_owned());
    let choices = choose(&[], &get).unwrap();
    assert!(!format!("{choices:?}").contains("very"), "{choices:?}");
}
