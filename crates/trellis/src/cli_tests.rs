//! What the documentation tells people to type is held against what the program takes.

#[path = "../tests/it/documented/pages.rs"]
#[allow(dead_code, reason = "other tests run what is typed")]
mod pages;

use super::*;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command as Definition, CommandFactory};
use pages::Line;
use std::collections::BTreeSet;

/// Flags in sentences that belong to other programs.
const OTHERS: [&str; 5] = ["program", "descriptor", "auto", "overwrite", "process"];

/// Why the program would not take a line, if it would not.
fn fault(line: &Line, commands: &BTreeSet<String>, flags: &BTreeSet<String>) -> Option<String> {
    let words = &line.words;
    let is_ours = words[0] == "trellis";
    // `cargo run … -- ask` is the same program.
    let run = words[0] == "cargo" && words.get(1).is_some_and(|word| word == "run");
    let after = words.iter().position(|word| word == "--").filter(|_| run);
    // In sentences the name of the program may be left out, and so may be the command.
    let is_flag = !line.is_whole && words[0].starts_with("--") && words[0].len() > 2;
    let is_part = !line.is_whole && commands.contains(&words[0]) && words.len() > 1;
    if is_flag {
        let name = words[0].trim_start_matches('-').split('=').next().unwrap_or_default();
        let is_known = flags.contains(name) || OTHERS.contains(&name);
        return (!is_known).then(|| format!("no command has the flag --{name}"));
    }
    let arguments = match after {
        Some(after) => &words[after + 1..],
        None if is_ours => &words[1..],
        None if is_part => &words[..],
        None => return None,
    };
    let name = "trellis".to_owned();
    let error = Cli::try_parse_from([&name].into_iter().chain(arguments)).err()?;
    let is_incomplete = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // A value is left out, or only named.
    let is_named = matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value))
        if !value.contains(char::is_lowercase));
    let is_fine = is_help || (is_incomplete || is_named) && !line.is_whole;
    (!is_fine).then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

fn commands() -> BTreeSet<String> {
    Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// The long flags of a command and of all below it.
fn flags(command: &Definition) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(clap::Arg::get_long_and_visible_aliases).flatten().map(str::to_owned);
    own.chain(command.get_subcommands().flat_map(flags)).collect()
}

fn faults(lines: &[Line]) -> Vec<(usize, String)> {
    let mut whole = Cli::command();
    whole.build();
    let (commands, flags) = (commands(), flags(&whole));
    lines.iter().filter_map(|line| Some((line.number, fault(line, &commands, &flags)?))).collect()
}

#[test]
fn the_program_takes_every_command_line_of_the_documentation() {
    let pages = pages::all();
    let lines: Vec<_> = pages.iter().map(|page| (&page.name, page.lines())).collect();
    let wrong = lines.iter().flat_map(|(name, lines)| {
        let faults = faults(lines);
        faults.into_iter().map(move |(line, fault)| format!("{name}:{line}: {fault}"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let ours = lines.iter().flat_map(|(_, lines)| lines).filter(|line| line.words[0] == "trellis");
    let (whole, parts): (Vec<_>, Vec<_>) = ours.partition(|line| line.is_whole);
    assert!(whole.len() > 100 && parts.len() > 80, "{} are to be typed, {} are told of", whole.len(), parts.len());
}

#[test]
fn the_page_on_commands_has_every_command() {
    let page = pages::Page::read(std::path::Path::new("docs/commands.md"));
    let lines = page.lines().into_iter().filter(|line| line.words[0] == "trellis");
    let told: BTreeSet<String> = lines.filter_map(|line| line.words.into_iter().nth(1)).collect();
    let whole = Cli::command();
    let offered = whole.get_subcommands().filter(|command| !command.is_hide_set()).map(Definition::get_name);
    let missing: Vec<_> = offered.filter(|name| !told.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/commands.md does not tell of {missing:?}");
}

#[test]
fn a_flag_that_is_gone_is_found_with_its_line() {
    let script = "trellis runs  # all\n\ntrellis ask \"Why?\nAnd how?\" \\\n  --pattern react | less\n\
                  A=1 trellis run show last --fulll > file; trellis ask\nid=$(trellis runz | jq -r '.x | .y')\n";
    let lines = pages::lines(script, 7);
    let wrong: Vec<_> = faults(&lines);
    let numbers: Vec<_> = wrong.iter().map(|(line, _)| *line).collect();
    assert_eq!(numbers, [12, 12, 13], "{wrong:?}");
    assert!(wrong[0].1.contains("'--fulll'") && wrong[1].1.contains("not provided"), "{wrong:?}");
    assert!(wrong[2].1.contains("'runz'"), "{wrong:?}");
    assert_eq!(lines[1].words, ["trellis", "ask", "Why?\nAnd how?", "--pattern", "react"]);
}
