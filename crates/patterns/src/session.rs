//! A session as its records tell it.

use crate::known;
use crate::room::{self, Room};
use crate::taken_up;
use foldhash::fast::FixedState;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use trellis_domain::budget::Budget;
use trellis_domain::config::Settings;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::fan_out::{FannedOut, Goal, Joined, Member};
use trellis_domain::history::in_words;
use trellis_domain::ids::config_iri;
use trellis_domain::limits::{Limits, OperatorLimits, PinnedLimits};
use trellis_domain::message::{AgentStep, PlanStep};
use trellis_domain::outage::Outages;
use trellis_domain::park::{Parked, Settled};
use trellis_domain::record::{Accepted, Body, Ended, InputRequired, Name, Observed, Record, Replied, Routed};
use trellis_domain::told::Told;
use trellis_domain::usage::Usage;
use trellis_domain::{Hash, SessionId, Timestamp, Workspace};

/// Folded records of one session, with the configuration it is pinned to.
#[derive(Debug, Clone)]
pub struct Session {
    settings: Arc<Settings>,
    operator: Arc<OperatorLimits>,
    /// The version of the newest record folded in.
    seen: u64,
    records: HashMap<Name, Arc<Record>, FixedState>,
    /// The names of the records that count, in the order in which they were committed.
    order: Vec<Name>,
    /// The records that nothing follows from yet.
    tips: Vec<Name>,
    tool_state: String,
    usage: Usage,
    outages: Arc<Outages>,
    /// What subagents of others have found, by the history that came with the question.
    found_before: Vec<Member>,
    /// Whether there is a plan in it that a session of plans can go on with.
    has_plan_begun: bool,
}

/// A request that names no state is in this one.
pub const NO_STATE: &str = "undefined";

impl Session {
    pub fn new(settings: Arc<Settings>, operator: Arc<OperatorLimits>) -> Self {
        Self {
            settings,
            operator,
            seen: 0,
            records: HashMap::default(),
            order: Vec::new(),
            tips: Vec::new(),
            tool_state: NO_STATE.to_owned(),
            usage: Usage::default(),
            outages: Arc::default(),
            found_before: Vec::new(),
            has_plan_begun: false,
        }
    }

    /// Tells when nobody served the store: that is not the session's time.
    #[must_use]
    pub fn with_outages(mut self, outages: Arc<Outages>) -> Self {
        self.outages = outages;
        self
    }

    /// The same session under these settings.
    #[must_use]
    pub fn with_settings(mut self, settings: Arc<Settings>) -> Self {
        self.settings = settings;
        self
    }

    /// Whether what was folded in is the beginning of these records, and nothing else. Records that are not committed yet
    /// are others than those that are, so it is enough to look at the last.
    pub fn is_beginning_of(&self, records: &[Arc<Record>]) -> bool {
        let last = self.records.len().checked_sub(1).and_then(|last| records.get(last));
        last.is_some_and(|last| self.record(&last.header.name).is_some_and(|known| Arc::ptr_eq(known, last)))
    }

    /// Goes on to the end of these records, of which it is the beginning.
    #[must_use]
    pub fn with_all(mut self, records: &[Arc<Record>]) -> Self {
        let new = records.get(self.records.len()..).unwrap_or_default();
        self.records.reserve(new.len());
        self.order.reserve(new.len());
        for record in new {
            self.apply(Arc::clone(record));
        }
        self
    }

    /// Folds one record in. Records that arrived after the end change nothing that counts.
    pub fn apply(&mut self, record: Arc<Record>) {
        self.seen = self.seen.max(record.header.version);
        let place = match self.records.entry(record.header.name.clone()) {
            Entry::Occupied(mut known) => {
                known.insert(record);
                return;
            }
            Entry::Vacant(place) => place,
        };
        let record = Arc::clone(place.insert(record));
        if !record.header.late {
            let name = &record.header.name;
            self.count(&record.body);
            if let Some(accepted) = record.body.as_accepted() {
                self.found_before = taken_up::findings(&record.header.session, accepted);
                self.has_plan_begun = !taken_up::plan(accepted).is_empty();
            }
            self.order.push(name.clone());
            if record.body.as_told().is_some() {
                // Whatever was under way goes on as if nobody had said anything; who hears it says so.
                return;
            }
            self.tips
                .retain(|tip| !record.header.causes.iter().any(|cause| cause.session.is_none() && cause.name == *tip));
            self.tips.push(name.clone());
        }
    }

