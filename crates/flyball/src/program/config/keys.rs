//! Every key of the configuration: its place in the file and in [`Config`], and what it means. Flag and variable follow from it.
// tidy: table

use crate::program::config::Config;
use crate::program::config::field::Field;

/// One key.
pub(crate) struct Key {
    /// Its place in the file.
    pub(crate) path: &'static str,
    /// What it means.
    pub(crate) help: &'static str,
    /// Variables that others know it by.
    others: &'static [&'static str],
    field: for<'a> fn(&'a mut Config) -> Field<'a>,
}

pub(crate) static KEYS: [Key; 32] = [
    Key::new("namespace", "The one namespace to watch; empty for all", |config| {
        Field::Namespace(&mut config.namespaces)
    }),
    Key::new("namespaces", "The namespaces to watch, all unless given", |config| {
        Field::Namespaces(&mut config.namespaces)
    }),
    Key::new("leaderElection.enabled", "Whether only the replica that holds a Lease works", |config| {
        Field::Bool(&mut config.leader_election.enabled)
    }),
    Key::new("leaderElection.name", "The Lease; the operator's name unless given", |config| {
        Field::Lease(&mut config.leader_election.name)
    }),
    Key::new(
        "leaderElection.namespace",
        "The Lease's namespace; where the operator runs unless given",
        |config| Field::Home(&mut config.leader_election.namespace),
    ),
    Key::new(
        "leaderElection.leaseDuration",
        "How long others wait after the leader's last renewal",
        |config| Field::Duration(&mut config.leader_election.lease_duration),
    ),
    Key::new(
        "leaderElection.renewDeadline",
        "How long the leader tries to renew before it gives up",
        |config| Field::Duration(&mut config.leader_election.renew_deadline),
    ),
    Key::new("leaderElection.retryPeriod", "How long to wait between attempts", |config| {
        Field::Duration(&mut config.leader_election.retry_period)
    }),
    Key::new("metrics.enabled", "Whether metrics are served", |config| {
        Field::Bool(&mut config.metrics.enabled)
    }),
    Key::new("metrics.address", "The address to serve metrics on", |config| {
        Field::Address(&mut config.metrics.address)
    }),
    Key::new("metrics.port", "The port to serve metrics on; 0 for a free one", |config| {
        Field::Port(&mut config.metrics.port)
    }),
    Key::new("metrics.path", "The path of the metrics", |config| Field::Path(&mut config.metrics.path)),
    Key::new(
        "metrics.certFile",
        "The certificate of the metrics port, in PEM; a self-signed one unless given",
        |config| Field::File(&mut config.metrics.cert_file),
    ),
    Key::new("metrics.keyFile", "The key of metrics.certFile, in PEM", |config| {
        Field::File(&mut config.metrics.key_file)
    }),
    Key::new("health.enabled", "Whether probes are answered", |config| {
        Field::Bool(&mut config.health.enabled)
    }),
    Key::new("health.address", "The address to answer probes on", |config| {
        Field::Address(&mut config.health.address)
    }),
    Key::new("health.port", "The port to answer probes on; 0 for a free one", |config| {
        Field::Port(&mut config.health.port)
    }),
    Key::new("health.livenessPath", "The path that answers while the process is to be kept", |config| {
        Field::Path(&mut config.health.liveness_path)
    }),
    Key::new("health.readinessPath", "The path that answers once the caches are listed", |config| {
        Field::Path(&mut config.health.readiness_path)
    }),
    Key::new("webhook.enabled", "Whether webhooks are served, if the operator has any", |config| {
        Field::Bool(&mut config.webhook.enabled)
    }),
    Key::new("webhook.address", "The address to serve webhooks on", |config| {
        Field::Address(&mut config.webhook.address)
    }),
    Key::new("webhook.port", "The port to serve webhooks on; 0 for a free one", |config| {
        Field::Port(&mut config.webhook.port)
    }),
    Key::new(
        "webhook.certDir",
        "The directory with tls.crt and tls.key; the operator makes its own certificates where they are not there",
        |config| Field::Directory(&mut config.webhook.cert_dir),
    ),
    Key::new(
        "webhook.url",
        "Where the API server reaches the webhooks, as in https://127.0.0.1:9443; through a Service unless given",
        |config| Field::Url(&mut config.webhook.url),
    ),
    Key::new(
        "webhook.service",
        "The Service of the webhooks, as in NAMESPACE/NAME; the one that `manifests` prints unless given",
        |config| Field::ServicePlace(&mut config.webhook.service),
    ),
    Key::new("webhook.install", "Whether the operator installs its webhook configurations", |config| {
        Field::Bool(&mut config.webhook.install)
    }),
    Key::new(
        "logging.level",
        "What to log: a level, or levels by target, as in `info,kube=debug`",
        |config| Field::Level(&mut config.logging.level),
    )
    .or(&["RUST_LOG"]),
    Key::new("logging.format", "auto (text on a terminal, JSON elsewhere), json or text", |config| {
        Field::Format(&mut config.logging.format)
    }),
    Key::new(
        "tracing.endpoint",
        "The OpenTelemetry collector that traces are sent to by OTLP over HTTP; needs the feature `otel`",
        |config| Field::Collector(&mut config.tracing.endpoint),
    )
    .or(&["OTEL_EXPORTER_OTLP_ENDPOINT"]),
    Key::new("tracing.serviceName", "What traces call the operator; its name unless given", |config| {
        Field::Service(&mut config.tracing.service_name)
    })
    .or(&["OTEL_SERVICE_NAME"]),
    Key::new(
        "shutdown.grace",
        "How long reconciles may take to end; 30s unless the operator says otherwise",
        |config| Field::GraceTime(&mut config.shutdown.grace),
    ),
    Key::new(
        "crds.install",
        "Who installs the CustomResourceDefinitions: leader, always (each replica) or never",
        |config| Field::Install(&mut config.crds.install),
    ),
];

