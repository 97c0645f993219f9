//! Commands that only read, on a folder that cannot be written: they say the same as elsewhere, and nothing in it changes.
//!
//! Root may write what is forbidden, and not everybody may mount a disk. So a library that is loaded before the program plays
//! the disk (`tests/shim`).

use crate::killed::{alone, kill_after};
use crate::served::Served;
use crate::{PARTNER, TRACE, fails, ok, run, stderr, stdout, trellis};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// How a disk refuses to be written.
#[derive(Clone, Copy)]
struct Disk {
    error: i32,
    says: &'static str,
    /// By how many bytes files may still grow, if that is what is wrong.
    room: Option<usize>,
}

const READ_ONLY: Disk = Disk { error: 30, says: "Read-only file system (os error 30)", room: None };
const FORBIDDEN: Disk = Disk { error: 13, says: "Permission denied (os error 13)", room: None };
const FULL: Disk = Disk { error: 28, says: "No space left on device (os error 28)", room: Some(0) };
const OVER_QUOTA: Disk = Disk { error: 122, says: "Disk quota exceeded (os error 122)", room: Some(0) };

/// What a command writes to see whether it can.
const TRIAL: usize = 256 << 10;

/// Compiled once; Rust needs a C compiler for linking, so there is one.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shim/unwritable.c");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unwritable-{}", std::process::id()));
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
        assert!(cc.arg(&built).arg(source).arg("-ldl").status().unwrap().success());
        // Whole or not there, whoever else tests.
        let library = built.with_file_name("unwritable.so");
        fs::rename(built, &library).unwrap();
        library
    })
}

/// A data folder, and one for what is temporary.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        fs::create_dir(place.temporary()).unwrap();
        place
    }

    /// The same data in the same place, as often as it is asked for.
    fn fill(&self, data: &Path) {
        fs::remove_dir_all(self.data()).unwrap_or_default();
        assert!(Command::new("cp").arg("-a").arg(data).arg(self.data()).status().unwrap().success());
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn temporary(&self) -> PathBuf {
        self.0.path().join("temporary")
    }

    /// A command for which these folders lie on such a disk.
    fn command(&self, disk: Disk, folders: &[PathBuf], arguments: &[&str]) -> Command {
        let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let mut command = trellis(&self.data(), arguments);
        command.env("LD_PRELOAD", shim()).env("SHIM_FOLDERS", folders.join(":")).env("TMPDIR", self.temporary());
        command.env("SHIM_ERRNO", disk.error.to_string()).stdin(Stdio::null());
        if let Some(room) = disk.room {
            command.env("SHIM_ROOM", room.to_string());
        }
        command
    }

    fn on(&self, disk: Disk, arguments: &[&str]) -> Output {
        self.command(disk, &[self.data()], arguments).output().unwrap()
    }

    /// What a reading command says on such a disk. Nothing changes by it, and it leaves nothing behind.
    fn look(&self, disk: Disk, arguments: &[&str]) -> Said {
        let before = content(&self.data());
        let said = Said::by(&self.on(disk, arguments));
        assert!(content(&self.data()) == before, "{arguments:?} changed the folder ({})", disk.says);
        assert_eq!(fs::read_dir(self.temporary()).unwrap().count(), 0, "{arguments:?} left something behind");
        said
    }
}

/// All files and folders below one: how they are protected, and what is in them.
fn content(folder: &Path) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let status = fs::symlink_metadata(&path).unwrap();
        let bytes = status.is_file().then(|| fs::read(&path).unwrap());
        if status.is_dir() {
            found.extend(content(&path));
        }
        found.insert(path, (status.permissions().mode(), bytes));
    }
    found
}

#[derive(Debug, PartialEq)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    fn by(output: &Output) -> Self {
        Self { code: output.status.code(), out: stdout(output), err: stderr(output) }
    }

    /// Only `doctor` tells whether a folder can be written.
    fn where_it_cannot_be_written(self, disk: Disk) -> Self {
        let told = format!("can be read, but not written: {}", disk.says);
        Self { out: self.out.replace("is ours and writable", &told), ..self }
    }
}

