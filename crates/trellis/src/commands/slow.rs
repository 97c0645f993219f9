//! Where the time of a run went: what ran, and what waited for something.

use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::look::RunView;
use crate::show::{aligned, clean, columns_for, print_json, print_line, print_said, seconds, short};
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use trellis_domain::record::{Body, Name, Record};
use trellis_domain::{SessionId, Timestamp};
use trellis_orchestrator::ports::{RealWorld, World};
use trellis_patterns::notice;

/// A call, or a question to a person: when it could have begun, began, and was done.
#[derive(Debug, Clone, Serialize)]
struct Stretch {
    agent: String,
    what: String,
    kind: Kind,
    /// From the moment when everything that it follows from was there.
    waited_ms: u64,
    ran_ms: u64,
    #[serde(skip)]
    begin: Timestamp,
    #[serde(skip)]
    end: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Model,
    Tool,
    Person,
}

/// What ran of the run's time, by kind; side by side counts once, in `busy_ms`.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "programs read the unit in the names")]
struct Times {
    total_ms: u64,
    busy_ms: u64,
    person_ms: u64,
    waiting_ms: u64,
    model_ms: u64,
    tool_ms: u64,
}

pub(crate) async fn run(desk: &Desk, global: &Global, wish: &str, top: usize) -> Result<Exit, Failure> {
    let view = RunView::of(desk, wish).await?;
    let mut stretches = stretches(&view);
    let times = Times::of(&stretches, view.summary.ms(RealWorld.now()));
    stretches.sort_by_key(|stretch| std::cmp::Reverse(stretch.waited_ms + stretch.ran_ms));
    stretches.truncate(top);
    if global.output == Output::Json {
        print_json(&json!({"run_id": view.run, "times": times, "longest": stretches}).to_string())?;
        return Ok(Exit::Ok);
    }
    let columns = columns_for(global);
    let Times { total_ms, busy_ms, person_ms, waiting_ms, model_ms, tool_ms } = times;
    let person = if person_ms > 0 { format!(", {} waited for people", seconds(person_ms)) } else { String::new() };
    let sum = format!(
        "run {} took {}: {} something ran{person}, {} nothing did. Added up, models took {} and tools {}.",
        short(&view.run),
        seconds(total_ms),
        seconds(busy_ms),
        seconds(waiting_ms),
        seconds(model_ms),
        seconds(tool_ms)
    );
    print_said("", &sum, columns)?;
    if stretches.is_empty() {
        return Ok(Exit::Ok);
    }
    let head = ["waited", "ran", "", ""].map(str::to_owned).to_vec();
    let row = |stretch: &Stretch| {
        let kind = match stretch.kind {
            Kind::Model => "model",
            Kind::Tool => "tool",
            Kind::Person => "person",
        };
        let text = format!("{}{}", stretch.agent, stretch.what);
        vec![seconds(stretch.waited_ms), seconds(stretch.ran_ms), kind.to_owned(), text]
    };
    let rows: Vec<_> = std::iter::once(head).chain(stretches.iter().map(row)).collect();
    aligned(&rows, columns).iter().try_for_each(|line| print_line(line))?;
    Ok(Exit::Ok)
}

fn stretches(view: &RunView) -> Vec<Stretch> {
    let mut done: HashMap<(&SessionId, &Name), Timestamp> = HashMap::new();
    let agents: HashMap<&str, String> =
        view.trace.sessions.iter().map(|session| (session.session.as_str(), view.number_of(session))).collect();
    let mut found: Vec<Stretch> = Vec::new();
    for record in &view.records {
        let header = &record.header;
        let causes = header.causes.iter();
        let causes =
            causes.filter_map(|cause| done.get(&(cause.session.as_ref().unwrap_or(&header.session), &cause.name)));
        let ready = causes.copied().max();
        if let Some((kind, ms, what)) = work(record, &view.records) {
            let begin =
                Timestamp::from_micros(header.time.as_micros().saturating_sub_unsigned(ms.saturating_mul(1000)));
            let agent = agents.get(header.session.as_str()).filter(|number| !number.is_empty());
            let agent = agent.map(|number| format!("{number} ")).unwrap_or_default();
            let waited_ms = ready.map_or(0, |ready| begin.ms_since(ready));
            found.push(Stretch { agent, what, kind, waited_ms, ran_ms: ms, begin, end: header.time });
        }
        done.insert((&header.session, &header.name), header.time);
    }
    found
}

