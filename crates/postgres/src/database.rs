//! Connections to one database.

use crate::encryption::{self, Encryption};
use crate::error::{OpenError, failed, no_connection};
use crate::migrations;
use crate::notices::{self, Notices};
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use std::ops::{Deref, DerefMut};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::Row;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::ToSql;
use trellis_domain::Hash;
use trellis_orchestrator::ports::JournalError;

/// What statements are given.
pub(crate) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Where the database is, and how it is used.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// `postgres://USER:PASSWORD@HOST:5432/NAME`, or words such as `host=/var/run/postgresql dbname=trellis`. After a `?`
    /// come `sslmode=verify-full` and `sslrootcert=FILE`, as libpq has them.
    pub address: String,
    /// Everything is in this schema.
    pub schema: String,
    /// What the server lists this process's connections as; see [`crate::application`].
    pub application: String,
    /// Connections that read. Half as many more claim, serve the queue and the stream and write the graph's view, and committers
    /// have their own.
    pub connections: usize,
    /// A statement that takes longer is given up.
    pub statement_timeout: Duration,
    /// For so long a connection is waited for, and a lock.
    pub wait_timeout: Duration,
}

impl DatabaseSettings {
    pub fn of(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            schema: "trellis".to_owned(),
            application: "trellis".to_owned(),
            connections: 16,
            statement_timeout: Duration::from_secs(30),
            wait_timeout: Duration::from_secs(10),
        }
    }

    fn config(&self) -> Result<(tokio_postgres::Config, Encryption), OpenError> {
        let (address, wanted) = encryption::wanted(&self.address)?;
        let mut config = tokio_postgres::Config::from_str(&address)
            .map_err(|_| OpenError::Address(without_password(&self.address)))?;
        config
            .ssl_mode(wanted.mode())
            .application_name(&self.application)
            .connect_timeout(self.wait_timeout)
            .keepalives_idle(Duration::from_secs(30))
            .tcp_user_timeout(self.statement_timeout)
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        // The rules of a commit are asked under a lock, and must see what was committed while it was waited for.
        let own = format!(
            "-c search_path={} -c statement_timeout={} -c lock_timeout={} -c default_transaction_isolation=read\\ committed \
             -c idle_in_transaction_session_timeout={}",
            quoted(&self.schema).replace('\\', "\\\\").replace(' ', "\\ "),
            self.statement_timeout.as_millis(),
            self.wait_timeout.as_millis(),
            (self.statement_timeout * 2).as_millis(),
        );
        let options = config.get_options().map_or_else(|| own.clone(), |others| format!("{others} {own}"));
        config.options(options);
        Ok((config, wanted.encryption()?))
    }
}

/// Transactions of commits that are under way at once, from one process.
pub(crate) const LANES: usize = 4;
/// Whoever commits or claims knows the keys. How a statement is executed is decided once, often while tables are small and
/// reading all of one is the quickest way; it would stay so until the server counts the rows again. What has to be read so
/// all the same counts as very dear, and must not be compiled for that.
const BY_KEYS: &str = " -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off";

/// Connections that claim, serve the queue and the stream and write the view, at least: whoever writes the view holds one for
/// long, and a claim that is renewed too late is lost.
const CASUAL: usize = 4;
/// Connections for looks into the graph, besides half as many as read and claim. They are made when they are needed.
const LOOKS: usize = 4;