    fn count(&mut self, body: &Body) {
        let revision = self.revision();
        add_cost(&mut self.usage, body, revision);
        match body {
            Body::Accepted(accepted) if !accepted.state.is_empty() => self.tool_state.clone_from(&accepted.state),
            Body::Observed(observed) => {
                if let Some(state) = &observed.state {
                    self.tool_state.clone_from(state);
                }
            }
            Body::Accepted(_)
            | Body::Routed(_)
            | Body::Replied(_)
            | Body::FannedOut(_)
            | Body::Joined(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::Parked(_)
            | Body::Settled(_)
            | Body::Told(_)
            | Body::Ended(_) => {}
        }
    }

    /// The records that count, in the order in which they were committed.
    pub fn in_order(&self) -> impl DoubleEndedIterator<Item = &Arc<Record>> {
        self.order.iter().filter_map(|name| self.records.get(name))
    }

    /// The records that nothing follows from yet. Whatever is decided from the whole session follows from these, and so
    /// from everything.
    pub fn tips(&self) -> &[Name] {
        &self.tips
    }

    /// The operator's limits: those that the run began with, as far as they are on record.
    pub fn operator(&self) -> &OperatorLimits {
        let pinned = self.accepted().and_then(|accepted| accepted.operator.as_ref());
        pinned.map_or(&*self.operator, PinnedLimits::limits)
    }

    /// The rules by which its replies are read and its turns are decided.
    pub fn revision(&self) -> u32 {
        self.accepted().map_or(0, |accepted| accepted.revision)
    }

    /// What is part of the marks around material; older sessions have none.
    pub fn mark(&self) -> Option<&str> {
        self.accepted()?.mark.as_deref()
    }

    /// The day on which the question was asked.
    pub fn today(&self) -> Option<String> {
        self.started().map(|asked| asked.to_string().chars().take_while(|c| *c != 'T').collect())
    }

    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The IRI of all configuration items of a type in this session's workspace.
    pub fn config_source(&self, kind: &str) -> String {
        config_iri(&self.workspace(), kind, None)
    }

    /// A choice that the model of this session is about to make.
    pub fn offered(&self, kind: DecisionKind, options: Vec<String>, source: String) -> Decision {
        Decision::offered(kind, options, source, self.settings.version)
    }

    pub fn seen(&self) -> u64 {
        self.seen
    }

    pub fn has(&self, name: &Name) -> bool {
        self.records.contains_key(name)
    }

    pub fn record(&self, name: &Name) -> Option<&Arc<Record>> {
        self.records.get(name)
    }

    pub fn content_hash(&self, name: &Name) -> Option<Hash> {
        Some(self.records.get(name)?.header.content)
    }

    pub fn accepted(&self) -> Option<&Accepted> {
        self.records.get(&Name::session())?.body.as_accepted()
    }

    pub fn started(&self) -> Option<Timestamp> {
        Some(self.records.get(&Name::session())?.header.time)
    }

    /// For how long nobody served the store since the session began.
    pub fn outage_ms(&self, now: Timestamp) -> u64 {
        self.started().map_or(0, |started| self.outages.ms_between(started, now))
    }

    /// How much of its time the session has spent. Time in which it waits for people is not its own.
    pub fn spent_ms(&self, now: Timestamp) -> u64 {
        let spent = self.started().map_or(0, |started| now.ms_since(started));
        spent.saturating_sub(self.outage_ms(now)).saturating_sub(self.parked_ms(now))
    }

    /// The time after which nobody waits for this subagent any more; none for the root of a run.
    pub fn waited_for_until(&self, now: Timestamp) -> Option<Timestamp> {
        let parent = self.accepted()?.parent.as_ref()?;
        Some(parent.deadline.plus_ms(self.outage_ms(now)))
    }

    /// For how long nobody served the store since the fan-out of that round.
    pub fn outage_ms_since_fan_out(&self, round: u32, now: Timestamp) -> u64 {
        let sent_out = self.records.get(&Name::fan_out(round)).map(|record| record.header.time);
        sent_out.map_or(0, |sent_out| self.outages.ms_between(sent_out, now))
    }

    /// For how long nobody served the store since a question to a person.
    pub fn outage_ms_since_park(&self, number: u32, now: Timestamp) -> u64 {
        let asked = self.records.get(&Name::park(number)).map(|record| record.header.time);
        asked.map_or(0, |asked| self.outages.ms_between(asked, now))
    }

    fn first(&self) -> Option<&Arc<Record>> {
        self.in_order().next()
    }

    pub fn id(&self) -> Option<&SessionId> {
        self.first().map(|record| &record.header.session)
    }

    pub fn workspace(&self) -> Workspace {
        self.first().map(|record| record.header.workspace.clone()).unwrap_or_default()
    }

    /// How many sessions stand above this one.
    pub fn depth(&self) -> u32 {
        let parent = self.accepted().and_then(|accepted| accepted.parent.as_ref());
        parent.map_or(0, |parent| u32::try_from(parent.ancestors.len()).unwrap_or(u32::MAX))
    }

    pub fn question(&self) -> &str {
        self.accepted().map_or("", |accepted| accepted.question.text())
    }

    pub fn routed(&self) -> Option<&Routed> {
        self.records.get(&Name::pattern_decision())?.body.as_routed()
    }

    /// The limits in force. Before routing these are the operator's, the workspace's and the request's own.
    pub fn limits(&self) -> Limits {
        let unrouted = || {
            let request = self.accepted().map(|accepted| accepted.limits.clone());
            let operator = self.operator();
            operator.refined(&self.settings.limits).refined(&request.unwrap_or_default(), &operator.maximum)
        };
        self.routed().map_or_else(unrouted, |routed| routed.limits.clone())
    }

    /// What a prompt has for its material: what the limits allow and the model can read, without what people told the
    /// sessions above, which every prompt shows whole.
    pub(crate) fn room(&self) -> Room {
        let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        let (limits, can_read) = (self.limits(), self.accepted().and_then(|accepted| accepted.room));
        let room = Room {
            bytes: bytes(limits.conversation_bytes.min(can_read.unwrap_or(u64::MAX))),
            each: bytes(limits.shown_observation_bytes),
            is_shared: self.revision() >= room::SINCE,
        };
        let told = self.routed().filter(|_| self.counts_messages()).map_or(0, |routed| routed.told.len());
        room.beside(told)
    }

    /// The same for a prompt that shows what people told this session, too. A conversation counts that by itself.
    pub(crate) fn room_beside_messages(&self) -> Room {
        let told = if self.counts_messages() { self.all_messages().len() } else { 0 };
        self.room().beside(told)
    }

    /// The same for what is asked under this name: much less if it was too long before.
    pub(crate) fn room_for(&self, name: &Name) -> Room {
        let room = self.room_beside_messages();
        if self.was_too_long(name) { room.narrowed() } else { room }
    }

    /// Whether the model found what it was asked under this name too long.
    pub(crate) fn was_too_long(&self, name: &Name) -> bool {
        self.replied(name).is_some_and(Replied::was_too_long)
    }

    /// A model's reply by name.
    pub fn replied(&self, name: &Name) -> Option<&Replied> {
        self.replied_as(name.as_str())
    }

    /// The same, where a name was only written down for this.
    pub(crate) fn replied_as(&self, name: &str) -> Option<&Replied> {
        self.records.get(name)?.body.as_replied()
    }

    pub fn observed(&self, name: &Name) -> Option<&Observed> {
        self.observed_as(name.as_str())
    }

    pub(crate) fn observed_as(&self, name: &str) -> Option<&Observed> {
        self.records.get(name)?.body.as_observed()
    }

    /// The reply that counts: to the question asked once more, if it was.
    pub fn last_replied(&self, name: &Name) -> Option<&Replied> {
        self.replied(&name.retry()).or_else(|| self.replied(name))
    }

    pub fn fan_out(&self, round: u32) -> Option<&FannedOut> {
        self.records.get(&Name::fan_out(round))?.body.as_fanned_out()
    }

    pub fn joined(&self, round: u32) -> Option<&Joined> {
        self.records.get(&Name::join(round))?.body.as_joined()
    }

    /// All fan-outs so far, first round first.
    pub fn fan_outs(&self) -> impl Iterator<Item = &FannedOut> {
        (1..).map_while(|round| self.fan_out(round))
    }

    /// All joins so far, first round first. Agents that were called like tools may come back in any order.
    pub(crate) fn joins(&self) -> impl Iterator<Item = &Joined> {
        self.fan_outs().filter_map(|fan_out| self.joined(fan_out.round))
    }

    /// The plan of others that the session goes on with; empty if it makes its own.
    pub(crate) fn plan_begun(&self) -> &[PlanStep] {
        let accepted = self.accepted().filter(|_| self.has_plan_begun && self.is_routed_to(known::PLAN));
        accepted.map(|accepted| taken_up::newest_plan(&accepted.history)).unwrap_or_default()
    }

    /// What subagents of others have found, if the session puts that together; empty if it sends out its own.
    pub(crate) fn found_before(&self) -> &[Member] {
        if self.is_routed_to(known::SUPERVISOR) { &self.found_before } else { &[] }
    }

    fn is_routed_to(&self, pattern: &str) -> bool {
        self.routed().is_some_and(|routed| routed.pattern == pattern)
    }

    /// The agent that was called for what is recorded under this name, and the round that it was sent out in.
    pub(crate) fn agent_called(&self, outcome: &Name) -> Option<(&FannedOut, &Goal)> {
        let goals = self.fan_outs().flat_map(|fan_out| fan_out.goals.iter().map(move |goal| (fan_out, goal)));
        let mut called = goals.filter(|(_, goal)| goal.call.as_ref() == Some(outcome));
        called.next()
    }

    /// All questions to people so far, first one first.
    pub fn parks(&self) -> impl Iterator<Item = &Parked> {
        (1..).map_while(|number| self.park(number))
    }

    pub fn park(&self, number: u32) -> Option<&Parked> {
        self.records.get(&Name::park(number))?.body.as_parked()
    }

    /// What became of a question to a person.
    pub fn settled(&self, number: u32) -> Option<&Settled> {
        self.records.get(&Name::park_decision(number))?.body.as_settled()
    }

    /// What the session was told while it was under way, first message first.
    pub fn told(&self) -> impl Iterator<Item = &Told> {
        (1..).map_while(|n| self.records.get(&Name::told(n))?.body.as_told())
    }

    /// How many messages that are.
    pub fn told_count(&self) -> u32 {
        u32::try_from(self.told().count()).unwrap_or(u32::MAX)
    }

    /// The messages after the first so many and up to another, as a model is told them; none if there are none.
    pub(crate) fn messages(&self, after: u32, until: u32) -> Option<String> {
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let messages = self.told().take(count(until)).skip(count(after));
        let lines: Vec<_> =
            messages.map(|told| format!("New message from the person who asked: {}", told.text.text())).collect();
        (!lines.is_empty()).then(|| lines.join("\n\n"))
    }

    /// How often the call whose outcome is recorded under this name was about to be made.
    pub fn intents(&self, about: &Name) -> u32 {
        let made = (1..).take_while(|n| self.has(&Name::intent(about, *n)));
        u32::try_from(made.count()).unwrap_or(u32::MAX)
    }

    /// How often the tool whose outcome is recorded under this name has asked for input.
    pub fn inputs(&self, about: &Name) -> u32 {
        let asked = (1..).take_while(|n| self.input_required(about, *n).is_some());
        u32::try_from(asked.count()).unwrap_or(u32::MAX)
    }

    /// What it asked for the `n`th time.
    pub fn input_required(&self, about: &Name, n: u32) -> Option<&InputRequired> {
        self.records.get(&Name::input(about, n))?.body.as_input_required()
    }

    /// What it asked last.
    pub fn last_input(&self, about: &Name) -> Option<&InputRequired> {
        self.input_required(about, self.inputs(about))
    }

    /// The question that was asked about a record.
    pub fn park_about(&self, name: &Name) -> Option<&Parked> {
        self.parks().find(|park| park.about == *name)
    }

    /// For how long the session did nothing but wait for people. Outages are told apart.
    fn parked_ms(&self, now: Timestamp) -> u64 {
        let time = |name: &Name| self.records.get(name).map(|record| record.header.time);
        let (mut until, mut waited) = (Timestamp::from_micros(i64::MIN), 0);
        for park in self.parks() {
            let Some(asked) = time(&Name::park(park.number)) else { continue };
            let answered = time(&Name::park_decision(park.number)).unwrap_or(now).min(now);
            // Two questions may be open at once.
            let begun = asked.max(until);
            waited += answered.ms_since(begun).saturating_sub(self.outages.ms_between(begun, answered));
            until = until.max(answered);
        }
        waited
    }

    pub fn ended(&self) -> Option<&Ended> {
        self.records.get(&Name::end())?.body.as_ended()
    }

    /// What models named and limits did not let happen, in words.
    pub fn left_out(&self) -> Vec<String> {
        let replies = self.in_order().filter_map(|record| record.body.as_replied());
        let mut told = Vec::new();
        for left_out in replies.flat_map(Replied::left_out) {
            // A budget that is used up keeps more than one call from being made.
            if !self.has_budgets() || !told.contains(&left_out) {
                told.push(left_out);
            }
        }
        told.into_iter().map(str::to_owned).collect()
    }

    /// What every prompt is told besides the question: the configured context, the framing, the task type's words
    /// on when to stop, what was said before in the conversation, the steps that the caller brought along, and what was
    /// said since. Null if there is none of them.
    pub fn context(&self) -> Value {
        self.context_with([self.brought(), self.all_messages()])
    }

    /// The same for a prompt that lists the steps that the caller brought along before its own.
    pub fn context_without_steps(&self) -> Value {
        self.context_with([self.all_messages(), String::new()])
    }

    /// The same for a prompt that stands before a conversation, in which messages have their place.
    pub fn context_before_turns(&self) -> Value {
        self.context_with(Default::default())
    }

    fn all_messages(&self) -> String {
        self.messages(0, u32::MAX).unwrap_or_default()
    }

    fn context_with(&self, [brought, messages]: [String; 2]) -> Value {
        let routed = self.routed();
        let framing = routed.map(|routed| routed.framing.to_string()).unwrap_or_default();
        let stop = routed.map(|routed| routed.termination.as_str()).filter(|words| !words.is_empty());
        let stop = stop.map(|words| format!("When to stop: {words}")).unwrap_or_default();
        let told = routed.map(|routed| routed.told.to_string()).unwrap_or_default();
        let parts = [self.settings.additional_context.clone(), framing, stop, self.earlier(), told, brought, messages];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { Value::Null } else { json!(parts.join("\n\n")) }
    }

    /// The earlier questions and answers of the conversation.
    pub fn earlier(&self) -> String {
        let earlier = self.accepted().map(|accepted| accepted.earlier.as_slice()).unwrap_or_default();
        if earlier.is_empty() {
            return String::new();
        }
        let exchange = |exchange: &trellis_domain::record::Exchange| {
            format!("\n\nQuestion: {}\nAnswer: {}", exchange.question, exchange.answer)
        };
        format!("Earlier in this conversation:{}", earlier.iter().map(exchange).collect::<String>())
    }

    /// The steps that the caller brought along.
    fn brought(&self) -> String {
        let history = self.history_beside();
        if history.is_empty() {
            return String::new();
        }
        let budget =
            self.room_beside_messages().for_context().shared_by(history.iter().map(|step| step.observation.as_str()));
        format!("Done before this question was asked:\n\n{}", in_words(&history, |text| budget.shown(text)))
    }

    /// The history without what the session goes on with: prompts have places of their own for that.
    fn history_beside(&self) -> Vec<AgentStep> {
        let history = self.accepted().map(|accepted| accepted.history.as_slice()).unwrap_or_default();
        let (plan, found) = (self.plan_begun(), self.found_before());
        let has_place = |step: &AgentStep| {
            !plan.is_empty() && !step.plan.is_empty() || !found.is_empty() && taken_up::is_join(step)
        };
        history.iter().filter(|step| !has_place(step)).cloned().collect()
    }

    /// The state that decides which tools apply.
    pub fn tool_state(&self) -> &str {
        &self.tool_state
    }

    /// What the session itself has cost so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    pub fn has_subagents(&self) -> bool {
        self.fan_out(1).is_some()
    }

