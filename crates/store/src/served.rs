//! When the store was served. A row tells of the last sign of life, others of the times in which there was none.

use crate::keys::prefix;
use crate::log::{self, LeafKind};
use crate::tables::{Reader, Tables, read_failed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_domain::Timestamp;
use trellis_domain::outage::{Outage, Outages};
use trellis_domain::record::Record;
use trellis_orchestrator::ports::{JournalError, Service};

/// Commits carry a sign of life if the last one is older than this. An outage seems so much longer at most.
const OFTEN_MS: u64 = 1000;

/// A process serves, or did.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Sign {
    /// When it began to serve, or last began to try suspects.
    since: Timestamp,
    last: Timestamp,
}

impl Sign {
    /// All that is known of a process is that it lived then.
    fn at(time: Timestamp) -> Self {
        Self { since: time, last: time }
    }

    pub(crate) fn row(self) -> (Vec<u8>, Vec<u8>) {
        (vec![prefix::SIGN], serde_json::to_vec(&self).expect("a sign of life is always JSON"))
    }
}

/// The sign of life of a folder that had none: nobody is known to have served it since its newest record.
pub(crate) fn first_sign(newest_record: Timestamp) -> (Vec<u8>, Vec<u8>) {
    Sign::at(newest_record).row()
}

#[derive(Debug)]
pub(crate) struct Served {
    opened: Timestamp,
    /// The process before this one.
    before: Option<Sign>,
    /// This process, once it serves: who only looks does not end an outage.
    pub(crate) here: Option<Sign>,
    pub(crate) outages: Arc<Outages>,
    /// When the oldest open run began: outages before it matter to nobody.
    oldest: Option<Timestamp>,
    /// This process works on one run, and others wait: for them the outage goes on.
    pub(crate) others_wait: bool,
}

impl Served {
    /// Nothing is known of earlier times.
    pub(crate) fn new(opened: Timestamp, oldest: Option<Timestamp>) -> Self {
        Self { opened, before: None, here: None, outages: Arc::default(), oldest, others_wait: false }
    }

    pub(crate) fn read(tables: &Tables, opened: Timestamp, oldest: Option<Timestamp>) -> Result<Self, JournalError> {
        let reader = tables.read();
        // Whoever cannot read it knows of no outage, which is no reason to refuse the folder.
        let mut before = reader.index(&[prefix::SIGN])?.and_then(|row| serde_json::from_slice(&row).ok());
        if before.is_none() && oldest.is_some() {
            // Who accepted the question died before it could serve it.
            before = newest_record(&reader).unwrap_or_default().map(Sign::at);
        }
        let mut outages = Vec::new();
        for row in reader.index_prefix(&[prefix::OUTAGE]) {
            let (key, value) = row.into_inner().map_err(read_failed)?;
            let micros = |bytes: &[u8]| Some(i64::from_be_bytes(bytes.try_into().ok()?));
            let times = key.get(1..).and_then(micros).zip(micros(&value));
            outages.extend(
                times.map(|(from, to)| Outage { from: Timestamp::from_micros(from), to: Timestamp::from_micros(to) }),
            );
        }
        let outages = Arc::new(outages.into_iter().collect());
        Ok(Self { before, outages, ..Self::new(opened, oldest) })
    }

    pub(crate) fn service(&self) -> Service {
        let before_ms = self.before.map_or(0, |before| before.last.ms_since(before.since));
        Service { outages: Arc::clone(&self.outages), before_ms }
    }

    /// The row of a sign of life at this time, if this process serves and the last one is old enough.
    pub(crate) fn sign(&mut self, now: Timestamp) -> Option<(Vec<u8>, Vec<u8>)> {
        let here = self.here.as_mut().filter(|here| !self.others_wait && now.ms_since(here.last) >= OFTEN_MS)?;
        here.last = now;
        Some(here.row())
    }

    /// This process tries suspects from now on.
    pub(crate) fn begin_trial(&mut self, now: Timestamp) -> Option<(Vec<u8>, Vec<u8>)> {
        let here = self.here.as_mut()?;
        *here = Sign::at(now);
        Some(here.row())
    }

    /// This process begins to serve. Gives the outage that this ends, if anybody has waited for it.
    pub(crate) fn begin(&mut self, now: Timestamp) -> Option<Outage> {
        self.here = Some(Sign::at(now));
        let oldest = self.oldest;
        let matters = |outage: &Outage| outage.ms() > 0 && oldest.is_some_and(|oldest| outage.to > oldest);
        let ended = self.before.map(|before| Outage { from: before.last, to: self.opened }).filter(matters);
        self.outages = Arc::new(self.outages.iter().copied().filter(matters).chain(ended).collect());
        ended
    }
}

/// When the newest record was written.
fn newest_record(reader: &Reader<'_>) -> Result<Option<Timestamp>, JournalError> {
    for number in (0..log::size(reader)?).rev() {
        let leaf = log::leaf(reader, number)?;
        if leaf.kind == LeafKind::Record {
            let record = log::covered(reader, &leaf)?;
            return Ok(record.and_then(|record| Some(Record::header_of(&record).ok()?.time)));
        }
    }
    Ok(None)
}
