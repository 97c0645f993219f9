//! The flags of TrustGraph's `agent-orchestrator`, as its containers are started with: names, environment and usual values are
//! the original's.

use clap::{ArgAction, Args, ValueEnum};

/// `trellis orchestrator`.
#[derive(Debug, Args)]
pub(crate) struct OrchestratorFlags {
    /// Name of the processor; all that share it share the work
    #[arg(long, default_value = "agent-manager")]
    pub(crate) id: String,
    /// Message broker of the deployment; only rabbitmq is served
    #[arg(long, env = "PUBSUB_BACKEND", default_value = "pulsar")]
    pub(crate) pubsub_backend: String,
    /// Host of RabbitMQ
    #[arg(long, env = "RABBITMQ_HOST", default_value = "rabbitmq")]
    pub(crate) rabbitmq_host: String,
    /// Its port
    #[arg(long, env = "RABBITMQ_PORT", default_value_t = 5672)]
    pub(crate) rabbitmq_port: u16,
    /// User
    #[arg(long, env = "RABBITMQ_USERNAME", default_value = "guest")]
    pub(crate) rabbitmq_username: String,
    /// Password
    #[arg(long, env = "RABBITMQ_PASSWORD", default_value = "guest", hide_env_values = true)]
    pub(crate) rabbitmq_password: String,
    /// Virtual host
    #[arg(long, env = "RABBITMQ_VHOST", default_value = "/")]
    pub(crate) rabbitmq_vhost: String,
    /// How much is told on stderr
    #[arg(long, short = 'l', value_enum, ignore_case = true, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// Topic on which changes of the configuration are told
    #[arg(long, default_value = "notify:tg:config")]
    pub(crate) config_push_queue: String,
    /// Seconds that the configuration service may take to answer
    #[arg(long, default_value_t = 60)]
    pub(crate) config_timeout: u64,
    /// How much is done at once: 16 dialogs of each flow for each of these
    #[arg(long, default_value_t = 1)]
    pub(crate) concurrency: u16,
    /// Seconds that the librarian may take to store a text
    #[arg(long, default_value_t = 120)]
    pub(crate) librarian_timeout: u64,
    /// Seconds that the prompt service may take for each response
    #[arg(long, default_value_t = 600)]
    pub(crate) prompt_timeout: u64,
    /// Most iterations of an agent that reasons and acts
    #[arg(long, default_value_t = 10)]
    pub(crate) max_iterations: u32,
    /// Seconds that calls in flight may take to finish once the process is asked to stop
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) drain: u64,
    #[command(flatten)]
    pub(crate) ignored: IgnoredFlags,
}

/// What the original takes and what means nothing here.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the original")]
pub(crate) struct IgnoredFlags {
    #[arg(long, short = 'p', env = "PULSAR_HOST", hide = true)]
    pulsar_host: Option<String>,
    #[arg(long, hide = true)]
    pulsar_admin_url: Option<String>,
    #[arg(long, env = "PULSAR_API_KEY", hide = true, hide_env_values = true)]
    pulsar_api_key: Option<String>,
    #[arg(long, hide = true)]
    pulsar_listener: Option<String>,
    #[arg(long, env = "KAFKA_BOOTSTRAP_SERVERS", hide = true)]
    kafka_bootstrap_servers: Option<String>,
    #[arg(long, env = "KAFKA_SECURITY_PROTOCOL", hide = true)]
    kafka_security_protocol: Option<String>,
    #[arg(long, env = "KAFKA_SASL_MECHANISM", hide = true)]
    kafka_sasl_mechanism: Option<String>,
    #[arg(long, env = "KAFKA_SASL_USERNAME", hide = true)]
    kafka_sasl_username: Option<String>,
    #[arg(long, env = "KAFKA_SASL_PASSWORD", hide = true, hide_env_values = true)]
    kafka_sasl_password: Option<String>,
    #[arg(long, action = ArgAction::SetTrue, hide = true)]
    loki_enabled: bool,
    #[arg(long, action = ArgAction::SetTrue, hide = true)]
    no_loki_enabled: bool,
    #[arg(long, env = "LOKI_URL", hide = true)]
    loki_url: Option<String>,
    #[arg(long, env = "LOKI_USERNAME", hide = true)]
    loki_username: Option<String>,
    #[arg(long, env = "LOKI_PASSWORD", hide = true, hide_env_values = true)]
    loki_password: Option<String>,
    #[arg(long, action = ArgAction::SetTrue, hide = true)]
    metrics: bool,
    #[arg(long, action = ArgAction::SetTrue, hide = true)]
    no_metrics: bool,
    #[arg(long, short = 'P', hide = true)]
    metrics_port: Option<u16>,
    #[arg(long, hide = true)]
    config_type: Option<String>,
}

impl IgnoredFlags {
    /// The names of those that were given; never their values.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--pulsar-host", self.pulsar_host.is_some()),
            ("--pulsar-admin-url", self.pulsar_admin_url.is_some()),
            ("--pulsar-api-key", self.pulsar_api_key.is_some()),
            ("--pulsar-listener", self.pulsar_listener.is_some()),
            ("--kafka-bootstrap-servers", self.kafka_bootstrap_servers.is_some()),
            ("--kafka-security-protocol", self.kafka_security_protocol.is_some()),
            ("--kafka-sasl-mechanism", self.kafka_sasl_mechanism.is_some()),
            ("--kafka-sasl-username", self.kafka_sasl_username.is_some()),
            ("--kafka-sasl-password", self.kafka_sasl_password.is_some()),
            ("--loki-enabled", self.loki_enabled),
            ("--no-loki-enabled", self.no_loki_enabled),
            ("--loki-url", self.loki_url.is_some()),
            ("--loki-username", self.loki_username.is_some()),
            ("--loki-password", self.loki_password.is_some()),
            ("--metrics", self.metrics),
            ("--no-metrics", self.no_metrics),
            ("--metrics-port", self.metrics_port.is_some()),
            ("--config-type", self.config_type.is_some()),
        ];
        all.into_iter().filter_map(|(name, given)| given.then_some(name)).collect()
    }
}

/// The original's words, in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Debug,
    Info,
    #[value(alias = "warn")]
    Warning,
    #[value(alias = "critical")]
    Error,
}

impl LogLevel {
    /// As filters of our log have it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warn",
            Self::Error => "error",
        }
    }
}