    /// The same with all subagents that were joined.
    pub fn total_usage(&self) -> Usage {
        let mut total = self.usage.clone();
        for joined in self.joins() {
            joined.members.iter().for_each(|member| self.add_subagent(&mut total, &member.usage));
        }
        total
    }

    /// Runs under earlier rules have no budgets.
    pub(crate) fn has_budgets(&self) -> bool {
        self.revision() >= 4
    }

    /// Under earlier rules what people said was a part of the framing of subagents, and took no room.
    pub(crate) fn counts_messages(&self) -> bool {
        self.revision() >= 5
    }

    /// Under earlier rules an answer that rests on nothing that was looked up ended a session like any other.
    pub(crate) fn tells_empty_hands(&self) -> bool {
        self.revision() >= 7
    }

    /// Whether tools were called and every call failed. What a person gave as the result of a call counts as one; what only
    /// the model was told of its own mistakes is no call.
    pub(crate) fn has_only_failed_calls(&self) -> bool {
        let observed = || self.in_order().filter_map(|record| record.body.as_observed());
        self.tells_empty_hands()
            && observed().any(|observed| observed.idempotency_key.is_some())
            && observed().all(|observed| observed.error.is_some())
    }

    /// Adds what a subagent and everything below it cost.
    pub fn add_subagent(&self, total: &mut Usage, cost: &Usage) {
        total.add(cost);
        total.agents += u32::from(self.has_budgets());
    }

