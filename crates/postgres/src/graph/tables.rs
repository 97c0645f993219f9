//! The tables that quads are in, and how they are written and asked.

use crate::database::Parameters;
use crate::error::{damaged, failed};
use deadpool_postgres::Transaction;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use trellis_domain::rdf::Quad;
use trellis_orchestrator::ports::JournalError;
use trellis_queries::TermId;
use trellis_queries::order::{EncodedQuad, Graphs, IdPattern, Order};
use trellis_queries::term_id::{WorkspaceId, canonical_bytes, canonical_iri};

/// The graph of runs as the indexes have it: no index by graph has its quads.
pub(crate) const MAIN_GRAPH: &str = "'\\xca632f4cc51bf1bc54e9db754e370a88'::bytea";

/// Two tables that are alike: of what runs say, and of what was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuadTables {
    pub(crate) quads: &'static str,
    pub(crate) terms: &'static str,
}

pub(crate) const VIEW: QuadTables = QuadTables { quads: "view_quads", terms: "view_terms" };
pub(crate) const KNOWLEDGE: QuadTables = QuadTables { quads: "knowledge_quads", terms: "knowledge_terms" };

/// The place of what the runs of a workspace say.
pub(crate) fn place_of(workspace: &str) -> i64 {
    i64::from_be_bytes(WorkspaceId::of(workspace).0)
}

/// An id as the tables have it.
pub(crate) fn bytes(id: TermId) -> Vec<u8> {
    id.to_bytes().to_vec()
}

pub(crate) fn id(row: &Row, column: usize) -> Result<TermId, JournalError> {
    let bytes: &[u8] = row.get(column);
    Ok(TermId::from_bytes(bytes.try_into().map_err(|_| damaged("the id of a term has not 16 bytes"))?))
}

/// Quads as ids, with the terms behind them. In order, so that nobody waits for rows in another one.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) quads: BTreeSet<EncodedQuad>,
    terms: BTreeMap<TermId, Vec<u8>>,
}

impl Encoded {
    pub(crate) fn of<'a>(quads: impl IntoIterator<Item = &'a Quad>) -> Self {
        let mut encoded = Self::default();
        for quad in quads {
            let [s, p, o] = [&quad.s, &quad.p, &quad.o].map(|term| encoded.note(canonical_bytes(term)));
            let g = match quad.g.as_deref() {
                None | Some("") => TermId::DEFAULT_GRAPH,
                Some(graph) => encoded.note(canonical_iri(graph)),
            };
            encoded.quads.insert(EncodedQuad { s, p, o, g });
        }
        encoded
    }

    fn note(&mut self, canonical: Vec<u8>) -> TermId {
        let id = TermId::of(&canonical);
        self.terms.entry(id).or_insert(canonical);
        id
    }

    /// Writes what is not there. How many quads were new.
    pub(crate) async fn write(
        &self,
        transaction: &Transaction<'_>,
        tables: QuadTables,
        place: i64,
    ) -> Result<u64, JournalError> {
        let ids: Vec<_> = self.terms.keys().map(|id| bytes(*id)).collect();
        let terms: Vec<_> = self.terms.values().collect();
        let put = format!(
            "INSERT INTO {} (place, id, term) SELECT $1::bigint, * FROM unnest($2::bytea[], $3::bytea[]) ON CONFLICT DO NOTHING",
            tables.terms
        );
        execute(transaction, &put, &[&place, &ids, &terms]).await?;
        let put = format!(
            "INSERT INTO {} (place, s, p, o, g) \
             SELECT $1::bigint, * FROM unnest($2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[]) ON CONFLICT DO NOTHING",
            tables.quads
        );
        let [s, p, o, g] = columns(&self.quads);
        execute(transaction, &put, &[&place, &s, &p, &o, &g]).await
    }
}

/// Quads as one list for each of their parts.
pub(crate) fn columns<'a>(quads: impl IntoIterator<Item = &'a EncodedQuad> + Copy) -> [Vec<Vec<u8>>; 4] {
    let column = |part: fn(&EncodedQuad) -> TermId| quads.into_iter().map(|quad| bytes(part(quad))).collect();
    [column(|quad| quad.s), column(|quad| quad.p), column(|quad| quad.o), column(|quad| quad.g)]
}

pub(crate) async fn execute(
    transaction: &Transaction<'_>,
    statement: &str,
    parameters: Parameters<'_>,
) -> Result<u64, JournalError> {
    let prepared = transaction.prepare_cached(statement).await.map_err(failed)?;
    transaction.execute(&prepared, parameters).await.map_err(failed)
}

