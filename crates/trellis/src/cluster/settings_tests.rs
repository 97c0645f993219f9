use super::*;

const STATE: &str = "postgres://ann:s3cret@db/trellis";

fn set(pairs: &[(&str, &str)]) -> Result<ClusterSettings, String> {
    let mut settings = ClusterSettings::default();
    for (name, value) in pairs {
        settings.set(name, value)?;
    }
    Ok(settings)
}

fn refused(pairs: &[(&str, &str)]) -> String {
    set(pairs).and_then(Cluster::of).err().unwrap_or_default()
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let variables = [("TRELLIS_BUS", "nats://n"), ("TRELLIS_CLAIM_SECONDS", "7"), ("TRELLIS_STATE", " ")];
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let environment = ClusterSettings::of_environment(variable).unwrap();
    let file =
        set(&[("state", STATE), ("bus", "amqp://m"), ("claim-seconds", "9"), ("connections", "5"), ("replicas", "3")])
            .unwrap();
    let flags = set(&[("bus", "nats://flag"), ("graph", "http://h/ds")]).unwrap();
    assert_eq!(flags.clone().or(environment.clone()).graph.as_deref(), Some("http://h/ds"));
    let cluster = Cluster::of(flags.or(environment).or(file)).unwrap().unwrap();
    assert_eq!((cluster.state.as_str(), cluster.bus.as_deref()), (STATE, Some("nats://flag")));
    assert_eq!((cluster.connections, cluster.claim_life, cluster.replicas), (5, Duration::from_secs(7), 3));
    assert_eq!(cluster.deployment, "trellis");
}

#[test]
fn nothing_named_is_a_folder_and_a_bus_alone_is_a_mistake() {
    assert!(Cluster::of(ClusterSettings::default()).unwrap().is_none());
    assert!(refused(&[("bus", "amqp://m")]).contains("--state"));
}

#[test]
fn what_is_wrong_is_told_without_the_address() {
    let wrong = refused(&[("state", "mysql://ann:s3cret@db/x")]);
    assert!(wrong.contains("no state can be kept at mysql;") && !wrong.contains("s3cret"), "{wrong}");
    assert!(refused(&[("state", "s3cret")]).contains("without a scheme"));
    assert!(refused(&[("deployment", "My Place")]).contains("a-z"));
    assert!(refused(&[("claim-seconds", "2")]).contains("3 seconds"));
    assert!(refused(&[("replicas", "6")]).contains("1 to 5"));
    assert!(refused(&[("stat", "x")]).contains("there are state, bus"));
    assert!(!format!("{:?}", set(&[("state", STATE)]).unwrap()).contains("s3cret"));
}
