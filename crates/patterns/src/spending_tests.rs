//! What counts as a call of a model.

use crate::fixture::{Fixture, question, settings};
use trellis_domain::record::{Accepted, Body, FailedAttempt, Incomplete, Name, PromptUse, Reading, Replied};

fn replied(model: Option<&str>, failures: Vec<FailedAttempt>, incomplete: Option<Incomplete>) -> Body {
    Body::from(Replied {
        prompt: PromptUse::default(),
        raw: "".into(),
        parts: Vec::new(),
        stop: None,
        thought: None,
        reading: Reading::Failed { reason: "nobody was there".into() },
        decision: Vec::new(),
        model: model.map(str::to_owned),
        in_token: None,
        out_token: None,
        ms: 1,
        citations: Vec::new(),
        failures,
        incomplete,
        enforced: false,
        repairs: Vec::new(),
        heard: 0,
    })
}

/// Older runs are proven by the rules that they were decided by.
#[test]
fn attempts_that_were_sent_count_from_revision_6_on() {
    let attempt = |is_sent: bool| FailedAttempt { asked: is_sent.then(Box::default), ..FailedAttempt::default() };
    let two = || vec![attempt(true), attempt(false), attempt(true)];
    for (what, body, [before, now]) in [
        ("a reply at last", replied(Some("a/b"), two(), None), [1, 3]),
        ("no reply at all", replied(None, two(), None), [1, 2]),
        ("cut off in the first attempt", replied(None, Vec::new(), None), [1, 1]),
        ("a reply at once", replied(Some("a/b"), Vec::new(), None), [1, 1]),
        ("nobody was asked", replied(None, Vec::new(), Some(Incomplete::Budget)), [0, 0]),
    ] {
        for (revision, expected) in [(5, before), (6, now)] {
            let mut fixture = Fixture::begun(settings(&[]), Accepted { revision, ..question("why?") });
            fixture.record(Name::new("i1/reply"), body.clone());
            assert_eq!(fixture.session.usage().model_calls, expected, "{what}, revision {revision}");
        }
    }
}
