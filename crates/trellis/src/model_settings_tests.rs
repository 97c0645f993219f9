use super::*;
use crate::settings_file::parse;

fn variables(variables: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>().into_iter()
}

#[test]
fn the_environment_beats_the_file_which_beats_what_is_built_in() {
    let file = "[models]\ntemperature = 0.2\ntop_p = 1\nmax-tokens = 300\nconcurrency = 3\nkeep_requests = true\n\
                first-token-timeout-ms = 5_000\n[models.\"ollama/llama3.2\"]\nnative-tools = false\n";
    let set = [("TRELLIS_MODELS_TEMPERATURE", "0.7"), ("TRELLIS_KEEP_REQUESTS", "0"), ("TRELLIS_MODELS_TOP_P", "")];
    let settings = with_environment(parse(file).unwrap().models, variables(&set)).unwrap();
    let ModelSettings { usual, native_tools, rehearsal_delay } = settings;
    let built_in = ModelSettings::default().usual;
    assert_eq!((usual.sampling.temperature, usual.sampling.top_p), (Some(0.7), Some(1.0)));
    assert_eq!((usual.sampling.max_tokens, usual.concurrency, usual.keep_requests), (Some(300), 3, false));
    assert_eq!((usual.first_token_timeout, usual.connect_timeout), (Duration::from_secs(5), built_in.connect_timeout));
    assert_eq!((usual.native_tools, native_tools.get("ollama/llama3.2")), (true, Some(&false)));
    assert_eq!(rehearsal_delay, None);
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
    let single = problem("[models]\n[models.\"openai/x\"]\ntemperature = 1");
    assert!(single.starts_with("line 3, models.openai/x.temperature: there is no setting"), "{single}");
    assert_eq!(problem("models = 3"), "line 1: `models` is not a table; write [models]");
    let wrong = |name: &str| with_environment(ModelSettings::default(), variables(&[(name, "x")])).unwrap_err();
    assert_eq!(wrong("TRELLIS_KEEP_REQUESTS"), "TRELLIS_KEEP_REQUESTS: \"x\" is neither true nor false");
    assert!(wrong("TRELLIS_MODELS_MOOD").starts_with("TRELLIS_MODELS_MOOD: there is no setting `mood`"));
    assert!(wrong("TRELLIS_REHEARSAL_DELAY_MS").ends_with("write milliseconds, such as 8"));
}
