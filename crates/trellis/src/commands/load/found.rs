//! What there is to load: files as named, files of folders, addresses.

use super::Material;
use crate::failure::{Exit, Failure};
use reqwest::Url;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::time::timeout;

/// How long an address may say nothing.
const SILENT: Duration = Duration::from_mins(1);
/// Folders within folders.
const DEEPEST: usize = 32;

/// A file that is understood.
#[derive(Debug)]
pub(super) struct FoundFile {
    /// What it is called: a file's path, an address.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) material: Material,
    /// What its load is remembered by: where it lies.
    pub(super) source: String,
    /// What relative names in it are relative to.
    pub(super) base: String,
    /// What came from an address, until it is loaded.
    _fetched: Option<NamedTempFile>,
}

/// Everything that is to be loaded, in order. Nothing is loaded if something is not there or not understood.
pub(super) async fn all(
    sources: &[String],
    format: Option<Material>,
    base: Option<&str>,
) -> Result<Vec<FoundFile>, Failure> {
    let mut files = Vec::new();
    for source in sources {
        if source.starts_with("http://") || source.starts_with("https://") {
            files.push(fetch(source, format, base).await?);
        } else {
            local(Path::new(source), format, base, &mut files)?;
        }
    }
    Ok(files)
}

fn local(path: &Path, format: Option<Material>, base: Option<&str>, files: &mut Vec<FoundFile>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", path.display()));
    let is_folder = std::fs::metadata(path).map_err(cannot)?.is_dir();
    if !is_folder {
        let not_understood = || {
            let (path, list) = (path.display(), Material::list());
            Failure::usage(format!(
                "{path}: what kind of file this is is not known; say it with --format. Understood: {list}"
            ))
        };
        let material = format.or_else(|| Material::of_file(path)).ok_or_else(not_understood)?;
        files.push(file(path, material, base)?);
        return Ok(());
    }
    let before = files.len();
    within(path, base, DEEPEST, files)?;
    if files.len() == before {
        let (path, list) = (path.display(), Material::list());
        return Err(Failure::usage(format!("{path}: nothing in this folder is understood. Understood: {list}")));
    }
    Ok(())
}

/// The files of a folder that are understood, by name. Others are passed over: a folder has all sorts of things.
fn within(folder: &Path, base: Option<&str>, deepest: usize, files: &mut Vec<FoundFile>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(cannot)?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if deepest > 0 {
                within(&path, base, deepest - 1, files)?;
            }
        } else if let Some(material) = Material::of_file(&path) {
            files.push(file(&path, material, base)?);
        }
    }
    Ok(())
}

fn file(path: &Path, material: Material, base: Option<&str>) -> Result<FoundFile, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", path.display()));
    let bytes = std::fs::metadata(path).map_err(cannot)?.len();
    let whole = std::path::absolute(path).map_err(cannot)?;
    let nameless = |()| Failure::usage(format!("{} cannot be written as an address", path.display()));
    let source = String::from(Url::from_file_path(&whole).map_err(nameless)?);
    let base = base.map_or_else(|| source.clone(), str::to_owned);
    Ok(FoundFile { name: path.display().to_string(), path: whole, bytes, material, source, base, _fetched: None })
}

/// Fetches an address into a file that goes with the command.
async fn fetch(address: &str, format: Option<Material>, base: Option<&str>) -> Result<FoundFile, Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::new(Exit::Unreachable, format!("{address}: {why}"));
    let url = Url::parse(address).map_err(|error| Failure::usage(format!("{address}: {error}")))?;
    let client =
        trellis_models::client(&url, reqwest::header::HeaderMap::new(), SILENT).map_err(|error| failed(&error))?;
    let silent = |_| failed(&format!("nothing came for {} s", SILENT.as_secs()));
    let sent = timeout(SILENT, client.get(url.clone()).send()).await.map_err(silent)?;
    let mut response = sent.and_then(reqwest::Response::error_for_status).map_err(|error| failed(&error))?;
    let said = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let by_type = || said.and_then(Material::of_type);
    let not_understood = || {
        let list = Material::list();
        Failure::usage(format!(
            "{address}: what kind of file this is is not known; say it with --format. Understood: {list}"
        ))
    };
    let by_name = || Material::of_file(Path::new(url.path()));
    let material = format.or_else(by_name).or_else(by_type).ok_or_else(not_understood)?;
    let mut file = NamedTempFile::new()?;
    while let Some(piece) = timeout(SILENT, response.chunk()).await.map_err(silent)?.map_err(|error| failed(&error))? {
        file.write_all(&piece)?;
    }
    file.rewind()?;
    let (path, bytes) = (file.path().to_owned(), file.as_file().metadata()?.len());
    let base = base.unwrap_or(address).to_owned();
    let (name, source) = (address.to_owned(), address.to_owned());
    Ok(FoundFile { name, path, bytes, material, source, base, _fetched: Some(file) })
}
