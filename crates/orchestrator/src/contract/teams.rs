//! Runs of several agents over any journal: fan-out, fan-in, deadlines, nesting, rounds.

use super::dying::Dying;
use super::layer::Layered;
use super::runs::{Bench, StorePorts};
use crate::ports::{RealWorld, Role, World, all_due_turns};
use crate::promises::{self, RunEvidence};
use crate::replay::replay;
use crate::workers::{Stop, WorkerOptions, Workers};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_domain::config::Settings;
use trellis_domain::fan_out::{JoinCause, Joined};
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Ended, Name, Record};
use trellis_domain::run::{RunState, Termination};
use trellis_domain::usage::Usage;
use trellis_domain::{Hash, RunId, Workspace};
use trellis_patterns::react::IterationNames;

/// A question that is played by the pattern it is made for.
pub fn question(scene: &Value, pattern: &str) -> AgentRequest {
    AgentRequest {
        question: scene.to_string(),
        pattern: pattern.to_owned(),
        streaming: true,
        ..AgentRequest::default()
    }
}

pub fn agent(answer: &str) -> Value {
    json!({"tools": 1, "answer": answer})
}

pub fn silent() -> Value {
    json!({"silent": true})
}

pub fn hurried(ms: u64) -> SomeLimits {
    SomeLimits { fan_in_timeout_ms: Some(ms), ..SomeLimits::default() }
}

/// Plays a scene to its end.
pub async fn play(bench: &Bench, scene: &Value, pattern: &str, limits: SomeLimits) -> Played {
    let run = bench.request(1, question(scene, pattern), limits).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    Played::of(bench, run).await
}

/// What a run left behind.
#[derive(Debug)]
pub struct Played {
    pub run: RunId,
    pub records: Vec<Arc<Record>>,
    /// The configurations that its sessions are pinned to.
    pub settings: BTreeMap<Hash, Arc<Settings>>,
}

impl Played {
    pub async fn of(bench: &Bench, run: RunId) -> Self {
        let records = bench.records(&run).await;
        let mut settings = BTreeMap::new();
        for record in &records {
            let (workspace, pinned) = (&record.header.workspace, record.header.config);
            if let Ok(found) = bench.orchestrator.ports.config.snapshot(workspace, pinned).await {
                settings.insert(pinned, found);
            }
        }
        Self { run, records, settings }
    }

    /// What does not follow from what came before it.
    pub fn replayed(&self) -> Vec<String> {
        replay(&self.records, &|hash| self.settings.get(&hash).cloned()).faults
    }

    pub fn ends(&self) -> Vec<(&Record, &Ended)> {
        self.records.iter().filter_map(|record| Some((&**record, record.body.as_ended()?))).collect()
    }

    pub fn end(&self) -> &Ended {
        let own = |(record, _): &(&Record, &Ended)| record.header.session == self.run;
        self.ends().into_iter().find(own).map(|(_, ended)| ended).expect("the run has ended")
    }

    pub fn answer(&self) -> &str {
        self.end().answer.as_ref().map_or("", |answer| answer.text())
    }

    pub fn joins(&self) -> Vec<&Joined> {
        self.records.iter().filter_map(|record| record.body.as_joined()).collect()
    }

    /// The promises that hold for every finished run, whatever happened on the way.
    pub fn keeps_the_promises(&self) {
        let configurations = |hash: Hash| self.settings.get(&hash).cloned();
        let broken = promises::broken(RunEvidence { records: &self.records, configurations: &configurations });
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }
}

pub async fn suite<F: Future<Output = StorePorts>>(fresh: impl Fn() -> F) {
    a_team_works_in_parallel_and_is_joined_once(fresh().await).await;
    equal_goals_are_told_apart(fresh().await).await;
    a_failed_subagent_counts_and_is_named(fresh().await).await;
    a_silent_subagent_is_waited_for_until_the_deadline(fresh().await).await;
    a_silent_team_ends_with_an_answer_all_the_same(fresh().await).await;
    a_supervisor_below_a_supervisor_ends_only_its_own_part(fresh().await).await;
    a_silent_team_below_a_team_ends_with_it(fresh().await).await;
    a_second_round_begins_where_the_first_one_ended(fresh().await).await;
    rounds_are_limited(fresh().await).await;
    depth_is_limited(fresh().await).await;
    costs_add_up_over_all_sessions(fresh().await).await;
    a_plan_runs_on_the_queue(fresh().await).await;
    a_run_that_comes_back_too_late_ends_with_everything_below_it(fresh().await).await;
    subagents_that_never_stop_working_do_not_keep_a_join_from_its_deadline(fresh().await).await;
    a_subagent_whose_id_is_taken_ends_the_run_with_the_reason(fresh().await).await;
    let (alone, team) = (agent("a"), json!({"team": [[agent("a")]]}));
    a_subagent_that_cannot_be_read_for_a_moment_is_gone_without(fresh().await, &[alone.clone(), alone], 1).await;
    a_subagent_that_cannot_be_read_for_a_moment_is_gone_without(fresh().await, &[team], 2).await;
}

