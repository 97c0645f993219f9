use super::*;
use crate::connections::Connections;
use crate::settings::ProviderSettings;
use std::sync::Arc;
use trellis_orchestrator::ports::RealWorld;

/// What is chosen, each as one line.
fn chosen(wishes: &[&str], variables: &[(&str, &str)]) -> Result<Vec<String>, ChoiceError> {
    let wishes: Vec<_> = wishes.iter().map(|wish| (*wish).to_owned()).collect();
    let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Ok(choose(&wishes, &ModelSettings::default(), &get)?.iter().map(ToString::to_string).collect())
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
        (vec!["gpt-4"], vec![], "there is no provider `gpt-4`; write PROVIDER/MODEL"),
        (vec!["openai/gpt-4"], vec![], "openai needs a key; set OPENAI_API_KEY"),
        (vec!["anthropic"], vec![OPENAI_KEY], "anthropic needs a key; set ANTHROPIC_API_KEY"),
        (
            vec![],
            vec![("OPENAI_BASE_URL", "http://gpu")],
            "openai is named without a model; write openai/NAME or set OPENAI_MODEL",
        ),
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
    let choices = choose(&[], &ModelSettings::default(), &get).unwrap();
    assert!(!format!("{choices:?}").contains("very"), "{choices:?}");
}