/// A database with its tables. Copies share their connections.
#[derive(Debug, Clone)]
pub struct Database(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: DatabaseSettings,
    encryption: Encryption,
    pool: Pool,
    /// Nobody who reads keeps a commit waiting.
    committers: Pool,
    /// For what may be lost with the server: its disk is not waited for.
    casual: Pool,
    /// For whoever looks into the graph, which may take long.
    lookers: Pool,
    notices: Notices,
    listening: JoinHandle<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Database {
    /// Connects, and makes or updates the tables.
    pub async fn open(settings: DatabaseSettings) -> Result<Self, OpenError> {
        let (config, encryption) = settings.config()?;
        let pool = |connections: usize, more: &str| {
            let mut config = config.clone();
            config.options(format!("{}{more}", config.get_options().unwrap_or_default()));
            let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
            Pool::builder(Manager::from_config(config, encryption.0.clone(), recycling))
                .max_size(connections.max(2))
                .wait_timeout(Some(settings.wait_timeout))
                .create_timeout(Some(settings.wait_timeout))
                .runtime(Runtime::Tokio1)
                .build()
                .map_err(|error| OpenError::Unreachable(error.to_string()))
        };
        let (readers, committers) = (pool(settings.connections, "")?, pool(LANES, BY_KEYS)?);
        let casual = pool((settings.connections / 2).max(CASUAL), &format!("{BY_KEYS} -c synchronous_commit=off"))?;
        let lookers = pool(settings.connections / 2 + LOOKS, "")?;
        let mut client = readers.get().await.map_err(|error| match no_connection(error) {
            JournalError::Unavailable(why) | JournalError::Damaged(why) => OpenError::Unreachable(why),
            other @ (JournalError::Write(_) | JournalError::Read(_) | JournalError::Closed) => OpenError::Store(other),
        })?;
        migrations::run(&mut client, &settings.schema).await?;
        drop(client);
        let notices = Notices::new(&settings.schema);
        let heard = notices::listen(config, encryption.clone(), settings.wait_timeout, notices.clone());
        let listening = tokio::spawn(heard);
        Ok(Self(Arc::new(Inner {
            settings,
            encryption,
            pool: readers,
            committers,
            casual,
            lookers,
            notices,
            listening,
        })))
    }

    pub(crate) fn schema(&self) -> &str {
        &self.0.settings.schema
    }

    pub(crate) fn encryption(&self) -> &Encryption {
        &self.0.encryption
    }

    pub(crate) fn notices(&self) -> &Notices {
        &self.0.notices
    }

    /// A number that locks are taken by, and that nobody else has.
    pub(crate) fn lock_of(&self, what: &str) -> i64 {
        let hash = Hash::of(format!("{}\0{what}", self.0.settings.schema));
        hash.as_bytes().first_chunk().copied().map_or(0, i64::from_be_bytes)
    }

    /// For so long an answer is waited for. The server gives up before that, if it can.
    fn patience(&self) -> Duration {
        self.0.settings.statement_timeout + Duration::from_secs(2)
    }

    /// What takes longer is given up. The server then has a connection less, and undoes what was not committed.
    pub(crate) async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, JournalError>>,
    ) -> Result<T, JournalError> {
        let late = |_| JournalError::Unavailable("the server does not answer".to_owned());
        tokio::time::timeout(self.patience(), call).await.map_err(late)?
    }

    pub(crate) async fn lease(&self) -> Result<Lease, JournalError> {
        Ok(Lease(Some(self.0.pool.get().await.map_err(no_connection)?)))
    }

    pub(crate) async fn committer(&self) -> Result<Lease, JournalError> {
        Ok(Lease(Some(self.0.committers.get().await.map_err(no_connection)?)))
    }

    pub(crate) async fn looker(&self) -> Result<Lease, JournalError> {
        Ok(Lease(Some(self.0.lookers.get().await.map_err(no_connection)?)))
    }

    pub(crate) async fn casual(&self) -> Result<Lease, JournalError> {
        Ok(Lease(Some(self.0.casual.get().await.map_err(no_connection)?)))
    }

    /// One statement that may be lost with the server.
    pub(crate) async fn change_casually(
        &self,
        statement: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, JournalError> {
        self.within(async {
            let lease = self.casual().await?;
            let rows = lease.rows(statement, parameters).await?;
            lease.release();
            Ok(rows)
        })
        .await
    }

    /// One statement that gives rows.
    pub(crate) async fn query(&self, statement: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, JournalError> {
        self.within(async {
            let lease = self.lease().await?;
            let rows = lease.rows(statement, parameters).await?;
            lease.release();
            Ok(rows)
        })
        .await
    }

    /// One statement that gives a row at most.
    pub(crate) async fn find(&self, statement: &str, parameters: Parameters<'_>) -> Result<Option<Row>, JournalError> {
        Ok(self.query(statement, parameters).await?.pop())
    }

    /// One statement that changes something; how many rows.
    pub(crate) async fn execute(&self, statement: &str, parameters: Parameters<'_>) -> Result<u64, JournalError> {
        self.within(async {
            let lease = self.lease().await?;
            let prepared = lease.prepare_cached(statement).await.map_err(failed)?;
            let count = lease.execute(&prepared, parameters).await.map_err(failed)?;
            lease.release();
            Ok(count)
        })
        .await
    }
}

/// A connection of a pool. Unless it is released it is closed: whoever was cut off may have left it in the middle of
/// something.
pub(crate) struct Lease(Option<Object>);

impl Lease {
    pub(crate) fn release(mut self) {
        drop(self.0.take());
    }

    pub(crate) async fn rows(&self, statement: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, JournalError> {
        let prepared = self.prepare_cached(statement).await.map_err(failed)?;
        self.query(&prepared, parameters).await.map_err(failed)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}

const HELD: &str = "a lease has its connection until it is released";

impl Deref for Lease {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.0.as_ref().expect(HELD)
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Object {
        self.0.as_mut().expect(HELD)
    }
}

/// An identifier as SQL has it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An address as it may be shown: without user and password, and without what may be another password.
pub fn without_password(address: &str) -> String {
    const HIDDEN: &str = "(hidden)";
    let Some((start, rest)) = address.split_once("://") else { return HIDDEN.to_owned() };
    // Nobody can say where a password ends that has one of these.
    if rest.find('?').zip(rest.rfind('@')).is_some_and(|(options, at)| options < at) {
        return format!("{start}://{HIDDEN}");
    }
    let (user, host) = rest.rsplit_once('@').map_or(("", rest), |(_, host)| ("…@", host));
    let host = host.split_once('?').map_or(host, |(host, _)| host);
    format!("{start}://{user}{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(without_password("postgres://me:secret@host:nonsense/x"), "postgres://…@host:nonsense/x");
        assert_eq!(without_password("postgres://host/x?password=secret"), "postgres://host/x");
        assert_eq!(without_password("postgres://host/x?password=a@secret"), "postgres://(hidden)");
        assert_eq!(without_password("host=h password=secret"), "(hidden)");
    }

    #[test]
    fn options_keep_what_the_address_has() {
        let settings = DatabaseSettings::of("postgres://h/x?options=-c%20geqo%3Doff");
        let config = settings.config().unwrap().0;
        let options = config.get_options().unwrap();
        assert!(options.starts_with("-c geqo=off -c search_path=\"trellis\" -c statement_timeout=30000"), "{options}");
    }
}
