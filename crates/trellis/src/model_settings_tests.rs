use super::*;
use crate::settings_file::parse;
use trellis_models::{DialectKind, KeyPlace, Prices};

fn variables(variables: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>().into_iter()
}

#[test]
fn the_environment_beats_the_file_which_beats_what_is_built_in() {
    let file = "[models]\ntemperature = 0.2\ntop_p = 1\nmax-tokens = 300\nconcurrency = 3\nkeep_requests = true\n\
                first-token-timeout-ms = 5_000\n[models.\"ollama/llama3.2\"]\nnative-tools = false\n\
                one-call-routing = true\nparallel-calls = false\n";
    let set = [("TRELLIS_MODELS_TEMPERATURE", "0.7"), ("TRELLIS_KEEP_REQUESTS", "0"), ("TRELLIS_MODELS_TOP_P", "")];
    let settings = with_environment(parse(file).unwrap().models, variables(&set)).unwrap();
    let ModelSettings { usual, models, rehearsal_delay, .. } = settings;
    let built_in = ModelSettings::default().usual;
    assert_eq!((usual.sampling.temperature, usual.sampling.top_p), (Some(0.7), Some(1.0)));
    assert_eq!((usual.sampling.max_tokens, usual.concurrency, usual.keep_requests), (Some(300), 3, false));
    assert_eq!((usual.first_token_timeout, usual.connect_timeout), (Duration::from_secs(5), built_in.connect_timeout));
    assert_eq!((usual.native_tools, models["ollama/llama3.2"].native_tools), (true, Some(false)));
    assert_eq!((usual.one_call_routing, models["ollama/llama3.2"].one_call_routing), (None, Some(true)));
    assert_eq!((usual.parallel_calls, models["ollama/llama3.2"].parallel_calls), (None, Some(false)));
    assert_eq!(rehearsal_delay, None);
}

#[test]
fn what_facts_may_cost_is_set_for_a_load_and_for_a_day() {
    let file = "[models]\nextraction-calls = 7\nextraction-tokens-per-day = 1_000\n";
    let set = [("TRELLIS_MODELS_EXTRACTION_CALLS_PER_DAY", "70"), ("TRELLIS_MODELS_EXTRACTION_TOKENS", "90")];
    let budgets = with_environment(parse(file).unwrap().models, variables(&set)).unwrap().extraction_budgets;
    assert_eq!((budgets.of_load.calls, budgets.of_load.tokens), (7, 90));
    assert_eq!((budgets.of_day.calls, budgets.of_day.tokens), (70, 1_000));
    assert!(parse("[models]\nextraction-calls = 0").unwrap_err().contains("above 0"));
}

#[test]
fn wrong_settings_of_models_are_reported_with_their_place() {
    let problem = |text: &str| parse(text).unwrap_err();
    assert!(
        problem("[models]\nmood = 1").starts_with("line 2, models.mood: there is no setting `mood` of models; choose")
    );
    assert_eq!(problem("[models]\ntop-p = 3"), "line 2, models.top-p: \"3\" is not a number between 0 and 1");
    assert_eq!(problem("[models]\nconcurrency = 0"), "line 2, models.concurrency: \"0\" is not a whole number above 0");
    assert_eq!(problem("[models]\nkeep-requests = 3"), "line 2, models.keep-requests: \"3\" is neither true nor false");
    let single = problem("[models]\n[models.\"openai/x\"]\nmood = 1");
    assert!(single.starts_with("line 3, models.openai/x.mood: there is no setting"), "{single}");
    assert_eq!(problem("models = 3"), "line 1: `models` is not a table; write [models]");
    let wrong = |name: &str| with_environment(ModelSettings::default(), variables(&[(name, "x")])).unwrap_err();
    assert_eq!(wrong("TRELLIS_KEEP_REQUESTS"), "TRELLIS_KEEP_REQUESTS: \"x\" is neither true nor false");
    assert!(wrong("TRELLIS_MODELS_MOOD").starts_with("TRELLIS_MODELS_MOOD: there is no setting `mood`"));
    assert!(wrong("TRELLIS_REHEARSAL_DELAY_MS").ends_with("write milliseconds, such as 8"));
}