/// What a settings file would say.
fn settings(providers: impl IntoIterator<Item = (&'static str, ProviderSettings)>) -> ModelSettings {
    let providers = providers.into_iter().map(|(name, provider)| (name.to_owned(), provider)).collect();
    ModelSettings { providers, ..ModelSettings::default() }
}

fn remote(wish: &str, settings: &ModelSettings, variables: &[(&str, &str)]) -> Result<RemoteChoice, ChoiceError> {
    let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let choices = choose(&[wish.to_owned()], settings, &get)?;
    let [Choice::Remote(choice)] = &choices[..] else { panic!("{choices:?}") };
    Ok((**choice).clone())
}

fn key_of(choice: &RemoteChoice) -> Option<&str> {
    choice.key.as_ref().map(Secret::expose)
}

#[test]
fn known_services_need_nothing_but_their_key() {
    let nothing = ModelSettings::default();
    for (wish, variable, shown) in [
        ("groq/llama-3.3-70b", "GROQ_API_KEY", "groq/llama-3.3-70b at https://api.groq.com/openai/v1, with a key"),
        ("mistral/m", "MISTRAL_API_KEY", "mistral/m at https://api.mistral.ai/v1, with a key"),
        ("cohere/c", "CO_API_KEY", "cohere/c at https://api.cohere.ai/compatibility/v1, with a key"),
        (
            "openrouter/meta/llama",
            "OPENROUTER_API_KEY",
            "openrouter/meta/llama at https://openrouter.ai/api/v1, with a key",
        ),
        ("xai/grok", "XAI_API_KEY", "xai/grok at https://api.x.ai/v1, with a key"),
    ] {
        assert_eq!(remote(wish, &nothing, &[(variable, "k-12345")]).unwrap().to_string(), shown);
        assert!(remote(wish, &nothing, &[]).unwrap_err().to_string().contains(" needs a key; set "));
    }
    assert_eq!(
        remote("lmstudio/q", &nothing, &[]).unwrap().to_string(),
        "lmstudio/q at http://127.0.0.1:1234/v1, without a key"
    );
    let unnamed = remote("groq", &nothing, &[("GROQ_API_KEY", "k")]).unwrap_err();
    assert_eq!(unnamed.to_string(), "groq is named without a model; write groq/NAME");
}

#[test]
fn quirks_follow_the_host_whatever_the_provider_is_called() {
    let nothing = ModelSettings::default();
    let quirks = |variables: &[(&str, &str)]| remote("openai/m", &nothing, variables).unwrap().quirks;
    assert!(quirks(&[("OPENAI_API_KEY", "k")]).new_limit);
    assert_eq!(quirks(&[("OPENAI_BASE_URL", "http://gpu:8000/v1")]), Quirks::default());
    assert!(quirks(&[("OPENAI_BASE_URL", "https://openrouter.ai/api/v1")]).routed);
    let own = ProviderSettings {
        dialect: Some(DialectKind::OpenAi),
        address: Some("https://api.mistral.ai/v1".to_owned()),
        ..ProviderSettings::default()
    };
    assert_eq!(remote("mine/m", &settings([("mine", own)]), &[]).unwrap().quirks.forced, "any");
}

#[test]
fn a_provider_of_ones_own_has_a_name_an_address_and_a_key_of_its_own() {
    let own = ProviderSettings {
        kind: Some("openai".to_owned()),
        address: Some("https://gateway.example/v1".to_owned()),
        model: Some("gpt-x".to_owned()),
        ..ProviderSettings::default()
    };
    let with_key = ProviderSettings { key: Some(KeyPlace::Variable("WORK_KEY".to_owned())), ..own.clone() };
    let known = settings([("work", with_key), ("free", own)]);
    let variables = [OPENAI_KEY, ("WORK_KEY", "sk-work")];
    let work = remote("work", &known, &variables).unwrap();
    assert_eq!(
        (work.to_string().as_str(), key_of(&work)),
        ("work/gpt-x at https://gateway.example/v1, with a key", Some("sk-work"))
    );
    let free = remote("free/y", &known, &variables).unwrap();
    assert_eq!(key_of(&free), None, "a key of OpenAI goes to OpenAI");
    assert_eq!(remote("work", &known, &[]).unwrap_err().to_string(), "work needs a key; set WORK_KEY");
    let unknown = remote("moss/y", &known, &[]).unwrap_err().to_string();
    assert!(
        unknown.contains("groq")
            && unknown.contains("free, work, or rehearsal")
            && unknown.contains("[providers.moss]"),
        "{unknown}"
    );
}

#[test]
fn what_a_provider_lacks_is_said() {
    let half = ProviderSettings { address: Some("http://gpu".to_owned()), ..ProviderSettings::default() };
    let odd = ProviderSettings { kind: Some("moss".to_owned()), ..ProviderSettings::default() };
    let file = ProviderSettings {
        kind: Some("groq".to_owned()),
        key: Some(KeyPlace::File("/nowhere/at/all".into())),
        ..ProviderSettings::default()
    };
    let known = settings([("half", half), ("odd", odd), ("file", file)]);
    let error = |wish: &str| remote(wish, &known, &[]).unwrap_err().to_string();
    assert!(error("half/m").starts_with("half needs a dialect, such as openai; write it under [providers.half]"));
    assert!(error("odd/m").starts_with("odd is of the kind `moss`, which is not known; choose one of openai,"));
    assert!(error("file/m").starts_with("the key of file cannot be read from /nowhere/at/all: "));
    assert_eq!(
        error("azure/m"),
        "azure needs an address; write it under [providers.azure] in the settings file, or set AZURE_OPENAI_ENDPOINT"
    );
}

#[test]
fn azure_has_an_address_per_deployment_or_the_new_one() {
    let nothing = ModelSettings::default();
    let key = ("AZURE_OPENAI_API_KEY", "az-12345");
    let there = ("AZURE_OPENAI_ENDPOINT", "https://moss.openai.azure.com/");
    let old = remote("azure/my deployment", &nothing, &[key, there]).unwrap();
    assert_eq!(old.path, "/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21");
    let Access::Key(sent) = old.access() else { panic!("it has a key") };
    assert_eq!((sent.header.as_str(), sent.scheme), ("api-key", ""));
    let version = ("AZURE_OPENAI_API_VERSION", "2025-04-01-preview");
    let newer = remote("azure/d", &nothing, &[key, there, version]).unwrap();
    assert!(newer.path.ends_with("?api-version=2025-04-01-preview"), "{}", newer.path);
    let v1 = ("AZURE_OPENAI_ENDPOINT", "https://moss.openai.azure.com/openai/v1/");
    assert_eq!(remote("azure/d", &nothing, &[key, v1, version]).unwrap().path, "/chat/completions");
    assert_eq!(
        remote("azure/d", &nothing, &[v1]).unwrap_err().to_string(),
        "azure needs a key; set AZURE_OPENAI_API_KEY"
    );
}

/// A workspace can name any model, but not use what the operator has not given to this program.
#[test]
fn workspaces_reach_only_providers_that_the_operator_set_up() {
    let world = || Arc::new(RealWorld);
    let keys = |name: &str| match name {
        "GROQ_API_KEY" | "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("k-0123456789".to_owned()),
        "AWS_REGION" => Some("eu-west-1".to_owned()),
        _ => None,
    };
    let connections = Connections::new(ModelSettings::default(), keys, world());
    assert!(connections.for_workspace("groq/llama").is_ok() && connections.for_workspace("ollama/llama").is_ok());
    for name in ["vllm/x", "tgi/x", "bedrock/x"] {
        let refused = connections.for_workspace(name).unwrap_err().to_string();
        assert!(refused.contains("is not set up here"), "{refused}");
        assert!(connections.named(name).is_ok(), "the operator can ask it");
    }
    assert!(connections.for_workspace("vllm/y").is_ok(), "what the operator asks, workspaces can ask");
    let settings =
        ModelSettings { providers: [("tgi".to_owned(), ProviderSettings::default())].into(), ..Default::default() };
    assert!(Connections::new(settings, keys, world()).for_workspace("tgi/x").is_ok());
}