    /// What the session and its subagents have spent of its budget.
    pub(crate) fn spent(&self) -> Budget {
        if !self.has_subagents() {
            return self.usage.spent();
        }
        // What a subagent spent whose records could not be read is not known: its share counts as spent.
        let joins = self.joins().filter_map(|joined| Some((joined, self.fan_out(joined.round)?)));
        let unread =
            joins.map(|(joined, fan_out)| (joined.members.iter().filter(|it| it.was_unreadable()).count(), fan_out));
        let lost = unread.filter_map(|(count, fan_out)| Some((u32::try_from(count).ok()?, fan_out.share?)));
        lost.fold(self.total_usage().spent(), |spent, (count, share)| spent.with(&share.times(count)))
    }

    /// What agents may still spend that were called like tools: others go on beside them.
    pub(crate) fn reserved(&self) -> Budget {
        self.shares_of_calls(|fan_out| self.joined(fan_out.round).is_none())
    }

    /// The same with all that came back: so much was reserved at most at any time.
    pub(crate) fn reserved_at_most(&self) -> Budget {
        self.shares_of_calls(|_| true)
    }

    fn shares_of_calls(&self, counts: impl Fn(&FannedOut) -> bool) -> Budget {
        let calls = self.fan_outs().filter(|fan_out| fan_out.turn.is_some() && counts(fan_out));
        let shares = calls.filter_map(|calls| Some((calls.share?, u32::try_from(calls.goals.len()).ok()?)));
        shares.fold(Budget::default(), |all, (share, count)| all.with(&share.times(count)))
    }
}

/// Adds what the call behind a record cost, by the rules of its run.
pub fn add_cost(usage: &mut Usage, body: &Body, revision: u32) {
    match body {
        Body::Replied(replied) if replied.was_declined() => {}
        Body::Replied(replied) => {
            usage.add(&Usage {
                in_token: replied.in_token,
                out_token: replied.out_token,
                model_ms: replied.ms,
                model_calls: replied.calls(revision),
                details: replied.prompt.details,
                ..Usage::default()
            });
            if replied.model.is_some() {
                usage.model.clone_from(&replied.model);
            }
        }
        Body::Observed(observed) => {
            usage.add(&observed.usage);
            let tool_calls = u32::from(observed.idempotency_key.is_some());
            usage.add(&Usage { tool_ms: observed.ms, tool_calls, ..Usage::default() });
        }
        // It is the same call as the one that brings something in the end.
        Body::InputRequired(asked) => usage.add(&Usage { tool_ms: asked.ms, ..Usage::default() }),
        Body::Accepted(_)
        | Body::Routed(_)
        | Body::FannedOut(_)
        | Body::Joined(_)
        | Body::Intended(_)
        | Body::Parked(_)
        | Body::Settled(_)
        | Body::Told(_)
        | Body::Ended(_) => {}
    }
}