/// The join is frozen as it was made, although the subagent can be read later.
async fn a_subagent_that_cannot_be_read_for_a_moment_is_gone_without(
    (journal, config): StorePorts,
    team: &[Value],
    end: usize,
) {
    let bench = Bench::play((Arc::new(Layered(Dying::with_a_bad_moment(end, journal))), config)).await;
    let played = play(&bench, &json!({"team": [team]}), "supervisor", SomeLimits::default()).await;
    let members = played.joins().into_iter().flat_map(|joined| &joined.members);
    assert_eq!(members.filter(|member| member.was_unreadable()).count(), 1, "{:?}", played.joins());
    played.keeps_the_promises();
}

/// Nobody joins while the time runs out, as if the process had been away.
async fn a_run_that_comes_back_too_late_ends_with_everything_below_it(store: StorePorts) {
    let bench = Bench::play(store).await;
    let inner = json!({"team": [[silent(), {"team": [[silent()]]}]]});
    let scene = json!({"team": [[inner, silent()]]});
    // On a busy machine the time may be over before all of them have begun: then more of it is given.
    let mut begun = None;
    for (number, ms) in [(1, 300), (2, 1_000), (3, 3_000)] {
        begun = all_begin_within(&bench, number, &scene, ms).await;
        if begun.is_some() {
            break;
        }
    }
    let run = begun.expect("six agents begin within seconds");
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    assert_eq!(played.ends().len(), 6, "each session once");
    assert!(played.ends().iter().all(|(_, ended)| ended.reason == Termination::Timeout));
    let last = played.records.iter().rfind(|record| !record.header.late).map(|record| &record.header.session);
    assert_eq!(last, Some(&played.run), "the root's end is the last that a follower hears");
}

/// A run whose six agents have begun, and whose time has passed since without anybody who works on it.
async fn all_begin_within(bench: &Bench, number: usize, scene: &Value, ms: u64) -> Option<RunId> {
    let limits = SomeLimits { run_timeout_ms: Some(ms), ..SomeLimits::default() };
    let run = bench.request(number, question(scene, "supervisor"), limits).await;
    let agents = WorkerOptions { roles: vec![Role::Agent], ..WorkerOptions::default() };
    let workers = Workers::new(Arc::clone(&bench.orchestrator), agents);
    let (stop, stopped) = watch::channel(None);
    let serving = tokio::spawn(async move { workers.run(stopped).await });
    let sessions = async || {
        let records = bench.records(&run).await;
        records.iter().filter(|record| record.body.as_accepted().is_some()).count()
    };
    let all = async {
        while sessions().await < 6 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let have_begun = tokio::time::timeout(Duration::from_millis(ms), all).await.is_ok();
    stop.send_replace(Some(Stop::Abandon));
    serving.await.expect("workers do not fail");
    tokio::time::sleep(Duration::from_millis(ms + 20)).await;
    have_begun.then_some(run)
}

async fn subagents_that_never_stop_working_do_not_keep_a_join_from_its_deadline(store: StorePorts) {
    let bench = Bench::play(store).await;
    let busy = json!({"tools": 1_000_000});
    let scene = json!({"team": [vec![busy; 32]]});
    let limits =
        SomeLimits { max_iterations: Some(u32::MAX), max_siblings: Some(32), max_rounds: Some(1), ..hurried(200) };
    let played = play(&bench, &scene, "supervisor", limits).await;
    played.keeps_the_promises();
    let end = played.end();
    assert_eq!((end.reason, end.missing.len()), (Termination::SubagentsPartial, 32), "{end:?}");
}

async fn a_subagent_whose_id_is_taken_ends_the_run_with_the_reason(store: StorePorts) {
    let bench = Bench::play(store).await;
    let scene = json!({"team": [[agent("a")]]});
    let squatter = AgentRequest { session_id: "mine".to_owned(), ..question(&scene, "supervisor") };
    let taken = RunId::new("mine").expect("a valid id").child(1, 0);
    let first = AgentRequest { session_id: taken.as_str().to_owned(), ..question(&agent("x"), "react") };
    let first = bench.request(1, first, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&first), 1).await;
    let run = bench.request(2, squatter, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run).await;
    let error = played.end().error.clone().unwrap_or_default();
    assert_eq!(error, "what follows cannot be recorded: an id is taken already");
}

