//! What was said before a question: by a run that it goes on from, or as its caller tells it.

use crate::memory;
use serde_json::json;
use std::sync::{Arc, Mutex};
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::Exchange;
use trellis_domain::{RequestId, RunId, Scope};
use trellis_orchestrator::accept::{TOLD_BYTES, UnknownNames};
use trellis_orchestrator::contract::play;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::question;
use trellis_orchestrator::memory::scripted::{ScriptedPrompter, ScriptedTools};
use trellis_orchestrator::{AcceptError, Earlier, Question};

/// The context of each prompt, and a question that can be asked after something.
async fn asked_after(said: &[(u32, Option<Earlier>)]) -> (Vec<String>, Vec<Result<RunId, AcceptError>>) {
    let contexts: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&contexts);
    let prompter = ScriptedPrompter::new(move |call| {
        heard.lock().unwrap().push(call.variables["context"].as_str().unwrap_or_default().to_owned());
        play::reply(call)
    });
    let bench = Bench::with_tools(memory(), prompter, ScriptedTools::new(play::result)).await;
    let mut runs = Vec::new();
    for (n, earlier) in said {
        let question = Question {
            scope: Scope::default(),
            request_id: RequestId::new(&format!("request-{n}")).unwrap(),
            request: question(&json!({"answer": format!("answer {n}")}), "react"),
            limits: SomeLimits::default(),
            names: UnknownNames::Refuse,
            selection: trellis_domain::Selection::default(),
            by: None,
        };
        let accepted = bench.runs().accept_after(question, &earlier.clone().unwrap_or_default()).await;
        if let Ok(accepted) = &accepted {
            bench.finish(std::slice::from_ref(&accepted.run), 1).await;
        }
        runs.push(accepted.map(|accepted| accepted.run));
    }
    let contexts = contexts.lock().unwrap().clone();
    (contexts, runs)
}

fn request_run(n: u32) -> RunId {
    RunId::for_request(&Scope::default(), &RequestId::new(&format!("request-{n}")).unwrap())
}

fn told(exchanges: &[(&str, &str)]) -> Earlier {
    let exchange = |(question, answer): &(&str, &str)| Exchange {
        run: None,
        question: (*question).to_owned(),
        answer: (*answer).to_owned(),
    };
    Earlier::Told(exchanges.iter().map(exchange).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_goes_on_from_any_run_and_from_what_its_caller_tells() {
    let up_to = |n: u32| Some(Earlier::UpTo(request_run(n)));
    let (contexts, runs) = asked_after(&[
        (1, Some(told(&[("Who?", "Ada.")]))),
        (2, up_to(1)),
        (3, up_to(1)),
        (4, up_to(3)),
        (5, up_to(99)),
        (6, Some(told(&[("x", &"y".repeat(TOLD_BYTES))]))),
    ])
    .await;
    let exchange = |n: u32| format!("\n\nQuestion: {{\"answer\":\"answer {n}\"}}\nAnswer: answer {n}");
    let ada = "Earlier in this conversation:\n\nQuestion: Who?\nAnswer: Ada.";
    let after_first = format!("{ada}{}", exchange(1));
    let after_third = format!("{after_first}{}", exchange(3));
    assert_eq!(contexts, [ada, &after_first, &after_first, &after_third]);
    assert!(matches!(&runs[4], Err(AcceptError::NothingEarlier(run)) if *run == request_run(99)));
    assert!(matches!(&runs[5], Err(AcceptError::TooLarge(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repetition_comes_after_the_same() {
    let ada = || Some(told(&[("Who?", "Ada.")]));
    let (contexts, runs) = asked_after(&[(1, ada()), (1, ada()), (1, Some(told(&[])))]).await;
    assert_eq!((contexts.len(), runs[0].as_ref().ok()), (1, runs[1].as_ref().ok()));
    assert!(matches!(&runs[2], Err(AcceptError::OtherRequest { run }) if *run == request_run(1)));
}
