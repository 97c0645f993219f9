//! Known vulnerabilities of what we are built from, checked without network: the project's own dated list against
//! `Cargo.lock` and the sources.

use crate::root;
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A list that is older is not trusted to be complete.
const MOST_DAYS: i64 = 90;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    date: String,
    advisory: Vec<Advisory>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advisory {
    id: String,
    #[serde(rename = "crate")]
    package: String,
    /// The first version without it.
    patched: String,
    title: String,
    /// Why it does not concern us, if we cannot do without the crate.
    unreachable: Option<String>,
    /// What must not stand in the sources for that to be true.
    #[serde(default)]
    absent: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Debug, Deserialize)]
struct Locked {
    name: String,
    version: String,
}

pub(crate) fn check() -> Result<()> {
    let read = |name: &str| fs::read_to_string(root()?.join(name)).with_context(|| format!("cannot read {name}"));
    let list: List = toml::from_str(&read("advisories.toml")?).context("advisories.toml cannot be understood")?;
    let lock: Lock = toml::from_str(&read("Cargo.lock")?).context("Cargo.lock cannot be understood")?;
    let mut sources = String::new();
    for place in ["crates", "bench", "acceptance"] {
        gather(&root()?.join(place), &mut sources)?;
    }
    if let Some(warning) = age(&list.date, today()?)? {
        eprintln!("warning: {warning}");
    }
    for line in judge(&list, &lock, &sources)? {
        println!("{line}");
    }
    Ok(())
}

/// What can be lived with, line by line; an error for what cannot.
fn judge(list: &List, lock: &Lock, sources: &str) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for advisory in &list.advisory {
        let Advisory { id, package, patched, title, unreachable, absent } = advisory;
        let mut affected = Vec::new();
        for locked in lock.package.iter().filter(|locked| locked.name == *package) {
            if version(&locked.version)? < version(patched)? {
                affected.push(locked.version.as_str());
            }
        }
        if affected.is_empty() {
            lines.push(format!("{id}: no longer concerns us; remove it from advisories.toml"));
            continue;
        }
        let affected = affected.join(", ");
        let Some(reason) = unreachable else {
            bail!("{id} ({title}) concerns {package} {affected}; use {patched} or newer")
        };
        ensure!(!absent.is_empty(), "{id}: advisories.toml says nothing that must be absent, so that nothing is shown");
        if let Some(found) = absent.iter().find(|word| sources.contains(word.as_str())) {
            bail!(
                "{id} ({title}) was unreachable in {package} {affected} as long as `{found}` is nowhere in the sources"
            );
        }
        lines.push(format!("{id}: {package} {affected} is not reached: {reason}"));
    }
    Ok(lines)
}

fn version(text: &str) -> Result<[u64; 3]> {
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<u64> = core.split('.').map(str::parse).collect::<Result<_, _>>().context(text.to_owned())?;
    parts.try_into().map_err(|_| anyhow::anyhow!("`{text}` is no version"))
}

/// A warning if the list is old.
fn age(date: &str, today: i64) -> Result<Option<String>> {
    let days = today - day(date)?;
    Ok((days > MOST_DAYS).then(|| format!("advisories.toml is {days} days old; renew it, it says how")))
}

#[expect(clippy::disallowed_methods, reason = "a chore lives in real time")]
fn today() -> Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 86_400)?)
}

/// Days since 1970 of a date such as 2026-11-16.
fn day(date: &str) -> Result<i64> {
    let parts: Vec<i64> = date.split('-').map(str::parse).collect::<Result<_, _>>().context(date.to_owned())?;
    let [year, month, day] = parts[..] else { bail!("`{date}` is no date; write it as 2026-11-16") };
    // Years that begin in March have their odd day last.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    Ok(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469)
}

/// All Rust sources below a folder.
fn gather(folder: &Path, sources: &mut String) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(verdict: &str) -> List {
        let entry = format!("[[advisory]]\nid = \"R\"\ncrate = \"c\"\npatched = \"0.41.0\"\ntitle = \"t\"\n{verdict}");
        toml::from_str(&format!("date = \"2026-11-16\"\n{entry}")).unwrap()
    }

    fn lock(version: &str) -> Lock {
        toml::from_str(&format!("[[package]]\nname = \"c\"\nversion = \"{version}\"")).unwrap()
    }

    #[test]
    fn an_affected_crate_fails_unless_it_is_shown_to_be_out_of_reach() {
        let shown = "unreachable = \"never called\"\nabsent = [\"c::read\"]";
        assert!(judge(&list(""), &lock("0.37.5"), "").unwrap_err().to_string().contains("use 0.41.0 or newer"));
        assert!(judge(&list(shown), &lock("0.37.5"), "c::write()").unwrap()[0].contains("never called"));
        let reached = judge(&list(shown), &lock("0.37.5"), "c::read()").unwrap_err().to_string();
        assert!(reached.contains("`c::read`"), "{reached}");
        assert!(judge(&list("unreachable = \"trust me\""), &lock("0.37.5"), "").is_err(), "a claim shows nothing");
        assert!(judge(&list(""), &lock("0.41.0"), "").unwrap()[0].contains("remove it"));
    }

    #[test]
    fn an_old_list_is_told() {
        let date = day("2026-11-16").unwrap();
        assert_eq!((day("1970-01-01").unwrap(), day("2000-03-01").unwrap(), date), (0, 11_017, 20_773));
        assert_eq!(age("2026-11-16", date + MOST_DAYS).unwrap(), None);
        assert!(age("2026-11-16", date + MOST_DAYS + 1).unwrap().unwrap().contains("91 days old"));
        assert!(day("yesterday").is_err());
    }

    #[test]
    fn the_list_of_the_project_holds() {
        check().unwrap();
    }
}
