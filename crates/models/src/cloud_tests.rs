use super::*;

fn variables<'v>(set: &'v [(&'v str, &'v str)]) -> impl Fn(&str) -> Option<String> + 'v {
    move |name: &str| set.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
}

#[test]
fn addresses_are_made_of_variables() {
    let base = |cloud: Cloud, set: &[(&str, &str)]| cloud.base(None, &variables(set)).unwrap();
    let project = ("GOOGLE_CLOUD_PROJECT", "moss");
    assert_eq!(
        base(Cloud::Google, &[project, ("GOOGLE_CLOUD_LOCATION", "europe-west4")]),
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/moss/locations/europe-west4/publishers/google"
    );
    assert_eq!(
        base(Cloud::Google, &[project, ("GOOGLE_CLOUD_LOCATION", "global")]),
        "https://aiplatform.googleapis.com/v1/projects/moss/locations/global/publishers/google"
    );
    let regions = [("AWS_DEFAULT_REGION", "us-east-1"), ("AWS_REGION", "eu-central-1")];
    assert_eq!(base(Cloud::Aws, &regions), "https://bedrock-runtime.eu-central-1.amazonaws.com");
    assert_eq!(base(Cloud::Aws, &regions[..1]), "https://bedrock-runtime.us-east-1.amazonaws.com");
    let whole = "https://proxy/v1/projects/p/locations/l/publishers/google".to_owned();
    assert_eq!(Cloud::Google.base(Some(whole.clone()), &variables(&[])), Ok(whole));
}

#[test]
fn keys_are_shown_nowhere() {
    let set = [
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret-key"),
        ("AWS_SESSION_TOKEN", "t0ken-x"),
        ("AWS_REGION", "eu-central-1"),
    ];
    let access = Cloud::Aws.access(&variables(&set)).unwrap();
    let opened = access.clone().open(Arc::new(trellis_orchestrator::ports::RealWorld)).unwrap();
    for shown in [format!("{access:?}"), format!("{opened:?}")] {
        assert!(!shown.contains("s3cret") && !shown.contains("t0ken"), "{shown}");
    }
    let machine = Cloud::Google.access(&variables(&[])).unwrap();
    assert!(matches!(machine, CloudAccess::GoogleMachine { host: None }));
}
