//! Who types the commands, for the record.

use trellis_domain::{Caller, Surface};

/// The user of this machine that the process belongs to, whatever the environment says.
pub(crate) fn caller() -> Caller {
    Caller::new(Some(user()), Surface::CommandLine)
}

#[cfg(unix)]
pub(crate) fn user() -> String {
    let id = rustix::process::getuid().as_raw();
    // Users that are kept elsewhere are told by number.
    let local = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    named(&local, id).unwrap_or_else(|| format!("uid {id}"))
}

#[cfg(not(unix))]
pub(crate) fn user() -> String {
    std::env::var("USERNAME").unwrap_or_else(|_| "somebody".to_owned())
}

/// The name of a user in a list such as `/etc/passwd`.
#[cfg(unix)]
fn named(list: &str, id: u32) -> Option<String> {
    let id = id.to_string();
    list.lines().find_map(|line| {
        let mut parts = line.split(':');
        let (name, number) = (parts.next()?, parts.nth(1)?);
        (number == id && !name.is_empty()).then(|| name.to_owned())
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let list = "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nodd\n";
        assert_eq!(named(list, 1000).as_deref(), Some("alice"));
        assert_eq!(named(list, 0).as_deref(), Some("root"));
        assert_eq!(named(list, 7), None);
    }
}
