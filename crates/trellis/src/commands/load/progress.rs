//! How far a load is: a bar on a terminal, a line per file elsewhere.

use super::found::FoundFile;
use crate::show::{clean, note};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Read};
use trellis_domain::counted;
use trellis_orchestrator::documents::FactsProgress;
use trellis_orchestrator::knowledge::Loaded;
use trellis_orchestrator::tables::LoadedRows;

#[derive(Debug, Clone)]
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(super) fn begin(files: &[FoundFile]) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden() };
        }
        let bar = ProgressBar::new(files.iter().map(|file| file.bytes).sum());
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// A file that counts what is read of it.
    pub(super) fn reading<R: Read + Send>(&self, from: R) -> impl Read + Send + use<R> {
        Counted { from, bar: self.bar.clone() }
    }

    pub(super) fn at(&self, name: &str, loaded: Loaded) {
        self.bar.set_message(format!("{} {}", clean(name), counted(loaded.read, "triple")));
    }

    pub(super) fn at_rows(&self, name: &str, loaded: LoadedRows) {
        self.bar.set_message(format!("{} {}", clean(name), counted(loaded.rows, "row")));
    }

    pub(super) fn at_facts(&self, name: &str, FactsProgress { done, passages }: FactsProgress) {
        self.bar.set_message(format!("{} facts of {done} of {}", clean(name), counted(passages, "passage")));
    }

    /// A file that was read in one go.
    pub(super) fn read(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    pub(super) fn done(&self, file: &FoundFile, came: Option<String>, error: Option<&str>) {
        let name = clean(&file.name);
        let line = match error {
            None => format!("{name}: {}", came.unwrap_or_default()),
            Some(error) => format!("{name}: not loaded whole: {}", clean(error)),
        };
        self.bar.suspend(|| note(&line));
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

struct Counted<R> {
    from: R,
    bar: ProgressBar,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let size = self.from.read(out)?;
        self.bar.inc(size as u64);
        Ok(size)
    }
}
