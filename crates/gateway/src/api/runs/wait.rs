//! Waiting for what comes of a run, for callers that want one request and its answer.

use super::{ApiError, number};
use crate::bounds;
use crate::inside::{Gateway, Inside};
use std::time::Duration;
use trellis_domain::RunId;
use trellis_domain::record::{Body, Name};
use trellis_domain::run::RunState;
use trellis_orchestrator::Item;
use trellis_orchestrator::ports::JournalError;
use trellis_orchestrator::summary::WholeRun;

/// The longest wait, in seconds. Few proxies hold a request for longer.
pub(super) const MOST: u64 = 600;

/// For how long somebody wants to wait; none if not at all.
pub(super) fn wanted(text: Option<&str>) -> Result<Option<Duration>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    match number("wait", text)? {
        0 => Ok(None),
        seconds if seconds <= MOST => Ok(Some(Duration::from_secs(seconds))),
        seconds => Err(ApiError::request(format!(
            "`wait` is at most {MOST} seconds, found {seconds}; follow the run's events for longer ones"
        ))),
    }
}

/// The run, if it ends in this time or comes to a question that somebody has to answer.
pub(crate) async fn outcome(
    gateway: &Gateway,
    inside: &Inside,
    run: &RunId,
    time: Duration,
) -> Result<Option<WholeRun>, ApiError> {
    match tokio::time::timeout(time, settled(gateway, inside, run)).await {
        Ok(settled) => Ok(settled?),
        Err(_) => Ok(None),
    }
}

/// None if the server closes before.
async fn settled(gateway: &Gateway, inside: &Inside, run: &RunId) -> Result<Option<WholeRun>, JournalError> {
    let (mut subscription, unread) = (inside.runs().follow(inside.workspace(), run, 0), &gateway.capacity().unread);
    while let Some(item) = gateway.follow(&mut subscription, || unread.take(bounds::FRAME)).await {
        let (Item::Record(record), _room) = item? else { continue };
        let has_ended = record.header.session == *run && record.header.name == Name::end();
        if !has_ended && !matches!(record.body, Body::Parked(_)) {
            continue;
        }
        let found = inside.runs().find(inside.workspace(), run).await?;
        // The question may have been answered since.
        if let Some(found) = found.filter(|found| has_ended || found.state == RunState::Waiting) {
            return Ok(Some(inside.runs().whole(&found).await?));
        }
    }
    Ok(None)
}