/// A folder with something in each of its parts: tables, the graph's tables, and a log with more than they have.
fn closed(data: &Path) {
    ok(data, &["ask", PARTNER, "--session", "team", "--quiet"]);
    ok(data, &["ask", TRACE, "--session", "plan", "--quiet"]);
    ok(data, &["ask", "Why?", "--session", "gone", "--pattern", "react", "--quiet"]);
    ok(data, &["sparql", "ASK {}"]);
    ok(data, &["erase", "gone", "--reason", "asked to"]);
    ok(data, &["ask", PARTNER, "--session", "late", "--pattern", "react", "--quiet"]);
    assert!(tables(data).iter().any(|table| table.metadata().unwrap().len() > 10_000));
}

/// The same, and then a process died.
fn left_by_a_dead_process(data: &Path) {
    closed(data);
    kill_after(alone(data, "half", "3"), 5);
}

fn tables(data: &Path) -> Vec<PathBuf> {
    let files = content(data).into_iter().filter(|(_, (_, bytes))| bytes.is_some()).map(|(path, _)| path);
    files.filter(|path| path.parent().unwrap().ends_with("tables")).collect()
}

fn log(data: &Path) -> PathBuf {
    let files = fs::read_dir(data.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "jnl")).max().unwrap()
}

const COUNT: &str = "SELECT (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } }";

/// Every command that only reads. Runs that are still open are left out where it is told how long they have taken.
fn reading(checkpoint: &str) -> Vec<Vec<&str>> {
    let commands = [
        "runs --state answered",
        "runs --search owners --output json",
        "run show team",
        "run show plan --full --output json",
        "run watch plan",
        "run watch team --output ndjson",
        "run watch half",
        "run answer late",
        "run answer half",
        "run export team",
        "run export half --format nquads",
        "run export plan --format jsonld",
        "verify team",
        "verify half",
        "verify plan --anchor CHECKPOINT --output json",
        "verify nobody",
        "log checkpoint",
        "log key",
        "log verify CHECKPOINT",
        "log export",
        "sparql COUNT",
        "sparql COUNT --output csv",
        "config list",
        "config list tool --workspace fresh",
        "config get prompt system",
        "config get agent-pattern react --at 1",
        "config history prompt system",
        "config export",
        "config validate",
        "doctor",
        "doctor --output json",
    ];
    let word = |word: &'static str| match word {
        "COUNT" => COUNT,
        "CHECKPOINT" => checkpoint,
        word => word,
    };
    commands.iter().map(|line| line.split(' ').map(word).collect()).collect()
}

fn all_commands_say_the_same(made: fn(&Path)) {
    let (original, place) = (TempDir::new().unwrap(), Place::new());
    made(original.path());
    let checkpoint = place.0.path().join("checkpoint");
    place.fill(original.path());
    fs::write(&checkpoint, ok(&place.data(), &["log", "checkpoint"])).unwrap();
    for arguments in reading(checkpoint.to_str().unwrap()) {
        for disk in [READ_ONLY, FULL] {
            place.fill(original.path());
            let expected = Said::by(&run(&place.data(), &arguments)).where_it_cannot_be_written(disk);
            place.fill(original.path());
            assert_eq!(place.look(disk, &arguments), expected, "{arguments:?}: {}", disk.says);
        }
    }
}

#[test]
fn reading_a_closed_folder_needs_no_writing() {
    all_commands_say_the_same(closed);
}

#[test]
fn reading_what_a_dead_process_left_needs_no_writing() {
    all_commands_say_the_same(left_by_a_dead_process);
}

#[test]
fn reading_works_whatever_forbids_writing_and_however_late_it_is_noticed() {
    for (made, dead) in [(closed as fn(&Path), false), (left_by_a_dead_process, true)] {
        let (original, place) = (TempDir::new().unwrap(), Place::new());
        made(original.path());
        let (doctor, count) = (vec!["doctor"], vec!["sparql", COUNT]);
        let expected = [&doctor, &count].map(|arguments| {
            place.fill(original.path());
            stdout(&run(&place.data(), arguments)).lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        });
        place.fill(original.path());
        // In the second, the disk is full once something was written, in the middle of the new log or just after it.
        let late = [1, 300, 9_000].map(|more| Disk { room: Some(TRIAL + more), ..OVER_QUOTA });
        for disk in [FORBIDDEN, OVER_QUOTA].into_iter().chain(late.into_iter().filter(|_| dead)) {
            for (arguments, expected) in [&doctor, &count].into_iter().zip(&expected) {
                let said = place.look(disk, arguments);
                assert_eq!(said.out.lines().skip(1).collect::<Vec<_>>(), *expected, "{}: {}", disk.says, said.err);
            }
        }
        // Only the engine's part is forbidden: that is noticed when the lock has been taken.
        let before = content(&place.data());
        let output = place.command(FORBIDDEN, &[place.data().join("journal")], &doctor).output().unwrap();
        assert_eq!(stdout(&output).lines().skip(1).collect::<Vec<_>>(), expected[0], "{}", stderr(&output));
        assert!(content(&place.data()) == before);
    }
}

