//! What commands need, asked of a server.

use super::server::{Server, ServerRefusal, ServerTrouble};
use super::stream::Stream;
use crate::failure::Failure;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Name, Record};
use trellis_domain::{RequestId, RunId, Selection};
use trellis_orchestrator::evidence::Evidence;
use trellis_orchestrator::ports::{LogEntry, RunFilter, Verdict};
use trellis_orchestrator::service::RecordPage;
use trellis_orchestrator::status::Status;
use trellis_orchestrator::summary::{Change, ListedRuns};
use trellis_orchestrator::{Answering, Cancelling};

/// Most runs and records that a server gives at once.
const RUNS: usize = 500;
const RECORDS: &str = "1000";

#[derive(Debug, Deserialize)]
struct LogHead {
    checkpoint: String,
    key: String,
}

#[derive(Debug, Deserialize)]
struct LogPage {
    entries: Vec<LogEntry>,
}

#[derive(Debug, Deserialize)]
struct Begun {
    run_id: RunId,
}

#[derive(Debug, Deserialize)]
struct Items {
    version: u64,
    items: Vec<StoredItem>,
}

#[derive(Debug, Deserialize)]
struct Changed {
    version: u64,
}

#[derive(Debug, Deserialize)]
struct History {
    versions: Vec<Change>,
}

impl Server {
    /// Runs, newest first, as many as are wanted.
    pub(super) async fn runs(
        &self,
        filter: &RunFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListedRuns, Failure> {
        let (mut all, mut next) = (ListedRuns::default(), cursor.map(str::to_owned));
        let since = filter.since.map(|since| since.to_string());
        loop {
            let count = (limit - all.runs.len()).min(RUNS).to_string();
            let mut query = vec![("limit", count.as_str())];
            query.extend(filter.state.map(|state| ("state", state.as_str())));
            query.extend(filter.pattern.as_deref().map(|pattern| ("pattern", pattern)));
            query.extend(filter.task_type.as_deref().map(|task_type| ("task_type", task_type)));
            query.extend(since.as_deref().map(|since| ("since", since)));
            query.extend(filter.conversation.as_ref().map(|id| ("conversation", id.as_str())));
            query.extend(filter.search.as_deref().map(|text| ("search", text)));
            query.extend(next.as_deref().map(|cursor| ("cursor", cursor)));
            let page: ListedRuns = self.ask(self.request(Method::GET, &["runs"], &query)).await?;
            next = all.add(page);
            if next.is_none() || all.runs.len() >= limit {
                return Ok(all);
            }
        }
    }

    pub(super) async fn with_prefix(&self, start: &str, limit: usize) -> Result<Vec<RunId>, Failure> {
        let query = [("prefix", start), ("limit", &limit.to_string())];
        let page: ListedRuns = self.ask(self.request(Method::GET, &["runs"], &query)).await?;
        Ok(page.runs.into_iter().map(|run| run.run_id).collect())
    }

    pub(super) async fn records(&self, run: &RunId) -> Result<Vec<Arc<Record>>, Failure> {
        let (mut records, mut after) = (Vec::new(), 0);
        loop {
            let query = [("after", &*after.to_string()), ("limit", RECORDS)];
            let path = ["runs", run.as_str(), "records"];
            let page: RecordPage = self.ask(self.request(Method::GET, &path, &query)).await?;
            records.extend(page.records);
            match page.next {
                Some(next) => after = next,
                None => return Ok(records),
            }
        }
    }

    pub(super) async fn evidence(&self, run: &RunId) -> Result<Evidence, Failure> {
        self.ask(self.request(Method::GET, &["runs", run.as_str(), "evidence"], &[])).await
    }

    pub(super) async fn checkpoint(&self) -> Result<String, Failure> {
        let head: LogHead = self.ask(self.request(Method::GET, &["log"], &[])).await?;
        Ok(head.checkpoint)
    }

    pub(super) async fn status(&self) -> Result<Status, Failure> {
        self.ask(self.request(Method::GET, &["status"], &[])).await
    }

    pub(super) async fn log_key(&self) -> Result<String, Failure> {
        let head: LogHead = self.ask(self.request(Method::GET, &["log"], &[])).await?;
        Ok(head.key)
    }

    pub(super) async fn against(&self, checkpoint: &str) -> Result<Verdict, Failure> {
        let body = json!({ "checkpoint": checkpoint }).to_string();
        self.ask(self.request(Method::POST, &["log", "verify"], &[]).body(body)).await
    }

    pub(super) async fn entries(&self, from: u64, limit: usize) -> Result<Vec<LogEntry>, Failure> {
        let query = [("from", &*from.to_string()), ("limit", &*limit.to_string())];
        let page: LogPage = self.ask(self.request(Method::GET, &["log", "entries"], &query)).await?;
        Ok(page.entries)
    }

    /// Hands a question in. The id makes it the same question if it has to be sent again.
    pub(crate) async fn accept(
        &self,
        request: &AgentRequest,
        limits: &SomeLimits,
        selection: &Selection,
        id: &RequestId,
    ) -> Result<RunId, Failure> {
        let mut body = json!({
            "question": request.question, "pattern": request.pattern, "task_type": request.task_type,
            "group": request.group, "collection": request.collection, "conversation_id": request.conversation_id,
            "session_id": request.session_id, "streaming": request.streaming, "limits": limits,
        });
        // Servers of earlier versions know neither.
        if let Some(tools) = &selection.tools {
            body["tools"] = json!(tools);
        }
        if let Some(model) = &selection.model {
            body["model"] = json!(model);
        }
        let mut message = self.request(Method::POST, &["runs"], &[]).body(body.to_string());
        if request.session_id.is_empty() {
            message = message.header("idempotency-key", id.as_str());
        }
        let begun: Begun = self.ask(message).await?;
        Ok(begun.run_id)
    }

    pub(crate) fn follow(&self, run: &RunId, quiet: bool) -> Stream<'_> {
        Stream::new(self, run.clone(), quiet)
    }

