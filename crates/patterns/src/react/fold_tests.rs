use super::*;
use crate::contract::{Order, Pattern as _, Turn};
use crate::fixture::{Fixture, question, settings, turn};
use crate::react::IterationNames as _;
use crate::react::React;
use trellis_domain::Caller;
use trellis_domain::limits::{OperatorLimits, SomeLimits};
use trellis_domain::parts::ChatTurn;
use trellis_domain::record::{Accepted, Body, Name};
use trellis_domain::told::Told;

const CONVERSATION: [(&str, &str, &str); 2] = [
    ("tool", "search", r#"{"name": "search", "description": "finds", "type": "text-completion"}"#),
    ("prompt", "template.agent-react", r#"{"prompt": "{{ question }}", "conversation": true}"#),
];

fn decided(fixture: &Fixture, n: u32) -> Vec<Order> {
    let turn: Turn = turn(Name::iteration(n));
    React.decide(&fixture.session, &turn)
}

fn asked(fixture: &Fixture, n: u32) -> Vec<ChatTurn> {
    crate::fixture::asked(&decided(fixture, n)).1.turns.clone()
}

fn bytes(turns: &[ChatTurn]) -> usize {
    let size = |turn: &ChatTurn| match turn {
        ChatTurn::User { text } | ChatTurn::ToolResult { text, .. } => text.text().len(),
        ChatTurn::Assistant { parts } => parts.iter().map(ReplyPart::len).sum(),
    };
    turns.iter().map(size).sum()
}

/// Plays iterations in which a tool brings so many bytes; a model that reads at most so many refuses longer ones.
/// Gives what was shown each time.
fn played(iterations: u32, observation: usize, most: usize) -> (Fixture, Vec<Vec<ChatTurn>>, u32) {
    played_and_told(iterations, observation, most, &[])
}

/// The same, with messages of so many bytes before some iterations.
fn played_and_told(
    iterations: u32,
    observation: usize,
    most: usize,
    told: &[(u32, usize)],
) -> (Fixture, Vec<Vec<ChatTurn>>, u32) {
    let limits = SomeLimits { max_iterations: Some(iterations), ..SomeLimits::default() };
    let operator = OperatorLimits { maximum: limits.clone(), ..OperatorLimits::default() };
    let question = Accepted { limits, ..question("why?") };
    let mut fixture = Fixture::routed_under(operator, settings(&CONVERSATION), question);
    let (mut shown, mut refused) = (Vec::new(), 0);
    for n in 1.. {
        if n - refused > iterations {
            break;
        }
        for (_, bytes) in told.iter().filter(|(before, _)| *before == n) {
            let told = Told { text: "m".repeat(*bytes).into(), by: Caller::program() };
            let number = fixture.session.told_count() + 1;
            fixture.record(Name::told(number), Body::Told(told));
        }
        let orders = decided(&fixture, n);
        let turns = asked(&fixture, n);
        if bytes(&turns) > most {
            fixture.overflow(&orders);
            fixture.report(&decided(&fixture, n));
            refused += 1;
            continue;
        }
        shown.push(turns);
        fixture.reply(&orders, &format!("Thought: on\nAction: search\nArgs: {{\"question\": \"number {n}\"}}"));
        let observed = format!("{n}:").repeat(observation);
        fixture.observe(Name::observation_of(n, 1), Ok(&observed[..observation]), None);
    }
    (fixture, shown, refused)
}

#[test]
fn a_short_conversation_is_shown_whole() {
    let (_, shown, _) = played(10, 1_000, usize::MAX);
    let last = shown.last().unwrap();
    assert_eq!(last.len(), 18);
    assert!(bytes(last) > 9 * 900, "{}", bytes(last));
}

#[test]
fn a_long_one_costs_in_the_end_what_it_costs_in_the_beginning() {
    let (_, shown, refused) = played(200, 10_000, 30_000);
    assert!((1..=3).contains(&refused), "{refused} refusals");
    let most = |range: std::ops::Range<usize>| shown[range].iter().map(|turns| bytes(turns)).max().unwrap();
    let (early, late) = (most(5..30), most(170..200));
    assert!(late <= early * 12 / 10, "{early} bytes, then {late}");
    let ChatTurn::User { text } = &shown[199][0] else { panic!("{:?}", shown[199][0]) };
    assert!(text.text().starts_with("Steps 1 to 1"), "{}", text.text());
    assert!(text.text().contains("search {\"question\":\"number "), "{}", text.text());
}

#[test]
fn between_two_shortenings_the_beginning_stays_as_it_was() {
    let (_, shown, _) = played(100, 2_000, 60_000);
    let changes = shown.windows(2).filter(|two| two[1].get(..two[0].len()) != Some(&two[0][..])).count();
    assert!((1..=12).contains(&changes), "{changes} of 100 prompts begin anew");
}

#[test]
fn calls_and_results_stay_together_when_they_are_shortened() {
    let (_, shown, _) = played(60, 5_000, 40_000);
    for turns in &shown {
        let steps = if matches!(turns.first(), Some(ChatTurn::User { .. })) { &turns[1..] } else { &turns[..] };
        for pair in steps.chunks(2) {
            let [ChatTurn::Assistant { .. }, ChatTurn::ToolResult { .. }] = pair else { panic!("{pair:?}") };
        }
    }
}

#[test]
fn a_prompt_that_is_too_long_without_any_step_ends_the_session() {
    let mut fixture = Fixture::routed(settings(&CONVERSATION), question("why?"));
    let orders = decided(&fixture, 1);
    fixture.overflow(&orders);
    let orders = decided(&fixture, 1);
    let [Order::End(ending)] = orders.as_slice() else { panic!("{orders:?}") };
    assert!(ending.error.as_deref().is_some_and(|error| error.starts_with("the prompt is too long")), "{ending:?}");
}

#[test]
fn iterations_that_only_found_out_the_length_do_not_count() {
    let (fixture, _, refused) = played(8, 10_000, 30_000);
    let ends = |n: u32| matches!(decided(&fixture, n).as_slice(), [Order::End(_)]);
    assert!(refused > 0 && ends(9 + refused));
}

/// Messages stay whole; the steps have what they leave.
#[test]
fn what_people_say_is_shown_whole_and_counted() {
    let told = [(1, 9_000), (20, 9_000), (21, 500)];
    let (_, shown, refused) = played_and_told(100, 500, 30_000, &told);
    assert!((1..=3).contains(&refused), "{refused} refusals");
    for (at, turns) in shown.iter().enumerate() {
        let expected: usize =
            told.iter().filter(|(before, _)| *before as usize <= at + 1).map(|(_, bytes)| bytes).sum();
        assert!(said_by_people(turns) >= expected, "prompt {at}");
    }
    let changes = shown.windows(2).filter(|two| two[1].get(..two[0].len()) != Some(&two[0][..])).count();
    assert!((1..=30).contains(&changes), "{changes} of 100 prompts begin anew");
}

fn said_by_people(turns: &[ChatTurn]) -> usize {
    let messages = |turn: &ChatTurn| match turn {
        ChatTurn::User { text } | ChatTurn::ToolResult { text, .. } => text.text().matches('m').count(),
        ChatTurn::Assistant { .. } => 0,
    };
    turns.iter().map(messages).sum()
}
