//! How an operator is to be run: what its flags, its environment and a YAML file say, in this order, over the defaults.

pub(crate) mod controllers;
mod field;
mod keys;
mod layers;

pub use crate::engine::crds::CrdInstall;
pub use controllers::{BackoffConfig, ControllerConfig};

pub(crate) use keys::{KEYS, Key};
pub(crate) use layers::{Layers, is_section};

use crate::declare::operator::{HEALTH_PORT, METRICS_PORT, WEBHOOK_PORT};
use crate::leader::{LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD};
use crate::webhook::endpoint::Endpoint;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

/// The configuration of an operator that runs as a program.
///
/// In YAML its keys are these fields in camelCase, and `namespace` for a single one of `namespaces`; `apiVersion:
/// flyball.dev/v1` and `kind: OperatorConfig` may stand above them. A duration is written `15s` or `1m30s`, or as a number of
/// seconds. Every key is also a flag and an environment variable: `leaderElection.leaseDuration` is
/// `--leader-election-lease-duration` and `FLYBALL_LEADER_ELECTION_LEASE_DURATION`. Options of a controller, as in
/// `controllers.greeting.concurrency`, are `--controller greeting.concurrency=4` and
/// `FLYBALL_CONTROLLERS_GREETING_CONCURRENCY=4`. Flags override environment variables, which override the file, which overrides
/// what the operator declares.
///
/// ```
/// let config = flyball::Config::from_yaml("controllers: { greeting: { concurrency: 4, backoff: { max: 1m } } }")?;
/// assert_eq!(config.controllers["greeting"].concurrency, Some(4));
/// # Ok::<_, flyball::config::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The namespaces whose objects are watched; empty for all, or for those that the operator itself names.
    pub namespaces: Vec<String>,
    /// Which of several replicas works.
    pub leader_election: LeaderElection,
    /// Where metrics are served.
    pub metrics: Metrics,
    /// Where probes are answered.
    pub health: Health,
    /// Where webhooks are served.
    pub webhook: Webhook,
    /// What is logged, and how.
    pub logging: Logging,
    /// Where traces are sent.
    pub tracing: Tracing,
    /// How the operator ends.
    pub shutdown: Shutdown,
    /// Who installs the operator's kinds.
    pub crds: Crds,
    /// Options of single controllers, by name. An operator without a controller of that name refuses to start.
    pub controllers: BTreeMap<String, ControllerConfig>,
}

/// Who installs the operator's kinds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crds {
    /// Which replicas install them.
    pub install: CrdInstall,
}

/// How the operator ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shutdown {
    /// How long reconciles may take to end; what the operator declares unless set.
    pub grace: Option<Duration>,
}

/// Which of several replicas works: the one that holds a Lease.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderElection {
    /// Whether a Lease is needed to work; without it every replica works.
    pub enabled: bool,
    /// The Lease's name; the operator's unless set.
    pub name: Option<String>,
    /// The Lease's namespace; the one that the operator runs in unless set.
    pub namespace: Option<String>,
    /// How long others wait after the leader's last renewal.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// How long to wait between attempts.
    pub retry_period: Duration,
}

/// Where metrics are served.
///
/// On an address that other machines reach, a client needs a token that the API server knows, and the port speaks TLS: with the
/// certificate of `cert_file`, or with a self-signed one that is made at each start and renewed. On a loopback address it
/// asks for no token, and speaks HTTP unless a certificate is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// Whether they are served.
    pub enabled: bool,
    /// The address to listen on.
    pub address: IpAddr,
    /// The port to listen on; 0 for a free one.
    pub port: u16,
    /// The path they are served under.
    pub path: String,
    /// The file with the port's certificate and its chain, in PEM. It is read again when it changes.
    pub cert_file: Option<String>,
    /// The file with the certificate's key, in PEM.
    pub key_file: Option<String>,
}

/// Where probes are answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// Whether they are answered.
    pub enabled: bool,
    /// The address to listen on.
    pub address: IpAddr,
    /// The port to listen on; 0 for a free one.
    pub port: u16,
    /// The path that answers while the process is to be kept.
    pub liveness_path: String,
    /// The path that answers once caches are listed.
    pub readiness_path: String,
}