#[test]
fn doctor_finds_the_same_damage_and_names_it_where_it_is() {
    let original = TempDir::new().unwrap();
    closed(original.path());
    let flip = |file: &Path| {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 2;
        bytes[middle] ^= 0x40;
        fs::write(file, bytes).unwrap();
    };
    let damages: [&dyn Fn(&Path); 7] = [
        &|data| flip(&log(data)),
        &|data| tables(data).iter().for_each(|table| flip(table)),
        &|data| fs::remove_file(data.join("journal/keyspaces/3/current")).unwrap(),
        &|data| fs::remove_dir_all(data.join("journal")).unwrap(),
        &|data| fs::remove_file(data.join("log-head")).unwrap(),
        &|data| fs::write(data.join("log-key"), "none").unwrap(),
        &|data| fs::write(data.join("format"), "99").unwrap(),
    ];
    for (number, damage) in damages.iter().enumerate() {
        let place = Place::new();
        place.fill(original.path());
        damage(&place.data());
        let kept = TempDir::new().unwrap();
        let copy = kept.path().join("data");
        assert!(Command::new("cp").arg("-a").arg(place.data()).arg(&copy).status().unwrap().success());
        let expected = Said::by(&run(&place.data(), &["doctor"])).where_it_cannot_be_written(READ_ONLY);
        assert_eq!(expected.code, Some(7), "damage {number}: {}{}", expected.out, expected.err);
        place.fill(&copy);
        assert_eq!(place.look(READ_ONLY, &["doctor"]), expected, "damage {number}");
    }
    // A log with rubbish at its end is kept when the folder is opened. Here it is where it always was.
    let place = Place::new();
    place.fill(original.path());
    let log = log(&place.data());
    fs::write(&log, [fs::read(&log).unwrap(), vec![0xFF; 100]].concat()).unwrap();
    let said = place.look(READ_ONLY, &["doctor"]);
    assert!(said.out.contains(&format!("kept as they were found: {}\n", log.display())), "{}{}", said.out, said.err);
}

#[test]
fn a_folder_of_an_earlier_program_is_read_without_being_brought_up_to_date() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/folders");
    let unpacked = TempDir::new().unwrap();
    let tar = Command::new("tar").arg("xzf").arg(kept.join("format-2.tar.gz")).arg("-C").arg(unpacked.path()).status();
    assert!(tar.unwrap().success());
    let place = Place::new();
    place.fill(&unpacked.path().join("format-2"));
    assert!(place.look(READ_ONLY, &["doctor"]).out.contains("8 runs, 102 records"));
    let expected = fs::read_to_string(kept.join("format-2-expected/s-team.show.txt")).unwrap();
    assert_eq!(place.look(FULL, &["run", "show", "s-team", "--color", "never"]).out, expected);
}

