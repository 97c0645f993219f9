//! Where a broker is, as operators write it.

use std::fmt;
use url::Url;

/// The address of a broker. It is shown without its password or token.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    pub(crate) kind: BrokerKind,
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// RabbitMQ: the virtual host; Pulsar: tenant and namespace.
    pub(crate) virtual_host: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerKind {
    RabbitMq,
    Nats,
    /// Only with the feature `pulsar`.
    Pulsar,
}

/// The tenant and namespace that each Pulsar has.
const PUBLIC: &str = "public/default";

/// Why an address is not one. It says nothing of what was written, because a password may be in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(
        "the address of the broker cannot be read ({0}); write amqp://user:password@host:port/virtual-host, \
         nats://user:password@host:port or pulsar://user:password@host:port/tenant/namespace, and / : @ % # ? in user, password or virtual host as %2F %3A %40 %25 %23 %3F"
    )]
    Unreadable(String),
    #[error(
        "there is no broker for {0}:// addresses; there are amqp://, amqps://, nats://, tls:// (NATS over TLS), pulsar:// and \
         pulsar+ssl://"
    )]
    UnknownScheme(String),
    #[error("this program was built without Pulsar; build it with the feature `pulsar`")]
    NotBuilt,
    #[error("the address of the broker has {0}, which means nothing here")]
    Superfluous(&'static str),
}

impl BrokerAddress {
    /// Reads `amqp://user:password@host:port/virtual-host`, `amqps://…`, `nats://user:password@host:port`, `tls://…`,
    /// `pulsar://user:password@host:port/tenant/namespace` or `pulsar+ssl://…`.
    ///
    /// ```
    /// use trellis_brokers::BrokerAddress;
    ///
    /// let address = BrokerAddress::parse("amqp://ann:s3cret@mq.example:5673/agents").unwrap();
    /// assert_eq!(address.to_string(), "amqp://ann@mq.example:5673/agents");
    /// ```
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let unreadable = |reason: &str| AddressError::Unreadable(reason.to_owned());
        let url = Url::parse(text).map_err(|error| unreadable(&error.to_string()))?;
        let (kind, tls, default_port) = match url.scheme() {
            "amqp" => (BrokerKind::RabbitMq, false, 5672),
            "amqps" => (BrokerKind::RabbitMq, true, 5671),
            "nats" => (BrokerKind::Nats, false, 4222),
            "tls" => (BrokerKind::Nats, true, 4222),
            "pulsar" => (BrokerKind::Pulsar, false, 6650),
            "pulsar+ssl" => (BrokerKind::Pulsar, true, 6651),
            other => return Err(AddressError::UnknownScheme(other.to_owned())),
        };
        if url.query().is_some() {
            return Err(AddressError::Superfluous("a query (?…)"));
        }
        if url.fragment().is_some() {
            return Err(AddressError::Superfluous("a fragment (#…)"));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| unreadable("it names no host"))?;
        let plain = |part: &str| decoded(part).ok_or_else(|| unreadable("an escaped part is no UTF-8"));
        let path = url.path().strip_prefix('/').unwrap_or(url.path());
        let virtual_host = match (kind, path) {
            // RabbitMQ calls its first virtual host "/"; nobody names it in an address.
            (BrokerKind::RabbitMq, "") => "/".to_owned(),
            (BrokerKind::RabbitMq, path) if path.contains('/') => {
                return Err(unreadable("a / in a virtual host is written as %2F"));
            }
            (BrokerKind::RabbitMq, path) => plain(path)?,
            (BrokerKind::Nats, "") => String::new(),
            (BrokerKind::Nats, _) => return Err(AddressError::Superfluous("a path")),
            (BrokerKind::Pulsar, "") => PUBLIC.to_owned(),
            (BrokerKind::Pulsar, path) if path.split('/').filter(|part| !part.is_empty()).count() != 2 => {
                return Err(unreadable("after the host of Pulsar come its tenant and namespace, or nothing"));
            }
            (BrokerKind::Pulsar, path) => plain(path.trim_end_matches('/'))?,
        };
        let user = (!url.username().is_empty()).then(|| plain(url.username())).transpose()?;
        let password = url.password().map(plain).transpose()?;
        if user.is_none() && password.is_some() {
            return Err(unreadable("it has a password but no user"));
        }
        let port = url.port().unwrap_or(default_port);
        // An IPv6 address stands in brackets only inside of addresses.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { kind, tls, host, port, user, password, virtual_host })
    }

    /// A RabbitMQ whose address is given in parts, none of them escaped.
    pub fn rabbitmq(host: &str, port: u16, user: &str, password: &str, virtual_host: &str) -> Self {
        Self {
            kind: BrokerKind::RabbitMq,
            tls: false,
            host: host.to_owned(),
            port,
            user: Some(user.to_owned()),
            password: Some(password.to_owned()),
            virtual_host: virtual_host.to_owned(),
        }
    }

    pub fn kind(&self) -> BrokerKind {
        self.kind
    }
}