async fn a_team_works_in_parallel_and_is_joined_once(store: StorePorts) {
    let bench = Bench::play(store).await;
    let scene = json!({"team": [[agent("a"), agent("b"), agent("c")]]});
    let played = play(&bench, &scene, "supervisor", SomeLimits::default()).await;
    played.keeps_the_promises();
    assert_eq!(played.end().reason, Termination::SubagentsComplete);
    let findings =
        "[finding 0] a (confidence: high)\n[finding 1] b (confidence: high)\n[finding 2] c (confidence: high)";
    assert_eq!(played.answer(), findings);
    let [join] = played.joins()[..] else { panic!("one join") };
    assert_eq!((join.cause, join.members.len()), (JoinCause::AllEnded, 3));
    let place = |name: Name| played.records.iter().position(|record| record.header.name == name);
    let first_work = place(Name::iteration(1));
    assert!(place(Name::fan_out(1)) < first_work, "the fan-out is recorded before a subagent runs");
    let calls = bench.prompter.calls.all();
    assert!(calls.values().all(|count| *count == 1), "paid once: {calls:?}");
    let later = RealWorld.now().plus_ms(1_000_000_000);
    let open = all_due_turns(&*bench.orchestrator.ports.journal, later).await.expect("the store works");
    assert!(open.is_empty(), "nothing is left open, not even the deadline: {open:?}");
}

async fn equal_goals_are_told_apart(store: StorePorts) {
    let bench = Bench::play(store).await;
    let scene = json!({"team": [[agent("a"), agent("a"), agent("a")]]});
    let played = play(&bench, &scene, "supervisor", SomeLimits::default()).await;
    played.keeps_the_promises();
    let indices: Vec<_> = played.joins()[0].members.iter().map(|member| member.index).collect();
    assert_eq!(indices, [0, 1, 2]);
}

async fn a_failed_subagent_counts_and_is_named(store: StorePorts) {
    let bench = Bench::play(store).await;
    let scene = json!({"team": [[agent("a"), {"fail": true}]]});
    let played = play(&bench, &scene, "supervisor", SomeLimits::default()).await;
    played.keeps_the_promises();
    assert_eq!((played.end().reason, played.end().missing.as_slice()), (Termination::SubagentsPartial, [1].as_slice()));
    let named = "missing finding 1: the model did not answer: the model is dead";
    assert!(played.answer().ends_with(named), "{}", played.answer());
    assert_eq!(bench.summary(&played.run).await.state, RunState::AnsweredPartial);
}

async fn a_silent_subagent_is_waited_for_until_the_deadline(store: StorePorts) {
    let bench = Bench::play(store).await;
    let scene = json!({"team": [[agent("a"), silent()]]});
    let played = play(&bench, &scene, "supervisor", hurried(2_000)).await;
    played.keeps_the_promises();
    let [join] = played.joins()[..] else { panic!("one join") };
    assert_eq!(join.cause, JoinCause::Deadline);
    let reasons: Vec<_> = join.members.iter().map(|member| member.reason).collect();
    assert_eq!(reasons, [Termination::FinalAnswer, Termination::Timeout]);
    assert_eq!(played.end().missing, [1]);
}

async fn a_silent_team_ends_with_an_answer_all_the_same(store: StorePorts) {
    let bench = Bench::play(store).await;
    let played = play(&bench, &json!({"team": [[silent(), silent()]]}), "supervisor", hurried(50)).await;
    played.keeps_the_promises();
    assert_eq!((played.end().reason, played.end().missing.len()), (Termination::SubagentsPartial, 2));
}

async fn a_supervisor_below_a_supervisor_ends_only_its_own_part(store: StorePorts) {
    let bench = Bench::play(store).await;
    let inner = json!({"team": [[agent("x"), agent("y")]]});
    let scene = json!({"team": [[inner, agent("b")]]});
    let played = play(&bench, &scene, "supervisor", SomeLimits::default()).await;
    played.keeps_the_promises();
    assert_eq!((played.joins().len(), played.ends().len()), (2, 5));
    let last = played.records.last().map(|record| &record.header.session);
    assert_eq!(last, Some(&played.run), "the root ends last");
    assert!(played.answer().contains("[finding 0] [finding 0] x"), "{}", played.answer());
}

async fn a_silent_team_below_a_team_ends_with_it(store: StorePorts) {
    let bench = Bench::play(store).await;
    let inner = json!({"team": [[silent(), {"team": [[silent()]]}]]});
    let scene = json!({"team": [[agent("a"), inner]]});
    // The inner fan-in gets a share of the time only, and answers before the outer one gives up.
    let played = play(&bench, &scene, "supervisor", hurried(4_000)).await;
    played.keeps_the_promises();
    assert!(played.end().missing.is_empty(), "the inner supervisor told what it had: {:?}", played.end());
    let timeouts = played.ends().iter().filter(|(_, ended)| ended.reason == Termination::Timeout).count();
    assert_eq!(timeouts, 2, "the silent ones");
}

