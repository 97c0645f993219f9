//! What a person sees at a terminal: a real one (tmux), of which the screen is read.

use crate::{PARTNER, somewhere, until};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// One terminal with one program in it, until the test ends.
struct Terminal {
    home: TempDir,
    program: PathBuf,
    libraries: PathBuf,
}

impl Terminal {
    /// The program waits when the command is done, so that the screen can be read.
    fn start(columns: u32, rows: u32, arguments: &[&str], delay_ms: &str) -> Self {
        let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/root/usr");
        let installed = PathBuf::from("/usr/bin/tmux");
        let program = if installed.exists() { installed } else { unpacked.join("bin/tmux") };
        assert!(program.exists(), "there is no tmux: `cargo xtask servers` fetches it, or install it");
        let libraries = unpacked.join(format!("lib/{}-linux-gnu", std::env::consts::ARCH));
        let terminal = Self { home: TempDir::new().unwrap(), program, libraries };
        let data = terminal.data();
        let started = somewhere(terminal.home.path(), arguments);
        let quoted = |text: &std::ffi::OsStr| format!("'{}'", text.to_str().unwrap());
        let arguments: Vec<_> = started.get_args().map(quoted).collect();
        let line = format!(
            "trap : INT; {} {} --data '{}'; echo left with $?; exec sleep 600",
            quoted(started.get_program()),
            arguments.join(" "),
            data.display()
        );
        let mut command = terminal.tmux(&["-f", "/dev/null", "new-session", "-d"]);
        for (name, value) in started.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("TRELLIS_REHEARSAL_DELAY_MS", delay_ms).env_remove("NO_COLOR").env_remove("TMUX");
        command.args(["-x", &columns.to_string(), "-y", &rows.to_string(), "--", "sh", "-c", &line]);
        let told = command.output().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        terminal
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn tmux(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-u").arg("-S").arg(self.home.path().join("socket")).args(arguments);
        command.env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color").env("LD_LIBRARY_PATH", &self.libraries);
        command
    }

    fn does(&self, arguments: &[&str]) -> String {
        let output = self.tmux(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Everything that is on the screen, and what has left it.
    fn shown(&self) -> String {
        self.does(&["capture-pane", "-p", "-S", "-1000"])
    }

    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        until(what, || {
            last = self.shown();
            is_so(&last)
        });
        last
    }

    fn keys(&self, keys: &[&str]) {
        self.does(&[&["send-keys"], keys].concat());
    }

    fn types(&self, line: &str) {
        self.does(&["send-keys", "-l", line]);
        self.keys(&["Enter"]);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.tmux(&["kill-server"]).output());
    }
}

fn count(screen: &str, text: &str) -> usize {
    screen.matches(text).count()
}

#[test]
fn agents_have_a_line_each_that_is_drawn_in_place_and_gone_at_the_end() {
    let terminal = Terminal::start(100, 30, &["ask", PARTNER], "60");
    let at_work =
        |screen: &str| (0..4).all(|number| screen.contains(&format!("#{number} "))) && screen.contains(" tok");
    let screen = terminal.until("four agents are shown", |screen| at_work(screen) && screen.contains("at work ·"));
    assert_eq!(count(&screen, "Ctrl-C stops"), 1, "{screen}");
    // Narrower, then wider: lines that were drawn before are taken away, however the terminal has broken them.
    for (columns, rows) in [("60", "20"), ("46", "12"), ("110", "30")] {
        terminal.does(&["resize-window", "-x", columns, "-y", rows]);
        let last = |screen: &str| screen.lines().rev().find(|line| !line.is_empty()).unwrap_or_default().to_owned();
        for _ in 0..2 {
            let before = last(&terminal.shown());
            let screen = terminal
                .until("it is drawn anew", |screen| last(screen) != before && last(screen).contains("Ctrl-C stops"));
            assert_eq!(count(&screen, "Ctrl-C stops"), 1, "at {columns} columns: {screen}");
        }
    }
    let screen = terminal.until("it ends", |screen| screen.contains("left with 0"));
    assert_eq!(count(&screen, "Ctrl-C stops"), 0, "{screen}");
    assert_eq!(count(&screen, "✓ ended"), 4, "each agent has its line: {screen}");
    assert!(!screen.contains("→ tool     financial-data("), "what the live lines said is not repeated: {screen}");
    assert!(screen.contains("\nPartner risk profile: Company X\n──────"), "the answer is read, not printed: {screen}");
    assert!(!screen.contains("\n## ") && !screen.contains("**"), "{screen}");
    assert!(screen.contains("see how: trellis run show"), "{screen}");
}

#[test]
fn an_interrupt_leaves_nothing_of_the_live_lines() {
    let terminal = Terminal::start(90, 24, &["ask", PARTNER, "--session", "mine"], "60");
    terminal.until("agents are at work", |screen| screen.contains("#3 ") && screen.contains("at work ·"));
    terminal.keys(&["C-c"]);
    let screen = terminal.until("it has left", |screen| screen.contains("left with 130"));
    assert!(screen.contains("run mine is interrupted; what it has done so far is kept"), "{screen}");
    assert!(screen.contains("go on: trellis resume mine     end it: trellis run cancel mine"), "{screen}");
    assert_eq!((count(&screen, "Ctrl-C stops"), count(&screen, " tok")), (0, 0), "{screen}");
}

#[test]
fn plain_lines_are_plain_on_a_terminal_too() {
    let terminal = Terminal::start(100, 40, &["ask", PARTNER, "--plain"], "0");
    let screen = terminal.until("it ends", |screen| screen.contains("left with 0"));
    assert!(screen.contains("→ tool     financial-data("), "{screen}");
    assert!(screen.contains("\n## Partner risk profile: Company X"), "{screen}");
}

#[test]
fn a_bare_command_asks_for_questions_of_one_conversation() {
    let terminal = Terminal::start(100, 50, &[], "0");
    terminal.until("it asks", |screen| screen.trim_end().ends_with('>'));
    terminal.types("What is a trellis?");
    terminal.until("it answers", |screen| count(screen, "see how:") == 1 && screen.trim_end().ends_with('>'));
    terminal.types("/why");
    terminal.until("it explains", |screen| screen.contains("The answer rests on"));
    terminal.types("/nonsense");
    terminal.until("it does not know that", |screen| screen.contains("there is no /nonsense"));
    terminal.types("/model rehearsal");
    terminal.types("And what else?");
    let screen =
        terminal.until("it answers again", |screen| count(screen, "see how:") == 2 && screen.trim_end().ends_with('>'));
    assert!(screen.contains("earlier  1 question of conversation"), "{screen}");
    terminal.types("/quit");
    terminal.until("it leaves", |screen| screen.contains("left with 0"));
}