    pub(super) async fn cancel(&self, run: &RunId) -> Result<Cancelling, Failure> {
        let request = self.request(Method::POST, &["runs", run.as_str(), "cancel"], &[]);
        match self.json::<Value>(request).await {
            Ok(_) => Ok(Cancelling::Cancelled),
            Err(ServerTrouble::Refused(ServerRefusal { status: StatusCode::CONFLICT, state: Some(state), .. })) => {
                Ok(Cancelling::AlreadyEnded(state))
            }
            Err(ServerTrouble::Refused(ServerRefusal { status: StatusCode::NOT_FOUND, .. })) => Ok(Cancelling::Unknown),
            Err(trouble) => Err(self.failure(trouble)),
        }
    }

    pub(super) async fn decide(&self, run: &RunId, answer: &Answering) -> Result<(), Failure> {
        let (session, park) = answer.question.clone().map(|(session, number)| (session, Name::park(number))).unzip();
        let body = json!({
            "choice": answer.choice, "reason": answer.reason, "arguments": answer.arguments, "result": answer.result,
            "content": answer.content, "session_id": session, "park": park,
        });
        let request = self.request(Method::POST, &["runs", run.as_str(), "decide"], &[]).body(body.to_string());
        self.json::<Value>(request).await.map(|_| ()).map_err(|trouble| self.failure(trouble))
    }

    pub(super) async fn tell(&self, run: &RunId, message: &str) -> Result<usize, Failure> {
        let request = self.request(Method::POST, &["runs", run.as_str(), "tell"], &[]);
        let told: Value = self.ask(request.body(json!({ "message": message }).to_string())).await?;
        Ok(told["agents"].as_u64().and_then(|agents| usize::try_from(agents).ok()).unwrap_or(1))
    }

    pub(super) async fn items(&self) -> Result<(u64, Vec<StoredItem>), Failure> {
        let all: Items = self.ask(self.request(Method::GET, &["configuration"], &[])).await?;
        Ok((all.version, all.items))
    }

    pub(super) async fn items_at(&self, version: u64) -> Result<Vec<StoredItem>, Failure> {
        let query = [("at", &*version.to_string())];
        let all: Items = self.ask(self.request(Method::GET, &["configuration"], &query)).await?;
        Ok(all.items)
    }

    pub(super) async fn put(&self, items: Vec<StoredItem>) -> Result<u64, Failure> {
        let request = self.request(Method::POST, &["configuration"], &[]);
        let changed: Changed = self.ask(request.body(json!({ "items": items }).to_string())).await?;
        Ok(changed.version)
    }

    /// The version that the deletion made; None if there was no such item.
    pub(super) async fn delete(&self, kind: &str, key: &str) -> Result<Option<u64>, Failure> {
        let request = self.request(Method::DELETE, &["configuration", kind, key], &[]);
        self.found::<Changed>(request).await.map(|changed| changed.map(|changed| changed.version))
    }

    /// All changes of an item, oldest first.
    pub(super) async fn history(&self, kind: &str, key: &str) -> Result<Vec<Change>, Failure> {
        let request = self.request(Method::GET, &["configuration", kind, key, "history"], &[]);
        self.found::<History>(request).await.map(|history| history.map_or_else(Vec::new, |history| history.versions))
    }

    /// None if there is no such item.
    async fn found<T: serde::de::DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<Option<T>, Failure> {
        match self.json(request).await {
            Ok(found) => Ok(Some(found)),
            Err(ServerTrouble::Refused(ServerRefusal { kind, .. })) if kind == "no-item" => Ok(None),
            Err(trouble) => Err(self.failure(trouble)),
        }
    }

    /// The workspace that was named, or the caller's own.
    pub(super) async fn workspace(&self) -> Result<String, Failure> {
        if let Some(workspace) = &self.workspace {
            return Ok(workspace.as_str().to_owned());
        }
        let request = self.request(Method::POST, &["iam"], &[]).body(json!({"operation": "whoami"}).to_string());
        let reply: Value = self.ask(request).await?;
        let named = reply["user"]["default_workspace"].as_str();
        named.map(str::to_owned).ok_or_else(|| Failure::unexpected(format!("{} does not say who we are", self.url())))
    }
}
