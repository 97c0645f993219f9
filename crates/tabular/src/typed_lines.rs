//! Rows as JSON Lines below a line that names the columns with their types: what is made of files that know types.

use crate::encoding::Decoding;
use crate::json_lines::JsonLines;
use crate::{Fault, MOST_COLUMNS, Record};
use serde::{Deserialize, Serialize};
use trellis_domain::table::FieldKind;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TypedColumn {
    pub(crate) name: String,
    /// None if the values have to tell.
    #[serde(rename = "type")]
    pub(crate) kind: Option<FieldKind>,
}

pub(crate) struct TypedLines {
    lines: JsonLines,
    /// None before the first line was read.
    columns: Option<(Vec<String>, Vec<Option<FieldKind>>)>,
}

impl TypedLines {
    pub(crate) fn new(reader: Box<Decoding>) -> Self {
        Self { lines: JsonLines::new(reader), columns: None }
    }

    /// The columns, and what each is if that is known.
    pub(crate) fn columns(&mut self) -> Result<(&[String], &[Option<FieldKind>]), Fault> {
        if self.columns.is_none() {
            let wrong = |error: serde_json::Error| Fault::new(1, format!("its columns cannot be read: {error}"));
            let columns: Vec<TypedColumn> = serde_json::from_slice(&self.lines.first()?).map_err(wrong)?;
            if columns.len() > MOST_COLUMNS {
                return Err(Fault::new(1, format!("there are more than {MOST_COLUMNS} columns")));
            }
            self.columns = Some(columns.into_iter().map(|column| (column.name, column.kind)).unzip());
        }
        let (names, kinds) = self.columns.as_ref().expect("they were read above");
        Ok((names, kinds))
    }

    /// Lines are counted as rows.
    pub(crate) fn next(&mut self) -> Option<Result<Record, Fault>> {
        if let Err(fault) = self.columns() {
            return Some(Err(fault));
        }
        self.lines.next()
    }
}
