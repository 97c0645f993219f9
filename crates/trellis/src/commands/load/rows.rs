//! A file of rows becomes rows of a table. A file whose table has no schema gets one, which is written into the
//! configuration, where it can be seen and changed.

use super::found::FoundFile;
use super::progress::Progress;
use crate::app::parquet_program;
use crate::desk::{Desk, RowsFile};
use crate::failure::{Exit, Failure};
use crate::show::note;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use trellis_domain::Collection;
use trellis_domain::config::{ConfigItem, StoredItem, validate};
use trellis_domain::table::{TableSchema, graphql_name};
use trellis_orchestrator::ports::Embedder;
use trellis_orchestrator::tables::LoadedRows;
use trellis_tabular::parquet::Unpacked;
use trellis_tabular::{Encoding, Format, Source, infer};

/// How the file is to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) format: Format,
    pub(super) schema: Option<&'a str>,
    pub(super) encoding: Option<&'a str>,
}

pub(super) async fn load(
    desk: &Desk,
    collection: &Collection,
    file: &FoundFile,
    reading: Reading<'_>,
    progress: &Progress,
    embedder: Option<Arc<dyn Embedder>>,
) -> Result<LoadedRows, Failure> {
    let encoding = reading.encoding.map_or(Some(Encoding::default()), Encoding::named);
    let encoding = encoding.ok_or_else(|| Failure::usage("--encoding is neither utf-8 nor windows-1252"))?;
    let schema = match stored(desk, reading.schema.map_or_else(|| table_name(&file.source), str::to_owned)).await? {
        Stored::Found(schema) => schema,
        Stored::Missing(name) if reading.schema.is_some() => {
            let message = format!(
                "there is no schema `{name}`; leave --schema out to have one made of the file, or add it with `trellis \
                 config put schema {name}`"
            );
            return Err(Failure::new(Exit::NotFound, message));
        }
        Stored::Missing(name) => made(desk, name, file, reading.format, encoding).await?,
    };
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", file.name));
    let opened = File::open(&file.path).map_err(cannot)?;
    // A server unpacks it itself.
    let (reader, is_unpacked) = match (reading.format, desk) {
        (Format::Parquet, Desk::Local(_)) => (unpacked(opened)?, true),
        (Format::Parquet | Format::Csv | Format::Tsv | Format::JsonLines, _) => {
            (Box::new(progress.reading(opened)) as Box<dyn Read + Send>, false)
        }
    };
    let source = Source { name: file.name.clone(), reader, format: reading.format, encoding };
    let rows = RowsFile { source, schema, stored_as: file.source.clone(), embedder };
    let (shown, name) = (progress.clone(), file.name.clone());
    let loaded = desk.load_rows(collection, rows, move |loaded| shown.at_rows(&name, loaded)).await?;
    if is_unpacked {
        progress.read(file.bytes);
    }
    Ok(loaded)
}

/// What a Parquet file says, from a process that reads it.
fn unpacked(file: File) -> Result<Box<dyn Read + Send>, Failure> {
    let program = parquet_program().map_err(Failure::unexpected)?;
    Ok(Box::new(Unpacked::file(program, file)))
}

/// The name of a file without its folder and end, as a table is called.
fn table_name(source: &str) -> String {
    let path = source.split(['?', '#']).next().unwrap_or_default();
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or("table");
    graphql_name(&stem.replace("%20", " "))
}

enum Stored {
    Found(Arc<TableSchema>),
    Missing(String),
}

async fn stored(desk: &Desk, name: String) -> Result<Stored, Failure> {
    let (_, items) = desk.items().await?;
    let Some(item) = items.into_iter().find(|item| item.kind == "schema" && item.key == name) else {
        return Ok(Stored::Missing(name));
    };
    match validate(&item.kind, &item.key, &item.value) {
        Ok(ConfigItem::Schema(schema)) => Ok(Stored::Found(schema)),
        Ok(_) => Err(Failure::usage(format!("schema/{name} is no schema"))),
        Err(problem) => Err(Failure::usage(problem.to_string())),
    }
}

/// A schema that fits all of the file.
async fn made(
    desk: &Desk,
    name: String,
    file: &FoundFile,
    format: Format,
    encoding: Encoding,
) -> Result<Arc<TableSchema>, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", file.name));
    let opened = File::open(&file.path).map_err(cannot)?;
    let reader = match format {
        Format::Parquet => unpacked(opened)?,
        Format::Csv | Format::Tsv | Format::JsonLines => Box::new(opened),
    };
    let source = Source { name: file.name.clone(), reader, format, encoding };
    let inferring = tokio::task::spawn_blocking(move || infer(&name, source));
    let schema = inferring.await.map_err(Failure::unexpected)?.map_err(|error| Failure::usage(error.to_string()))?;
    let (kind, key, value) = ("schema".to_owned(), schema.name.clone(), schema.to_json().to_string());
    desk.put(vec![StoredItem { kind, key, value }]).await?;
    let fields: Vec<_> = schema.fields.iter().map(|field| format!("{} {}", field.name, field.kind)).collect();
    let key = schema.fields.iter().find(|field| field.primary_key);
    let key = key.map_or_else(|| "rows are told apart by all they have".to_owned(), |key| format!("key {}", key.name));
    note(&format!("made schema/{} of {}: {} ({key})", schema.name, file.name, fields.join(", ")));
    Ok(Arc::new(schema))
}