#[test]
fn who_would_write_is_told_the_folder_the_reason_and_what_to_do_and_nothing_is_lost() {
    let (original, place) = (TempDir::new().unwrap(), Place::new());
    left_by_a_dead_process(original.path());
    place.fill(original.path());
    let before = content(&place.data());
    let writing = [
        &["ask", "Why?"][..],
        &["serve", "--listen", "127.0.0.1:0"],
        &["resume"],
        &["run", "cancel", "half"],
        &["erase", "team", "--reason", "asked to"],
        &["graph", "rebuild"],
        &["config", "put", "tool", "mine", "{}"],
        &["config", "delete", "tool", "mine"],
    ];
    for (disk, mend) in [(READ_ONLY, "make its disk writable"), (FULL, "free some space there")] {
        for arguments in writing {
            let said = Said::by(&place.on(disk, arguments));
            let told = format!("cannot use the data folder {}: {}; {mend}", place.data().display(), disk.says);
            assert_eq!((said.code, said.err.contains(&told)), (Some(7), true), "{arguments:?}: {}", said.err);
            assert!(content(&place.data()) == before, "{arguments:?}: {}", disk.says);
        }
    }
    // A disk that is full only when the question is handed in.
    ok(&place.data(), &["resume"]);
    let known = ok(&place.data(), &["runs"]);
    let said = Said::by(&place.on(Disk { room: Some(200), ..FULL }, &["ask", "Why?", "--session", "refused"]));
    let told = format!("cannot write to the store: {}: {}; free some space", place.data().display(), FULL.says);
    assert_eq!((said.code, said.err.contains(&told)), (Some(7), true), "{}", said.err);
    assert_eq!(ok(&place.data(), &["runs"]), known);
    assert!(ok(&place.data(), &["doctor"]).contains("every hash is right"));
}

#[test]
fn a_folder_that_is_not_there_is_not_made_up() {
    let place = Place::new();
    fs::create_dir(place.data()).unwrap();
    assert_eq!(place.look(READ_ONLY, &["runs"]).code, Some(5));
    let said = place.look(READ_ONLY, &["config", "list"]);
    assert_eq!((said.code, said.err.contains("cannot use the data folder")), (Some(7), true), "{}", said.err);
}

#[test]
fn a_server_is_asked_also_where_its_folder_can_only_be_read() {
    let place = Place::new();
    closed(&place.data());
    let expected = ok(&place.data(), &["runs"]);
    let server = Served::start(&place.data());
    for disk in [READ_ONLY, FULL] {
        assert_eq!(stdout(&place.on(disk, &["runs"])), expected);
        let said = Said::by(&place.on(disk, &["doctor"]));
        assert_eq!((said.code, said.out.contains("in use by `trellis serve`")), (Some(0), true), "{}", said.err);
    }
    assert_eq!(ok(&place.data(), &["run", "answer", "team"]), stdout(&place.on(READ_ONLY, &["run", "answer", "team"])));
    // Whoever serves may well be able to write.
    let asked = place.on(READ_ONLY, &["ask", "Why?", "--session", "asked", "--quiet"]);
    assert!(asked.status.success(), "{}", stderr(&asked));
    assert_eq!(ok(&place.data(), &["run", "answer", "asked"]), stdout(&asked));
    server.kill();
}

#[test]
fn many_may_read_at_once_and_what_killed_ones_left_is_cleared_away() {
    let place = Place::new();
    closed(&place.data());
    let abandoned = place.temporary().join("trellis-reading-abandoned");
    let claimed = place.temporary().join("trellis-reading-claimed");
    for folder in [&abandoned, &claimed] {
        fs::create_dir_all(folder.join("journal")).unwrap();
    }
    let claim = fs::File::open(&claimed).unwrap();
    claim.lock().unwrap();
    let folders = [place.data()];
    let readers = [(); 4].map(|()| {
        let mut command = place.command(READ_ONLY, &folders, &["log", "export"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for reader in readers {
        let output = reader.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let left: Vec<_> = fs::read_dir(place.temporary()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [claimed]);
}

#[test]
fn where_there_is_no_room_for_logs_another_place_is_found_or_asked_for() {
    let place = Place::new();
    closed(&place.data());
    let memory = PathBuf::from("/dev/shm");
    let folders = [place.data(), place.temporary(), memory.clone()];
    let before = content(&place.data());
    for disk in [READ_ONLY, FULL] {
        if memory.is_dir() {
            let output = place.command(disk, &folders[..2], &["verify", "team"]).output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
        }
        let output = place.command(disk, &folders, &["verify", "team"]).output().unwrap();
        let (code, told) = (output.status.code(), stderr(&output));
        let where_to = format!("{} ({}", place.temporary().display(), disk.says);
        assert_eq!((code, told.contains("set TMPDIR to a folder with")), (Some(7), true), "{told}");
        assert!(told.contains(&where_to) && told.contains(&place.data().display().to_string()), "{told}");
    }
    assert!(content(&place.data()) == before);
    assert_eq!(fails(&place.data(), &["verify", "team"]).0, 0);
}