/// Where webhooks are served, if the operator declares any.
///
/// The port speaks TLS, with the files `tls.crt` and `tls.key` of `cert_dir` if they are there when the operator starts, or with
/// certificates of its own: an authority in the Secret `<operator>-webhook-ca`, which the replicas share.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// Whether they are served.
    pub enabled: bool,
    /// The address to listen on.
    pub address: IpAddr,
    /// The port to listen on; 0 for a free one.
    pub port: u16,
    /// The directory with the port's certificate, its key and, as `ca.crt`, its authority. It is read again when it changes.
    pub cert_dir: String,
    /// Where the API server reaches the port, as in `https://127.0.0.1:9443`; through a Service unless set.
    pub url: Option<String>,
    /// The Service, as in `cache-system/cache-webhook`; `<operator>-webhook` where the operator runs unless set.
    pub service: Option<String>,
    /// Whether the operator installs its webhook configurations. It adds its authority to them either way.
    pub install: bool,
}

impl Webhook {
    /// Where the API server reaches the webhooks, if the configuration says.
    pub(crate) fn endpoint(&self) -> Option<Endpoint> {
        let url = self.url.as_ref().map(|url| Endpoint::Url(url.trim_end_matches('/').to_owned()));
        let service = self.service.as_ref().and_then(|service| service.split_once('/'));
        let service =
            service.map(|(namespace, name)| Endpoint::Service { namespace: namespace.into(), name: name.into() });
        url.or(service)
    }
}

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Logging {
    /// A level, or levels by target, as in `info,kube=debug`.
    pub level: String,
    /// The form of each line.
    pub format: LogFormat,
}

/// Where traces of reconciles are sent, by OTLP over HTTP. It needs the feature `otel`.
///
/// OpenTelemetry's own variables say the rest: `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`,
/// `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tracing {
    /// The collector, as in `http://collector:4318`; nothing is sent unless set.
    pub endpoint: Option<String>,
    /// What traces call the operator; its name unless set.
    pub service_name: Option<String>,
}

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// One JSON object a line.
    Json,
    /// A line to read.
    Text,
}

/// What is wrong with a configuration; each mistake names its key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .mistakes.join("\n"))]
pub struct ConfigError {
    mistakes: Vec<String>,
}

impl Config {
    /// Reads a YAML file's text over the defaults.
    pub fn from_yaml(text: &str) -> Result<Config, ConfigError> {
        let mut layers = Layers::default();
        layers.yaml("", text);
        layers.finish().map(|(config, _)| config)
    }
}

impl Default for LeaderElection {
    /// client-go's times.
    fn default() -> LeaderElection {
        LeaderElection {
            enabled: true,
            name: None,
            namespace: None,
            lease_duration: LEASE_DURATION,
            renew_deadline: RENEW_DEADLINE,
            retry_period: RETRY_PERIOD,
        }
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            enabled: true,
            address: Ipv4Addr::UNSPECIFIED.into(),
            port: METRICS_PORT,
            path: "/metrics".into(),
            cert_file: None,
            key_file: None,
        }
    }
}

impl Default for Health {
    fn default() -> Health {
        Health {
            enabled: true,
            address: Ipv4Addr::UNSPECIFIED.into(),
            port: HEALTH_PORT,
            liveness_path: "/healthz".into(),
            readiness_path: "/readyz".into(),
        }
    }
}

impl Default for Webhook {
    /// controller-runtime's port and directory.
    fn default() -> Webhook {
        Webhook {
            enabled: true,
            address: Ipv4Addr::UNSPECIFIED.into(),
            port: WEBHOOK_PORT,
            cert_dir: "/tmp/k8s-webhook-server/serving-certs".into(),
            url: None,
            service: None,
            install: true,
        }
    }
}

impl Default for Logging {
    fn default() -> Logging {
        Logging { level: "info".into(), format: LogFormat::Auto }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        Config::from_yaml(text).map_or_else(|error| error.to_string(), |config| format!("accepted: {config:?}"))
    }

    #[test]
    fn a_file_with_every_section_is_read() {
        let config = Config::from_yaml(
            "apiVersion: flyball.dev/v1\nkind: OperatorConfig\nnamespaces: [a, b]\n\
             leaderElection: { enabled: true, namespace: kube-system, name: lock, leaseDuration: 30, \
             renewDeadline: 20s, retryPeriod: 1.5s }\n\
             metrics: { enabled: true, port: 9090, path: /m }\nhealth: { port: 9091, livenessPath: /l, readinessPath: /r }\n\
             logging: { level: debug, format: json }\ncrds: { install: never }\n",
        )
        .unwrap();
        assert_eq!(config.namespaces, ["a", "b"]);
        let election = &config.leader_election;
        assert_eq!(
            (election.name.as_deref(), election.namespace.as_deref()),
            (Some("lock"), Some("kube-system"))
        );
        let seconds = [election.lease_duration, election.renew_deadline, election.retry_period];
        assert_eq!(seconds.map(|time| time.as_secs_f64()), [30.0, 20.0, 1.5]);
        assert_eq!((config.metrics.port, config.metrics.path.as_str()), (9090, "/m"));
        let health = &config.health;
        let paths = (health.liveness_path.as_str(), health.readiness_path.as_str());
        assert_eq!((health.port, paths), (9091, ("/l", "/r")));
        assert_eq!((config.logging.level.as_str(), config.logging.format), ("debug", LogFormat::Json));
        assert_eq!(config.crds.install, CrdInstall::Never);
    }