/// Who was at work on a record, for how long, and on what.
fn work(record: &Record, all: &[std::sync::Arc<Record>]) -> Option<(Kind, u64, String)> {
    let name = &record.header.name;
    match &record.body {
        Body::Replied(replied) => {
            let calls = notice(name, replied).calls;
            let tools: Vec<_> = calls.iter().map(|(tool, _)| clean(tool.as_str())).collect();
            let what =
                if tools.is_empty() { clean(&name.to_string()) } else { format!("asks for {}", tools.join(", ")) };
            Some((Kind::Model, replied.ms, what))
        }
        Body::Observed(observed) => Some((Kind::Tool, observed.ms, clean(&name.to_string()))),
        Body::Settled(_) => {
            let asked = all.iter().rev().filter(|other| other.header.seq < record.header.seq);
            let asked = asked.filter(|other| other.header.session == record.header.session);
            let asked = asked.into_iter().find(|other| other.body.as_parked().is_some())?;
            Some((Kind::Person, record.header.time.ms_since(asked.header.time), "answers a question".to_owned()))
        }
        Body::Accepted(_)
        | Body::Routed(_)
        | Body::FannedOut(_)
        | Body::Joined(_)
        | Body::Intended(_)
        | Body::InputRequired(_)
        | Body::Parked(_)
        | Body::Told(_)
        | Body::Ended(_) => None,
    }
}

impl Times {
    fn of(stretches: &[Stretch], total_ms: u64) -> Self {
        let added = |kind: Kind| stretches.iter().filter(|one| one.kind == kind).map(|one| one.ran_ms).sum();
        let (work, all): (Vec<_>, Vec<_>) =
            (stretches.iter().filter(|one| one.kind != Kind::Person).collect(), stretches.iter().collect());
        let (busy_ms, covered) = (covered_ms(&work), covered_ms(&all));
        Self {
            total_ms,
            busy_ms,
            person_ms: covered.saturating_sub(busy_ms),
            waiting_ms: total_ms.saturating_sub(covered),
            model_ms: added(Kind::Model),
            tool_ms: added(Kind::Tool),
        }
    }
}

/// For how long at least one of them was under way.
fn covered_ms(stretches: &[&Stretch]) -> u64 {
    let mut spans: Vec<_> = stretches.iter().map(|one| (one.begin, one.end)).collect();
    spans.sort_unstable();
    let (mut covered, mut until) = (0, Timestamp::from_micros(i64::MIN));
    for (begin, end) in spans {
        let begin = begin.max(until);
        covered += end.ms_since(begin);
        until = until.max(end);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_side_by_side_counts_once_and_people_apart() {
        let at = |ms: i64| Timestamp::from_micros(ms * 1000);
        let stretch = |kind, begin: i64, end: i64| {
            let ran_ms = at(end).ms_since(at(begin));
            Stretch {
                agent: String::new(),
                what: String::new(),
                kind,
                waited_ms: 0,
                ran_ms,
                begin: at(begin),
                end: at(end),
            }
        };
        let all = [
            stretch(Kind::Model, 0, 100),
            stretch(Kind::Tool, 50, 150),
            stretch(Kind::Person, 140, 400),
            stretch(Kind::Model, 450, 500),
        ];
        let times = Times::of(&all, 600);
        let Times { busy_ms, person_ms, waiting_ms, model_ms, tool_ms, .. } = times;
        assert_eq!((busy_ms, person_ms, waiting_ms, model_ms, tool_ms), (200, 250, 150, 150, 100));
    }
}
