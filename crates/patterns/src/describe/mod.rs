//! What patterns say of their records with: replies with their choices and cost, beginnings, ends.
//!
//! Each record that means something to a reader becomes one event under the IRI of its main node; a join becomes one
//! per finding. Nodes that only the specification or only we know travel inside the event of the node they belong
//! to, so that readers which know neither see a complete graph all the same.

pub(crate) mod asked;
pub(crate) mod asking;
pub(crate) mod beginning;
mod completion;
pub(crate) mod decision;
pub(crate) mod described_session;
pub(crate) mod end;
pub(crate) mod inside;
pub(crate) mod late;
mod notice;
pub(crate) mod park;
pub(crate) mod told;

pub use described_session::DescribedSession;
pub use end::Rest;
pub(crate) use notice::plain;
pub use notice::{Notice, Part, Shown, ShownLine, Spoken, Tone};

use trellis_domain::record::{Ended, Header, Record};
use trellis_provenance::Act;

/// Describes the records of one session in their order. The question, the routing and the end are the same for every
/// pattern and are described here; the rest is the pattern's.
pub trait Describer: Send + Sync + std::fmt::Debug {
    /// What the session goes on with that others have begun: told right after its routing.
    fn begin(&mut self, _session: &DescribedSession, _header: &Header) -> Vec<Act> {
        Vec::new()
    }

    /// What a record means to a reader: a reply, a result, a fan-out or a join. None if a later record tells of it.
    fn describe(&mut self, session: &DescribedSession, record: &Record) -> Vec<Act>;

    /// What the end of the session rests on, and what it has to tell because nothing else does.
    fn end(&mut self, session: &DescribedSession, ended: &Ended) -> Rest;
}