async fn a_second_round_begins_where_the_first_one_ended(store: StorePorts) {
    let bench = Bench::play(store).await;
    let scene = json!({"team": [[agent("a"), {"fail": true}], [agent("c")]]});
    let played = play(&bench, &scene, "supervisor", SomeLimits::default()).await;
    played.keeps_the_promises();
    let correlations: Vec<_> = played.joins().iter().map(|join| join.correlation.clone()).collect();
    assert_eq!(correlations, [played.run.correlation(1), played.run.correlation(2)]);
    assert_eq!(played.joins()[1].members[0].index, 2, "numbers go on");
    let end = played.end();
    assert_eq!(
        (end.reason, end.missing.as_slice()),
        (Termination::SubagentsPartial, [1].as_slice()),
        "a gap stays named"
    );
    assert!(played.answer().contains("[finding 2] c"), "{}", played.answer());
}

async fn rounds_are_limited(store: StorePorts) {
    let bench = Bench::play(store).await;
    let scene = json!({"team": [[agent("a")], [agent("b")], [agent("c")], [agent("d")]]});
    let limits = SomeLimits { max_rounds: Some(2), ..SomeLimits::default() };
    let played = play(&bench, &scene, "supervisor", limits).await;
    played.keeps_the_promises();
    assert_eq!(played.joins().len(), 2);
    let iterations = SomeLimits { max_iterations: Some(3), ..SomeLimits::default() };
    let run = bench.request(2, question(&scene, "supervisor"), iterations).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    assert_eq!(Played::of(&bench, run).await.joins().len(), 1, "two iterations make a round");
}

async fn depth_is_limited(store: StorePorts) {
    let bench = Bench::play(store).await;
    let scene = json!({"team": [[{"team": [[{"team": [[agent("deep")]]}]]}]]});
    let limits = SomeLimits { max_depth: Some(2), ..SomeLimits::default() };
    let played = play(&bench, &scene, "supervisor", limits).await;
    played.keeps_the_promises();
    let depths = played.records.iter().filter_map(|record| record.body.as_accepted());
    let deepest = depths.filter_map(|accepted| accepted.parent.as_ref()).map(|parent| parent.ancestors.len()).max();
    assert_eq!(deepest, Some(2));
    let excluded = played.records.iter().filter_map(|record| record.body.as_fanned_out()).flat_map(|f| &f.decisions);
    let excluded: Vec<_> = excluded.flat_map(|decision| &decision.excluded).collect();
    assert!(excluded.iter().any(|option| option.name == "supervisor" && option.reason.contains("depth")));
}

async fn costs_add_up_over_all_sessions(store: StorePorts) {
    let bench = Bench::play(store).await;
    let inner = json!({"team": [[agent("x")]]});
    let scene = json!({"team": [[inner, agent("b"), {"fail": true}], [agent("c")]]});
    let played = play(&bench, &scene, "supervisor", SomeLimits::default()).await;
    let mut all = Usage::default();
    played.ends().iter().for_each(|(_, ended)| all.add(&ended.usage));
    let (total, summary) = (played.end().total().clone(), bench.summary(&played.run).await.usage);
    let sums = |usage: &Usage| (usage.in_token, usage.out_token, usage.model_calls, usage.tool_calls);
    assert_eq!(sums(&total), sums(&all), "the root's total is the sum of all sessions");
    assert_eq!(sums(&total), sums(&summary), "and what the list of runs says");
    assert_eq!(total.model_calls as usize, bench.prompter.calls.all().len());
}

async fn a_plan_runs_on_the_queue(store: StorePorts) {
    let bench = Bench::play(store).await;
    let first = json!([
        {"say": "zero", "tool": true}, {"say": "one", "tool": true, "fail": true},
        {"say": "two", "needs": [0], "tool": true}, {"say": "three", "needs": [1, 2]},
    ]);
    let scene = json!({"plan": first, "revisions": [[{"say": "four", "needs": [0], "tool": true}]]});
    let played = play(&bench, &scene, "plan-then-execute", SomeLimits::default()).await;
    played.keeps_the_promises();
    assert_eq!((played.end().reason, played.end().missing.as_slice()), (Termination::PlanPartial, [1].as_slice()));
    assert!(played.answer().contains("[step 0] fact \"zero\""), "{}", played.answer());
    assert!(played.answer().contains("[step 4] fact \"four\""), "{}", played.answer());
    let open = all_due_turns(&*bench.orchestrator.ports.journal, RealWorld.now()).await.expect("the store works");
    assert!(open.is_empty(), "{open:?}");
    let other = Workspace::new("other").expect("a valid name");
    let seen = bench.orchestrator.ports.journal.run(&other, &played.run).await.expect("the store works");
    assert!(seen.is_none(), "no leak across workspaces");
}