impl Key {
    const fn new(path: &'static str, help: &'static str, field: for<'a> fn(&'a mut Config) -> Field<'a>) -> Key {
        Key { path, help, others: &[], field }
    }

    const fn or(mut self, others: &'static [&'static str]) -> Key {
        self.others = others;
        self
    }

    /// Its flag, without dashes.
    pub(crate) fn flag(&self) -> String {
        spelled(self.path, '-')
    }

    /// Its environment variables; the first that is set counts.
    pub(crate) fn variables(&self) -> Vec<String> {
        let own = format!("FLYBALL_{}", spelled(self.path, '_').to_uppercase());
        std::iter::once(own).chain(self.others.iter().map(|other| other.to_string())).collect()
    }

    /// What stands for its value in the help.
    pub(crate) fn value(&self) -> &'static str {
        (self.field)(&mut Config::default()).value()
    }

    /// Reads it from text.
    pub(crate) fn set(&self, config: &mut Config, text: &str) -> Result<(), String> {
        (self.field)(config).read(text)
    }

    /// What it is unless set; nothing where that is nothing.
    pub(crate) fn default(&self) -> String {
        (self.field)(&mut Config::default()).show()
    }
}

/// `leaderElection.leaseDuration` with `between` before each capital and for each dot.
pub(super) fn spelled(path: &str, between: char) -> String {
    let mut spelled = String::new();
    for c in path.chars() {
        match c {
            '.' => spelled.push(between),
            c if c.is_uppercase() => spelled.extend([between, c.to_ascii_lowercase()]),
            c => spelled.push(c),
        }
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_variables_are_spelled_as_their_keys() {
        let key = |path: &str| KEYS.iter().find(|key| key.path == path).unwrap();
        let (lease, level) = (key("leaderElection.leaseDuration"), key("logging.level"));
        assert_eq!(lease.flag(), "leader-election-lease-duration");
        assert_eq!(lease.variables(), ["FLYBALL_LEADER_ELECTION_LEASE_DURATION"]);
        assert_eq!(level.variables(), ["FLYBALL_LOGGING_LEVEL", "RUST_LOG"]);
    }

    #[test]
    fn what_is_shown_is_read_back_as_the_same() {
        let mut config = Config::default();
        for key in &KEYS {
            key.set(&mut config, &key.default()).unwrap();
        }
        assert_eq!(config, Config::default());
    }
}