impl fmt::Display for BrokerAddress {
    /// Without the password, and without a token, which NATS and Pulsar take in the place of a name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.kind, self.tls) {
            (BrokerKind::RabbitMq, false) => "amqp",
            (BrokerKind::RabbitMq, true) => "amqps",
            (BrokerKind::Nats, false) => "nats",
            (BrokerKind::Nats, true) => "tls",
            (BrokerKind::Pulsar, false) => "pulsar",
            (BrokerKind::Pulsar, true) => "pulsar+ssl",
        };
        write!(f, "{scheme}://")?;
        let is_name = self.password.is_some() || self.kind == BrokerKind::RabbitMq;
        if let Some(user) = self.user.as_ref().filter(|_| is_name) {
            write!(f, "{user}@")?;
        }
        if self.host.contains(':') { write!(f, "[{}]", self.host) } else { f.write_str(&self.host) }?;
        write!(f, ":{}", self.port)?;
        match self.virtual_host.as_str() {
            "" | "/" | PUBLIC => Ok(()),
            name => write!(f, "/{name}"),
        }
    }
}

impl fmt::Debug for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BrokerAddress({self})")
    }
}

/// Percent-decoding.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| first == b'%');
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> BrokerAddress {
        BrokerAddress::parse(text).unwrap()
    }

    #[test]
    fn what_is_left_out_has_the_brokers_defaults() {
        let address = parsed("amqp://mq");
        assert_eq!((address.kind, address.port, address.virtual_host.as_str()), (BrokerKind::RabbitMq, 5672, "/"));
        assert_eq!((address.user, address.password), (None, None));
        assert_eq!((parsed("amqps://mq").port, parsed("amqps://mq").tls), (5671, true));
        assert_eq!((parsed("nats://n").port, parsed("tls://n").tls), (4222, true));
        assert_eq!((parsed("pulsar://p").port, parsed("pulsar://p").virtual_host.as_str()), (6650, "public/default"));
        assert_eq!((parsed("pulsar+ssl://p").port, parsed("pulsar+ssl://p").tls), (6651, true));
    }

    #[test]
    fn escaped_parts_are_what_they_stand_for() {
        let address = parsed("amqp://a%40b:p%40ss%2Fw%3Ard%25@[::1]:1/%2fagents%20of%20mine");
        assert_eq!(address.user.as_deref(), Some("a@b"));
        assert_eq!(address.password.as_deref(), Some("p@ss/w:rd%"));
        assert_eq!((address.virtual_host.as_str(), address.host.as_str()), ("/agents of mine", "::1"));
        // The usual way to write the first virtual host, and what is not escaped after all.
        assert_eq!(parsed("amqp://mq/%2f").virtual_host, "/");
        assert_eq!(parsed("amqp://mq/100%").virtual_host, "100%");
        let pulsar = parsed("pulsar://p/mine/agents/");
        assert_eq!(
            (pulsar.virtual_host.as_str(), pulsar.to_string().as_str()),
            ("mine/agents", "pulsar://p:6650/mine/agents")
        );
    }

    #[test]
    fn nothing_that_is_shown_has_the_password() {
        for text in ["amqp://ann:s3cret@mq/v", "nats://ann:s3cret@n:1", "pulsar+ssl://ann:s3cret@p/t/n"] {
            let address = parsed(text);
            assert!(!format!("{address} {address:?} {address:#?}").contains("s3cret"));
            assert!(address.to_string().contains("ann@"));
        }
        // A name alone is a token there.
        for text in ["nats://s3cret@n:1", "tls://s3cret@n:1", "pulsar://s3cret@p", "pulsar+ssl://s3cret@p/t/n"] {
            let address = parsed(text);
            assert!(!format!("{address} {address:?} {address:#?}").contains("s3cret"), "{address}");
        }
        assert_eq!(parsed("amqp://ann@mq").to_string(), "amqp://ann@mq:5672");
        let wrong = [
            "amqp://ann:s3cret@mq:99999/",
            "amqp://ann:s3cret@/",
            "amqp://ann:s3cret@mq/a/b",
            "amqp://:s3cret@mq",
            "kafka://ann:s3cret@k",
            "nats://ann:s3cret@n/path",
            "pulsar://ann:s3cret@p/tenant",
            "pulsar://ann:s3cret@p/tenant/namespace/topic",
            "amqp://ann:s3cret@mq?heartbeat=1",
            "amqp://ann:s3cret@mq#part",
            "ann:s3cret",
            "s3cret@mq",
            "amqp://ann:s3cret@mq/%ff",
        ];
        for text in wrong {
            let error = BrokerAddress::parse(text).expect_err(text);
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }
}
