//! Which addresses a tool may call. Names are checked before they are resolved, and addresses after it: a name that is
//! allowed may point anywhere.

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// What the operator allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Hosts, as `api.example.com`, `*.example.com` or `host:port`. None are allowed if none are named.
    pub hosts: Vec<String>,
    /// Addresses of this machine and of private networks may be called, too.
    pub private: bool,
}

/// Why an address is not called, for the model and for whoever configures the tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("`{0}` is no http or https address")]
    NotHttp(String),
    #[error("addresses with a user name or a password are not called; use a header with a secret")]
    Credentials,
    #[error("the operator does not allow calls to {host}; add it to `hosts` under [tools.http] in the settings file")]
    Host { host: String },
    #[error(
        "{host} is {address}, which is not a public address; set `private = true` under [tools.http] to allow that"
    )]
    Private { host: String, address: IpAddr },
}

impl Reach {
    /// Whether an address may be called, as far as its text tells.
    pub fn check(&self, url: &Url) -> Result<(), Refused> {
        let Some(host) = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https")) else {
            return Err(Refused::NotHttp(url.scheme().to_owned()));
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        let port = url.port_or_known_default().unwrap_or_default();
        if !self.hosts.iter().any(|allowed| is_allowed(allowed, host, port)) {
            return Err(Refused::Host { host: host.to_owned() });
        }
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) => self.check_address(host, address),
            // A name: what it is shows when it is resolved.
            Err(_) => Ok(()),
        }
    }

    fn check_address(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        if self.private || is_public(address) {
            return Ok(());
        }
        Err(Refused::Private { host: host.to_owned(), address })
    }
}

fn is_allowed(allowed: &str, host: &str, port: u16) -> bool {
    let (name, only_port) = match allowed.rsplit_once(':') {
        // An address of version 6 has colons of its own.
        Some((name, digits)) if !name.contains(':') || name.ends_with(']') => (name, digits.parse::<u16>().ok()),
        _ => (allowed, None),
    };
    if only_port.is_some_and(|only| only != port) {
        return false;
    }
    let (name, host) = (name.to_ascii_lowercase(), host.trim_end_matches('.').to_ascii_lowercase());
    match name.strip_prefix("*.") {
        Some(parent) => host.strip_suffix(parent).is_some_and(|child| child.len() > 1 && child.ends_with('.')),
        None => name == host,
    }
}

/// Whether an address is one of the open network, and of nobody's own.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_broadcast()
        || address.is_multicast()
        || address.is_documentation();
    let is_reserved = a == 0
        || a >= 240
        // Carriers' own, protocol assignments, relays to version 6, benchmarks.
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && (b == 18 || b == 19));
    !is_special && !is_reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let is_special = address.is_loopback() || address.is_unspecified() || address.is_multicast();
    let is_own = (a & 0xfe00) == 0xfc00 || (a & 0xffc0) == 0xfe80 || (a & 0xffc0) == 0xfec0;
    // Only 2000::/3 is given out; documentation and tunnels within it are not.
    let is_global = (a & 0xe000) == 0x2000 && !(a == 0x2001 && (b < 0x0200 || b == 0x0db8)) && a != 0x3fff;
    is_global && !is_special && !is_own
}

/// The address of version 4 that an address of version 6 stands for.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let low = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        // Mapped, compatible, and translated by NAT64.
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] => Some(low(a, b)),
        [0, 0, 0, 0, 0, 0, a, b] if a != 0 => Some(low(a, b)),
        // 6to4.
        [0x2002, a, b, ..] => Some(low(a, b)),
        _ => None,
    }
}

/// Resolves names as the system does, and gives nothing that may not be called.
#[derive(Debug, Clone)]
pub(super) struct GuardedNames(pub(super) Arc<Reach>);

impl Resolve for GuardedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = Arc::clone(&self.0);
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            // One that is not allowed is enough: whoever answers the name may give another one next time.
            for address in &found {
                reach.check_address(&host, address.ip())?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(hosts: &[&str], private: bool) -> Reach {
        Reach { hosts: hosts.iter().map(|host| (*host).to_owned()).collect(), private }
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn only_hosts_that_the_operator_names_are_called() {
        let some = reach(&["api.example.com", "*.example.org", "localhost:8080"], true);
        for good in [
            "https://api.example.com/x",
            "http://API.example.com:81/",
            "https://a.b.example.org",
            "http://localhost:8080/",
        ] {
            assert_eq!(some.check(&url(good)), Ok(()), "{good}");
        }
        for bad in [
            "https://example.com",
            "https://evil-api.example.com.evil.net",
            "https://example.org",
            "https://xexample.org",
            "http://localhost:8081/",
            "http://localhost/",
        ] {
            assert!(matches!(some.check(&url(bad)), Err(Refused::Host { .. })), "{bad}");
        }
        assert!(matches!(Reach::default().check(&url("https://api.example.com")), Err(Refused::Host { .. })));
        assert_eq!(some.check(&url("https://me:secret@api.example.com")), Err(Refused::Credentials));
        assert!(matches!(some.check(&url("file:///etc/passwd")), Err(Refused::NotHttp(_))));
    }

    #[test]
    fn addresses_that_are_not_public_are_not_called_however_they_are_written() {
        for own in [
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "192.0.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "::127.0.0.1",
            "2001:db8::1",
            "2001::1",
        ] {
            assert!(!is_public(own.parse().unwrap()), "{own}");
        }
        for open in
            ["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700::1111", "::ffff:1.1.1.1", "2001:4860:4860::8888"]
        {
            assert!(is_public(open.parse().unwrap()), "{open}");
        }
        let named = reach(&["127.0.0.1", "[::1]", "2130706433"], false);
        for address in ["http://127.0.0.1/", "http://[::1]/", "http://2130706433/", "http://0x7f000001/"] {
            let checked = named.check(&url(address));
            assert!(matches!(checked, Err(Refused::Private { .. } | Refused::Host { .. })), "{address}: {checked:?}");
        }
        assert_eq!(reach(&["127.0.0.1"], true).check(&url("http://127.0.0.1:99/")), Ok(()));
    }

    #[tokio::test]
    async fn a_name_that_points_to_this_machine_is_not_resolved() {
        let names = |private| GuardedNames(Arc::new(reach(&["localhost"], private)));
        let name = || "localhost".parse::<Name>().unwrap();
        let refused = names(false).resolve(name()).await.err().map(|error| error.to_string());
        assert!(refused.is_some_and(|reason| reason.contains("not a public address")));
        assert!(names(true).resolve(name()).await.is_ok_and(|found| found.count() > 0));
    }
}
