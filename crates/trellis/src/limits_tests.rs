use super::*;

fn parse(text: &str) -> Result<LimitSource, String> {
    crate::settings_file::parse(text).map(|file| file.limits)
}

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

fn environment(variables: &[(&str, &str)]) -> Result<LimitSource, String> {
    of_environment(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() {
    let file = parse("[limits]\nmax-iterations = 1\nmax-rounds = 1\nmax-depth = 1\n").unwrap();
    let variables = [("TRELLIS_LIMIT_MAX_ITERATIONS", "2"), ("TRELLIS_LIMIT_MAX_ROUNDS", "2")];
    let flags = LimitSource { usual: vec![limit("max-iterations=4"), limit("max-iterations=3")], maximum: Vec::new() };
    let limits = merged(&[file, environment(&variables).unwrap(), flags]).unwrap().usual;
    assert_eq!((limits.max_iterations, limits.max_rounds, limits.max_depth), (3, 2, 1), "the last of two flags counts");
    assert_eq!(limits.max_siblings, Limits::default().max_siblings);
}

#[test]
fn nothing_goes_above_the_operators_maximum() {
    let file = parse("[limits.maximum]\nmax-iterations = 5\nfan-in-timeout-ms = 1_000\n").unwrap();
    let variables = environment(&[("TRELLIS_LIMIT_MAXIMUM_MAX_ITERATIONS", "7")]).unwrap();
    let flags = LimitSource { usual: vec![limit("max-iterations=50")], maximum: Vec::new() };
    let limits = merged(&[file, variables, flags]).unwrap();
    assert_eq!((limits.usual.max_iterations, limits.usual.fan_in_timeout_ms), (7, 1_000));
    let request = of_request(&[limit("max-iterations=99")]).unwrap();
    assert_eq!(limits.refined(&request).max_iterations, 7);
}

#[test]
fn wrong_names_and_values_are_reported_with_their_place() {
    let problem = |text: &str| parse(text).unwrap_err();
    assert!(problem("[limits]\n\nmax-iteration = 3").starts_with("line 3, limits.max-iteration: there is no limit"));
    assert!(problem("[limits.maximum]\nmax_rounds = 3").contains("choose one of max-iterations, max-plan-steps,"));
    let negative = problem("[limits]\nmax-rounds = -3");
    assert_eq!(negative, "line 2, limits.max-rounds: the limit max-rounds is \"-3\"; write a whole number");
    assert!(problem("[limits]\nmax-rounds = \"three\"").contains("the limit max-rounds is \"string\""));
    assert!(problem("[limits]\nmax-depth = 99999999999").contains("is too large"));
    assert_eq!(
        problem("a = 1\n[limits]"),
        "line 1: there is no setting `a`; the file may hold [limits], [models], [providers], [queries], [tools] and [cluster]"
    );
    assert_eq!(problem("limits = 3"), "line 1: `limits` is not a table; write [limits]");
    assert!(problem("[limits]\nmax-depth = = 3").starts_with("line 2: "));

    let unknown = environment(&[("TRELLIS_LIMIT_SPEED", "3")]).unwrap_err();
    assert!(unknown.starts_with("TRELLIS_LIMIT_SPEED: there is no limit `speed`; choose one of"), "{unknown}");
    assert_eq!(environment(&[("TRELLIS_LIMIT_MAX_DEPTH", "")]), Ok(LimitSource::default()), "empty means not set");
}

#[test]
fn there_is_a_maximum_without_the_operators_word_and_the_operator_may_go_above_it() {
    let plain = merged(&[]).unwrap();
    assert_eq!((plain.maximum.max_siblings, plain.maximum.max_plan_steps), (Some(32), Some(200)));
    assert_eq!(described(&plain), "", "what is built in is not described");
    let request = of_request(&[limit("max-siblings=600")]).unwrap();
    assert_eq!(plain.refined(&request).max_siblings, 32);
    assert_eq!(held(&request, &plain), ["max-siblings is held to 32, the operator's maximum"]);
    let raised = merged(&[parse("[limits.maximum]\nmax-siblings = 100\n").unwrap()]).unwrap();
    assert_eq!(raised.refined(&request).max_siblings, 100);
    let usual = merged(&[parse("[limits]\nmax-siblings = 60\n").unwrap()]).unwrap();
    assert_eq!((usual.usual.max_siblings, usual.refined(&request).max_siblings), (60, 60), "who sets more wants more");
    let held = merged(&[parse("[limits]\nmax-siblings = 60\n[limits.maximum]\nmax-siblings = 5\n").unwrap()]).unwrap();
    assert_eq!(held.usual.max_siblings, 5);
}
