//! `trellis orchestrator` in the place of the original, and beside it: the gateway, the commands and the other orchestrator are
//! those of the published packages.

use acceptance::{Broker, Deployment};
use std::collections::BTreeSet;
use trellis_servers::{RabbitMq, RabbitMqOptions};

/// How many questions the two share.
const QUESTIONS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_original_s_gateway_and_commands_find_nothing_changed() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let address = server.address();
    let (user, rest) = address.strip_prefix("amqp://").unwrap().split_once(':').unwrap();
    let (escaped_password, _) = rest.split_once('@').unwrap();
    let broker = Broker { port: server.port(), user, password: server.password(), escaped_password };
    let mut deployment = Deployment::start(broker).await;
    both_share_a_queue(&deployment).await;
    deployment.stop_original().await;
    questions_are_answered(&deployment).await;
    a_tool_is_known_as_soon_as_it_is_set(&deployment).await;
    traces_are_shown(&deployment).await;
    a_crash_is_not_noticed(&mut deployment).await;
}

async fn both_share_a_queue(deployment: &Deployment) {
    let told = deployment.python("trustgraph_pool.py", &[deployment.url(), &QUESTIONS.to_string()]).await.ok().json();
    for (number, told) in told.as_array().unwrap().iter().enumerate() {
        let answer = told["answer"].as_str().unwrap().trim();
        assert_eq!((answer, &told["ends"]), (format!("Question {number}? get_weather: rain.").as_str(), &1.into()));
    }
    let ended = about(deployment, "ended");
    let ids: BTreeSet<_> = ended.iter().map(|(id, _)| id).collect();
    assert_eq!((ids.len(), ended.len()), (QUESTIONS, QUESTIONS), "each is ended once: {ended:?}");
    // Whoever is free takes the next turn, of dialogs that the other one has begun as well.
    let took_part: BTreeSet<_> = about(deployment, "answered").into_iter().map(|(_, ours)| ours).collect();
    assert_eq!(took_part, BTreeSet::from([false, true]), "both have taken some");
}

/// The dialogs of which that was told, and whether it was done by ours.
fn about(deployment: &Deployment, what: &str) -> Vec<(String, bool)> {
    let told = deployment.told().into_iter();
    told.filter_map(|told| Some((told[what].as_str()?.to_owned(), told["ours"].as_bool()?))).collect()
}

async fn questions_are_answered(deployment: &Deployment) {
    let ask = async |arguments: &[&str]| deployment.tg("tg-invoke-agent", &[&["-q"], arguments].concat()).await;
    let shown = ask(&["Rain?", "-v", "--show-usage"]).await.ok();
    shown.says(&["I look it up", "get_weather: rain.", "Rain? get_weather: rain."]).notes(&["Input tokens: "]);
    let whole = ask(&["What says the almanac?", "--no-streaming"]).await.ok();
    assert_eq!(whole.stdout.trim(), "What says the almanac? In years: 1815.");
    ask(&["Plan it", "-p", "plan-then-execute"]).await.ok().says(&["The plan: get_weather: rain.; get_weather: rain."]);
    let found = "All found: Rain in Paris? get_weather: rain.; Rain in Oslo? get_weather: rain.";
    ask(&["Split it", "-p", "supervisor"]).await.ok().says(&[found]);
    // Words that 2.11.1 cannot translate.
    let failed = ask(&["No model knows this"]).await;
    assert!(failed.stdout.contains("'Error' object has no attribute 'code'"), "{failed}");
    assert!(about(deployment, "ended").iter().skip(QUESTIONS).all(|(_, ours)| *ours), "we are alone");
}

async fn a_tool_is_known_as_soon_as_it_is_set(deployment: &Deployment) {
    const COPIED: &str = "the configuration has changed";
    let before = deployment.said(COPIED);
    let tool = ["--id", "oracle", "--name", "oracle", "--description", "The oracle", "--type", "mcp-tool"];
    let called = ["--mcp-tool", "get_oracle", "--argument", "city:string:Where"];
    deployment.tg("tg-set-tool", &[&tool[..], &called].concat()).await.ok().says(&["Tool set."]);
    deployment.until_said_again(COPIED, before).await;
    let answered = deployment.tg("tg-invoke-agent", &["-q", "What says the oracle?", "-x"]).await.ok();
    let explained = ["[session] urn:trustgraph:agent:", "[analysis: oracle]", "[conclusion]"];
    answered.says(&["What says the oracle? get_oracle: rain."]).notes(&explained);
}

async fn traces_are_shown(deployment: &Deployment) {
    let sessions = deployment.tg("tg-list-explain-traces", &["--format", "json"]).await.ok().json();
    let traces = [
        (
            "What says the almanac?",
            &["--- Analysis ---", "Action: almanac", "In years: 1815.", "--- Conclusion ---"][..],
        ),
        ("Plan it", &["--- Plan ---", "0: Look", "--- Step Result ---", "--- Synthesis ---", "The plan: "]),
        (
            "Split it",
            &["--- Decomposition ---", "0: Rain in Paris?", "--- Finding ---", "--- Synthesis ---", "All found: "],
        ),
    ];
    for (question, shown) in traces {
        let session = sessions.as_array().unwrap().iter().find(|session| session["question"] == question);
        let session =
            session.unwrap_or_else(|| panic!("{question:?} is not listed: {sessions}"))["id"].as_str().unwrap();
        deployment.tg("tg-show-explain-trace", &[session]).await.ok().never_says("[Error").says(shown);
    }
}

/// A model that is asked when the process ends is asked again by the next one, for a client that has waited all the time.
async fn a_crash_is_not_noticed(deployment: &mut Deployment) {
    let before = about(deployment, "ended").len();
    let asking = tokio::spawn(deployment.begin("tg-invoke-agent", &["-q", "Slowly: rain?"]));
    deployment.until_told(|told| told["unanswered"].is_string()).await;
    deployment.crash_ours().await;
    let answered = asking.await.unwrap().ok();
    assert_eq!(answered.stdout.trim(), "Slowly: rain? get_weather: rain.");
    assert_eq!(about(deployment, "ended").len(), before + 1);
}
