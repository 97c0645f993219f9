//! Who may use a server: the operator by the token of the environment, users by the lines of a file.

use crate::cli::Serve;
use crate::failure::Failure;
use std::collections::HashSet;
use std::path::Path;
use trellis_domain::Workspace;
use trellis_gateway::{Access, Identity, Token};

/// The operator, if there is a token for it, and the users of the file; nobody is asked if there are neither.
pub(crate) fn access(serve: &Serve) -> Result<Access, Failure> {
    let operator = std::env::var("TRELLIS_TOKEN").ok().filter(|token| !token.is_empty());
    let mut known: Vec<_> = operator.map(|token| (Token::new(token), Identity::operator())).into_iter().collect();
    if let Some(file) = &serve.tokens {
        known.extend(read(file).map_err(Failure::usage)?);
    }
    Ok(if known.is_empty() { Access::Open } else { Access::Tokens(known) })
}

fn read(file: &Path) -> Result<Vec<(Token, Identity)>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    users(&text).map_err(|wrong| format!("{}: {wrong}", file.display()))
}

/// A user in each line: a name, a token, and the workspaces; `default` if there are none.
fn users(text: &str) -> Result<Vec<(Token, Identity)>, String> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let (mut users, mut names) = (Vec::new(), HashSet::new());
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (name, user) = user(line).map_err(|what| format!("line {number}: {what}"))?;
        // Records say by name who asked.
        if !names.insert(name) {
            return Err(format!("line {number}: the name `{name}` is there already; each line has its own"));
        }
        users.push(user);
    }
    if users.is_empty() { Err("there is no user; write a line NAME TOKEN for each".to_owned()) } else { Ok(users) }
}

fn user(line: &str) -> Result<(&str, (Token, Identity)), String> {
    let mut words = line.split_whitespace();
    let (Some(name), Some(token)) = (words.next(), words.next()) else {
        return Err("write NAME TOKEN, and the workspaces if it is not only `default`".to_owned());
    };
    if name == Identity::OPERATOR {
        return Err(format!("`{name}` is whoever has TRELLIS_TOKEN; choose another name"));
    }
    let workspaces = words.map(Workspace::new).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    Ok((name, (Token::new(token), Identity::user(name, workspaces))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Result<Access, String> {
        users(text).map(Access::Tokens)
    }

    #[test]
    fn a_line_is_a_user_and_its_workspaces() {
        let access = known("# people\n\nalice t1\n  bob\tt2 acme press \n").unwrap();
        assert_eq!(access.identify("t1"), Some(Identity::user("alice", [Workspace::default()])));
        let bobs = ["acme", "press"].map(|name| Workspace::new(name).unwrap());
        assert_eq!(access.identify("t2"), Some(Identity::user("bob", bobs)));
        assert_eq!(access.identify("acme"), None);
    }

    #[test]
    fn what_is_wrong_is_told_by_its_line() {
        for (text, complaint) in [
            ("", "there is no user"),
            ("a t\nb\n", "line 2: write NAME TOKEN"),
            ("operator t\n", "line 1: `operator` is whoever has TRELLIS_TOKEN"),
            ("a t1\n#\na t2\n", "line 3: the name `a` is there already"),
            ("a t a/b\n", "line 1: "),
        ] {
            let told = known(text).unwrap_err();
            assert!(told.contains(complaint), "{text:?}: {told}");
            assert!(!told.contains("t1") && !told.contains("t2"), "no token is told: {told}");
        }
    }
}