#[test]
fn any_number_of_providers_are_described_by_name() {
    let file = r#"
        [providers.work]
        kind = "openai"
        address = "https://gateway.example/v1"
        key-env = "WORK_KEY"
        concurrency = 4
        headers = { X-Team = "moss" }
        rate_limit = { requests-per-minute = 60, tokens-per-minute = 90_000 }
        [providers.work.body]
        service_tier = "flex"
        metadata = { tags = ["a", 2, true, 0.5] }
        [providers.gpu]
        dialect = "anthropic"
        address = "http://gpu:4000"
        key-file = "/run/secrets/gpu"
        [models."work/gpt-x"]
        context-tokens = 128_000
        input-price = 0.4
        cached-input-price = 0.1
        output-price = 1.6
        reasoning-effort = "low"
        [models."ollama/qwen3"]
        keep-alive = -1
        think = "high"
        probe = false
    "#;
    let ModelSettings { models, providers, .. } = parse(file).unwrap().models;
    let work = &providers["work"];
    assert_eq!((work.kind.as_deref(), work.concurrency), (Some("openai"), Some(4)));
    assert_eq!(work.key, Some(KeyPlace::Variable("WORK_KEY".to_owned())));
    assert_eq!((work.headers["x-team"].as_str(), work.rate_limit.tokens_per_minute), ("moss", Some(90_000)));
    assert_eq!(work.body["metadata"], serde_json::json!({ "tags": ["a", 2, true, 0.5] }));
    assert_eq!(providers["gpu"].dialect, Some(DialectKind::Anthropic));
    assert_eq!(providers["gpu"].key, Some(KeyPlace::File("/run/secrets/gpu".into())));
    let costly = &models["work/gpt-x"];
    let prices = Prices { input: 0.4, cached_input: Some(0.1), output: 1.6 };
    assert_eq!((costly.prices, costly.context_tokens), (Some(prices), Some(128_000)));
    assert_eq!(costly.reasoning_effort.as_deref(), Some("low"));
    let local = &models["ollama/qwen3"];
    assert_eq!((&local.keep_alive, &local.think), (&Some((-1).into()), &Some("high".into())));
    assert_eq!(local.probe, Some(false));
}

#[test]
fn wrong_settings_of_providers_are_reported_and_keys_are_refused() {
    let problem = |line: &str| parse(&format!("[providers.work]\n{line}")).unwrap_err();
    let refused = problem("key = \"sk-very-secret\"");
    assert!(refused.starts_with("line 2, providers.work.key: a key does not belong into this file; "), "{refused}");
    assert!(refused.contains("key-env") && !refused.contains("very"), "{refused}");
    let refused = problem("headers = { Authorization = \"Bearer sk-very-secret\" }");
    assert!(refused.contains("key-header = \"Authorization\"") && !refused.contains("very"), "{refused}");
    assert!(problem("mood = 1").contains("there is no setting `mood` of a provider; choose one of kind, dialect"));
    let refused = problem("dialect = \"latin\"");
    assert!(refused.contains("there is no dialect \"latin\"; choose one of openai, "), "{refused}");
    assert!(problem("address = 3").ends_with("3 is not a text; write it in quotes"));
    assert!(problem("rate-limit = 3").ends_with("this is not a table; write { name = \"value\" }"));
    assert!(problem("concurrency = 0").ends_with("\"0\" is not a whole number above 0"));
    let named = parse("[providers.\"a/b\"]\nmodel = \"x\"").unwrap_err();
    assert!(named.starts_with("line 1: a provider cannot be called \"a/b\""), "{named}");
}
