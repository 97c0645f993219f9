//! Parquet, read in a process of its own.
//!
//! A file of a few kilobytes can unpack to gigabytes, and take its reader where it panics. So a process reads it that the
//! operating system holds to a limit of memory, and that is ended when nothing comes of it. It writes what the file says as
//! lines: first the columns, then each row as a JSON object ([`crate::typed_lines`]). It does not run ahead of whoever reads
//! them. How many such processes there are at a time is for its callers to say, who know for whom they are.

#[cfg(feature = "parquet")]
mod cells;
#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod worker;

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use trellis_confined::Program;

/// Bytes of memory that the process may take besides what it begins with.
pub(crate) const MEMORY: u64 = 768 << 20;
/// How long nothing may come of it.
const SILENT: Duration = Duration::from_mins(1);
/// Bytes of a file that comes from elsewhere: it has to be kept on disk while it is read.
const LARGEST_UPLOAD: u64 = 1 << 30;
/// Where the lines begin in what the process writes.
pub(crate) const BEGIN: u8 = 2;
/// What the process says of a file that it cannot read, before the reason.
pub(crate) const REFUSED: &str = "refused: ";
/// Bytes of its last words that are read.
const LAST_WORDS: u64 = 4096;
const PIECE: usize = 64 << 10;
/// Pieces that wait to be read.
const WAITING: usize = 4;

/// Does the work of a process that reads a Parquet file: it is the standard input, its lines go to standard output.
pub fn work() -> io::Result<()> {
    #[cfg(feature = "parquet")]
    let refused = match worker::work() {
        Ok(()) => return Ok(()),
        Err(reason) => reason,
    };
    #[cfg(not(feature = "parquet"))]
    let refused = "this program was built without it; build it with `--features parquet`";
    writeln!(io::stderr(), "{REFUSED}{}", refused.replace('\n', " "))?;
    Err(ErrorKind::InvalidData.into())
}

/// What a file says, line by line. Nothing is started before somebody reads.
pub struct Unpacked {
    program: Program,
    stage: Stage,
}

enum Stage {
    File(File),
    /// Has to be on disk before it can be read, in that folder.
    Stream(Box<dyn Read + Send>, PathBuf),
    Running(Running),
    Over,
}

struct Running {
    process: Child,
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// None once they were listened to.
    last_words: Option<JoinHandle<Vec<u8>>>,
    piece: io::Cursor<Vec<u8>>,
    has_begun: bool,
}

impl std::fmt::Debug for Unpacked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacked").field("program", &self.program).finish_non_exhaustive()
    }
}

impl Unpacked {
    /// `program` is how a process is started that calls [`work`].
    pub fn file(program: Program, file: File) -> Self {
        Self { program, stage: Stage::File(file) }
    }

    /// A file that comes from elsewhere, as a stream. It is kept in the folder while it is read, without a name: where
    /// systems keep temporary files is often memory.
    pub fn stream(program: Program, stream: Box<dyn Read + Send>, folder: PathBuf) -> Self {
        Self { program, stage: Stage::Stream(stream, folder) }
    }
}

impl Read for Unpacked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Over => return Ok(0),
                Stage::Stream(stream, folder) => self.stage = Stage::File(on_disk(stream, &folder)?),
                Stage::File(file) => self.stage = Stage::Running(Running::start(&self.program, file)?),
                Stage::Running(mut running) => {
                    let size = running.read(out)?;
                    if size > 0 {
                        self.stage = Stage::Running(running);
                    }
                    return Ok(size);
                }
            }
        }
    }
}

/// A file without a name, which goes with whoever reads it.
fn on_disk(stream: Box<dyn Read + Send>, folder: &Path) -> io::Result<File> {
    let cannot = |error: io::Error| {
        io::Error::new(error.kind(), format!("an upload cannot be kept in {}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(cannot)?;
    let mut file = tempfile::tempfile_in(folder).map_err(cannot)?;
    let size = io::copy(&mut stream.take(LARGEST_UPLOAD + 1), &mut file)?;
    if size > LARGEST_UPLOAD {
        let why = format!("it is larger than {} MiB; load it where the data folder is", LARGEST_UPLOAD >> 20);
        return Err(unreadable(&why));
    }
    file.rewind()?;
    Ok(file)
}

fn unreadable(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the Parquet file cannot be read: {why}"))
}

impl Running {
    fn start(program: &Program, file: File) -> io::Result<Self> {
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).envs(program.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(file).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C at a terminal is for the owner.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process = command.spawn()?;
        let (Some(lines), Some(errors)) = (process.stdout.take(), process.stderr.take()) else {
            return Err(ErrorKind::BrokenPipe.into());
        };
        let (send, pieces) = sync_channel(WAITING);
        std::thread::spawn(move || pass_on(lines, &send));
        let last_words = std::thread::spawn(move || {
            let mut words = Vec::new();
            drop(errors.take(LAST_WORDS).read_to_end(&mut words));
            words
        });
        Ok(Self { process, pieces, last_words: Some(last_words), piece: io::Cursor::default(), has_begun: false })
    }

    /// Nothing is left if all of the file was read. The process has ended then.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let size = self.piece.read(out)?;
            if size > 0 {
                return Ok(size);
            }
            let mut piece = match self.pieces.recv_timeout(SILENT) {
                Ok(piece) => piece?,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(unreadable(&format!("nothing came of it for {} s", SILENT.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => return self.end().map(|()| 0),
            };
            if !self.has_begun {
                let begin = piece.iter().position(|byte| *byte == BEGIN);
                self.has_begun = begin.is_some();
                piece.drain(..begin.map_or(piece.len(), |begin| begin + 1));
            }
            self.piece = io::Cursor::new(piece);
        }
    }

    /// Why the process has ended, if not because the file has.
    fn end(&mut self) -> io::Result<()> {
        let status = self.process.wait()?;
        if status.success() && self.has_begun {
            return Ok(());
        }
        let words = self.last_words.take().and_then(|words| words.join().ok()).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        if let Some(reason) = words.lines().find_map(|line| line.strip_prefix(REFUSED)) {
            return Err(unreadable(reason));
        }
        if words.contains("memory allocation of") {
            let why = format!("it unpacks to more than the {} MiB that reading may take", MEMORY >> 20);
            return Err(unreadable(&why));
        }
        Err(unreadable("it is damaged, or takes more than reading may take"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already is only waited for.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Until all has come, or nobody wants the rest.
fn pass_on(mut lines: impl Read, to: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = vec![0; PIECE];
        let read = match lines.read(&mut piece) {
            Ok(0) => return,
            Ok(size) => {
                piece.truncate(size);
                Ok(piece)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_broken = read.is_err();
        if to.send(read).is_err() || is_broken {
            return;
        }
    }
}