pub(crate) async fn rows(
    transaction: &Transaction<'_>,
    statement: &str,
    parameters: Parameters<'_>,
) -> Result<Vec<Row>, JournalError> {
    let prepared = transaction.prepare_cached(statement).await.map_err(failed)?;
    transaction.query(&prepared, parameters).await.map_err(failed)
}

/// The names of a quad's parts, in an order.
fn names(order: Order) -> [&'static str; 4] {
    match order {
        Order::Spog => ["s", "p", "o", "g"],
        Order::Posg => ["p", "o", "s", "g"],
        Order::Ospg => ["o", "s", "p", "g"],
        Order::Gpos => ["g", "p", "o", "s"],
    }
}

/// A question for the next quads that match, and what it is asked with.
pub(crate) struct PageOfQuads {
    pub(crate) statement: String,
    values: Vec<Vec<u8>>,
    places: Vec<i64>,
    limit: i64,
    /// Whether all matching quads are on one page: everything is given.
    pub(crate) is_only: bool,
}

impl PageOfQuads {
    /// The first quads behind the last one, in the order of the pattern's access path: of all places, each once.
    pub(crate) fn of(
        tables: QuadTables,
        places: &[i64],
        pattern: &IdPattern,
        last: Option<&EncodedQuad>,
        limit: usize,
    ) -> Self {
        let path = pattern.access_path();
        let names = names(path.order);
        let (given, open) = names.split_at(path.prefix.len());
        let mut values: Vec<Vec<u8>> = path.prefix.iter().map(|id| bytes(*id)).collect();
        // The places are the first parameter, the limit the second one.
        let prefix = given.iter().zip(3..).map(|(name, at)| format!("{name} = ${at}"));
        let mut conditions: Vec<String> = std::iter::once("place = l.place".to_owned()).chain(prefix).collect();
        let mut more = |value: TermId| {
            values.push(bytes(value));
            format!("${}", values.len() + 2)
        };
        let parts = [("s", pattern.s), ("p", pattern.p), ("o", pattern.o)];
        for (name, wanted) in parts.into_iter().filter(|(name, _)| open.contains(name)) {
            conditions.extend(wanted.map(|id| format!("{name} = {}", more(id))));
        }
        match pattern.g {
            Graphs::One(graph) if open.contains(&"g") => conditions.push(format!("g = {}", more(graph))),
            Graphs::Named => conditions.push(format!("g <> {}", more(TermId::DEFAULT_GRAPH))),
            Graphs::One(_) | Graphs::All => {}
        }
        if path.order == Order::Gpos {
            conditions.push(format!("g <> {MAIN_GRAPH}"));
        }
        if let Some(last) = last.filter(|_| !open.is_empty()) {
            let behind = &path.order.arrange(last)[path.prefix.len()..];
            let behind: Vec<_> = behind.iter().map(|id| more(*id)).collect();
            conditions.push(format!("({}) > ({})", open.join(", "), behind.join(", ")));
        }
        let conditions = conditions.join(" AND ");
        let all = names.join(", ");
        let of_place = format!("SELECT s, p, o, g FROM {} WHERE {conditions} ORDER BY {all} LIMIT $2", tables.quads);
        let statement = format!(
            "SELECT DISTINCT {all} FROM unnest($1::bigint[]) AS l (place), LATERAL ({of_place}) AS q \
             ORDER BY {all} LIMIT $2"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Self { statement, values, places: places.to_vec(), limit, is_only: open.is_empty() }
    }

    pub(crate) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&self.places, &self.limit];
        parameters.extend(self.values.iter().map(|value| value as &(dyn ToSql + Sync)));
        parameters
    }
}

/// A quad out of the columns of such a page.
pub(crate) fn quad(row: &Row, order: Order) -> Result<EncodedQuad, JournalError> {
    Ok(order.restore([id(row, 0)?, id(row, 1)?, id(row, 2)?, id(row, 3)?]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn the_indexes_leave_out_the_graph_of_runs() {
        let main = trellis_queries::order::MAIN_GRAPH.to_bytes();
        let hex = main.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        assert_eq!(MAIN_GRAPH, format!("'\\x{hex}'::bytea"));
        assert!(include_str!("../migrations/2.sql").contains(MAIN_GRAPH));
    }
}