    #[test]
    fn an_absent_key_has_its_default() {
        let config = Config::from_yaml("leaderElection: { leaseDuration: 30 }\nhealth: { livenessPath: /l }").unwrap();
        assert_eq!(config.leader_election.lease_duration, Duration::from_secs(30));
        assert_eq!((config.health.liveness_path.as_str(), config.metrics.port), ("/l", 8080));
        assert_eq!(Config::from_yaml("").unwrap(), Config::default());
        assert!(Config::from_yaml("namespace: ''").unwrap().namespaces.is_empty());
    }

    #[test]
    fn a_retry_period_longer_than_the_renew_deadline_is_refused() {
        let config =
            Config::from_yaml("leaderElection: { renewDeadline: 20s, leaseDuration: 30s, retryPeriod: 1m30s }");
        assert_eq!(
            config.unwrap_err().to_string(),
            "leaderElection.retryPeriod: must be shorter than renewDeadline, 20s"
        );
    }

    #[test]
    fn a_mistake_names_its_key() {
        for (text, expected) in [
            (
                "leaderElection: { leaseDuration: soon }",
                "leaderElection.leaseDuration: invalid duration `soon`: write 15s, 1m30s, or a number of seconds",
            ),
            (
                "leaderElection: { leaseDurations: 15s }",
                "leaderElection.leaseDurations: no such key; leaderElection has enabled, name, namespace, leaseDuration, \
                 renewDeadline, retryPeriod",
            ),
            (
                "leaderElections: {}",
                "leaderElections: no such key; there are namespace, namespaces, leaderElection, metrics, health, webhook, \
                 logging, tracing, shutdown, crds, controllers",
            ),
            ("metrics: 8080", "metrics: has keys of its own, not a value"),
            ("metrics: { port: { number: 1 } }", "metrics.port: takes a value, not keys of its own"),
            ("metrics: { port: 70000 }", "metrics.port: invalid port `70000`: expected 0-65535"),
            ("metrics: { path: m }", "metrics.path: invalid path `m`: it must begin with a slash"),
            ("metrics: { enabled: maybe }", "metrics.enabled: `maybe` is neither true nor false"),
            ("health: { address: here }", "health.address: invalid IP address `here`"),
            (
                "logging: { format: xml }",
                "logging.format: invalid format `xml`: expected auto, json or text",
            ),
            (
                "logging: { level: a=b=c }",
                "logging.level: invalid level `a=b=c`: expected error, warn, info, debug, trace, or `info,kube=debug`",
            ),
            ("namespace: a\nnamespaces: [b]", "namespaces: `namespace` is given too; give one of them"),
            (
                "namespace: Prod",
                "namespace: invalid namespace `Prod`: expected lower-case letters, digits and dashes, 63 at most",
            ),
            (
                "leaderElection: { name: a..b }",
                "leaderElection.name: invalid Lease name `a..b`: expected lower-case letters, digits, dashes and dots, 253 at most",
            ),
            (
                "webhook: { url: 'http://a' }",
                "webhook.url: invalid URL `http://a`: write https://127.0.0.1:9443, without a path",
            ),
            (
                "webhook: { service: cache }",
                "webhook.service: invalid Service `cache`: write NAMESPACE/NAME",
            ),
            ("kind: Deployment", "kind: `Deployment` is no OperatorConfig"),
            (
                "leaderElection: { retryPeriod: 0s }",
                "leaderElection.retryPeriod: must be greater than zero",
            ),
            (
                "leaderElection: { renewDeadline: 15s }",
                "leaderElection.renewDeadline: must be shorter than leaseDuration, 15s",
            ),
        ] {
            assert_eq!(mistake(text), expected);
        }
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        assert_eq!(mistake("metrics: { port: x }\nlogging: { colour: red }").lines().count(), 2);
        assert!(mistake("a: [").contains("no YAML"), "{}", mistake("a: ["));
        let twice = mistake("metrics: { port: 1 }\nmetrics: { port: 2 }");
        assert_eq!(twice, "no YAML: line 2 column 1: duplicate mapping key: metrics");
        let two = mistake("---\nmetrics: {}\n---\nhealth: {}");
        assert_eq!(two, "no YAML: line 4 column 1: multiple YAML documents detected");
    }
}
