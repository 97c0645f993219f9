//! A run keeps the configuration it began with, to its last subagent; the next question gets what is new.

use crate::memory;
use crate::promises::put;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::Caller;
use trellis_domain::Hash;
use trellis_domain::Workspace;
use trellis_domain::config::StoredItem;
use trellis_domain::decision::DecisionKind;
use trellis_domain::limits::SomeLimits;
use trellis_orchestrator::contract::play;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, question};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::orchestrator::{Orchestrator, Ports};
use trellis_orchestrator::ports::{BoxFuture, Config, PromptCall, PromptError, PromptReply, Prompter, ReplySink};

/// A model during whose reply to some prompt the configuration changes.
#[derive(Debug)]
struct Meanwhile {
    inner: ScriptedPrompter,
    config: Arc<dyn Config>,
    prompt: &'static str,
    change: Vec<StoredItem>,
}

impl Prompter for Meanwhile {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            if call.id == self.prompt {
                self.config.put(&Workspace::default(), self.change.clone(), Caller::program()).await.unwrap();
            }
            self.inner.ask(call, sink).await
        })
    }
}

/// Another tool, another word on when to stop, narrower limits.
fn change() -> Vec<StoredItem> {
    let item = |kind: &str, key: &str, value: serde_json::Value| StoredItem {
        kind: kind.to_owned(),
        key: key.to_owned(),
        value: value.to_string(),
    };
    let general = json!({"name": "general", "termination": "At once.", "framing": "Be new.",
        "limits": {"max-siblings": 1, "max-rounds": 1}});
    vec![
        item("tool", "browse", json!({"type": "text-completion", "name": "browse", "description": "new"})),
        item("agent-task-type", "general", general),
    ]
}

async fn changed_during(prompt: &'static str) -> Bench {
    let first = Bench::play(memory()).await;
    let general = json!({"name": "general", "termination": "When done.", "framing": "Be old."});
    put(&first, &[("agent-task-type", "general", general)]).await;
    let ports = first.orchestrator.ports.clone();
    let inner = ScriptedPrompter::new(play::reply);
    let meanwhile = Meanwhile { inner, config: Arc::clone(&ports.config), prompt, change: change() };
    let ports = Ports { prompter: Arc::new(meanwhile), ..ports };
    let orchestrator = Arc::new(Orchestrator::new(ports, first.orchestrator.options.clone()));
    Bench { orchestrator, ..first }
}

/// What a run shows of its configuration: snapshots, versions, tools, words, and how many were sent out per round.
#[derive(Debug, PartialEq)]
struct Shown {
    snapshots: BTreeSet<Hash>,
    versions: BTreeSet<u64>,
    tools: BTreeSet<Vec<String>>,
    words: BTreeSet<(String, String)>,
    sent_out: Vec<usize>,
}

fn shown(played: &Played) -> Shown {
    let replies = played.records.iter().filter_map(|record| record.body.as_replied());
    let routed = played.records.iter().filter_map(|record| record.body.as_routed());
    let decisions: Vec<_> =
        replies.flat_map(|replied| &replied.decision).chain(routed.clone().flat_map(|r| &r.decisions)).collect();
    let of_tools = decisions.iter().filter(|decision| decision.kind == DecisionKind::Tool);
    let fan_outs = played.records.iter().filter_map(|record| record.body.as_fanned_out());
    Shown {
        snapshots: played.records.iter().map(|record| record.header.config).collect(),
        versions: decisions.iter().map(|decision| decision.config_version).collect(),
        tools: of_tools
            .map(|decision| decision.options.iter().filter(|name| *name != "none").cloned().collect())
            .collect(),
        words: routed.map(|routed| (first_line(&routed.framing), routed.termination.clone())).collect(),
        sent_out: fan_outs.map(|fan_out| fan_out.goals.len()).collect(),
    }
}

/// The framing without the slice of context behind it.
fn first_line(framing: &str) -> String {
    framing.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_while_a_run_is_under_way_is_for_the_next_one() {
    let plan = json!({"plan": [{"say": "zero", "tool": true}, {"say": "one", "needs": [0], "tool": true}]});
    let team = json!({"team": [[agent("a"), plan.clone()], [agent("b"), {"team": [[agent("c")]]}]]});
    let scenes = [
        ("agent-react", json!({"tools": 3, "answer": "a"}), "react", vec![]),
        ("plan-create", plan, "plan-then-execute", vec![]),
        // Before the subagents of either round begin, and before those of the second.
        ("supervisor-decompose", team.clone(), "supervisor", vec![2, 2, 1]),
        ("supervisor-review", team, "supervisor", vec![2, 2, 1]),
    ];
    for (prompt, scene, pattern, sent_out) in scenes {
        let bench = changed_during(prompt).await;
        let before = bench.orchestrator.ports.config.pin(&Workspace::default()).await.unwrap();
        let run = bench.request(1, question(&scene, pattern), SomeLimits::default()).await;
        bench.finish(std::slice::from_ref(&run), 1).await;
        let played = Played::of(&bench, run).await;
        played.keeps_the_promises();
        let own = shown(&played);
        assert_eq!(own.snapshots, BTreeSet::from([before.snapshot.unwrap()]), "{prompt}");
        assert_eq!(own.versions, BTreeSet::from([before.version]), "{prompt}");
        assert_eq!(own.tools, BTreeSet::from([vec!["search".to_owned()]]), "{prompt}");
        assert_eq!(own.words, BTreeSet::from([("Be old.".to_owned(), "When done.".to_owned())]), "{prompt}");
        assert_eq!(own.sent_out, sent_out, "{prompt}");

        let run = bench.request(2, question(&scene, pattern), SomeLimits::default()).await;
        bench.finish(std::slice::from_ref(&run), 1).await;
        let next = shown(&Played::of(&bench, run).await);
        assert!(next.snapshots.is_disjoint(&own.snapshots), "{prompt}");
        assert_eq!(next.tools, BTreeSet::from([vec!["browse".to_owned(), "search".to_owned()]]), "{prompt}");
        assert_eq!(next.words, BTreeSet::from([("Be new.".to_owned(), "At once.".to_owned())]), "{prompt}");
        assert_eq!(next.sent_out, if sent_out.is_empty() { vec![] } else { vec![1] }, "{prompt}");
    }
}
