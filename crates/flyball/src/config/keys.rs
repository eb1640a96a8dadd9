//! Every key of the configuration: its place in the file, its flag, its variable, what it means and how it is read.
// tidy: table

use super::{Config, LogFormat};
use crate::{operator::is_label, trace};
use http::Uri;
use jiff::SignedDuration;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// One key.
pub(crate) struct Key {
    /// Its place in the file.
    pub(crate) path: &'static str,
    /// Its flag, without dashes.
    pub(crate) flag: &'static str,
    /// Its environment variables; the first that is set counts.
    pub(crate) variables: &'static [&'static str],
    /// What stands for its value in the help.
    pub(crate) value: &'static str,
    /// What it means.
    pub(crate) help: &'static str,
    /// Reads it from text.
    pub(crate) set: fn(&mut Config, &str) -> Result<(), String>,
    /// Shows it, or nothing where it is not set.
    pub(crate) get: fn(&Config) -> String,
}

pub(crate) static KEYS: [Key; 21] = [
    Key {
        path: "namespace",
        flag: "namespace",
        variables: &["FLYBALL_NAMESPACE"],
        value: "NAMESPACE",
        help: "The one namespace to watch; empty for all",
        set: |config, text| put(&mut config.namespaces, namespaces(text)),
        get: |_| String::new(),
    },
    Key {
        path: "namespaces",
        flag: "namespaces",
        variables: &["FLYBALL_NAMESPACES"],
        value: "NAMESPACE,…",
        help: "The namespaces to watch, all unless given",
        set: |config, text| put(&mut config.namespaces, namespaces(text)),
        get: |config| config.namespaces.join(","),
    },
    Key {
        path: "leaderElection.enabled",
        flag: "leader-election-enabled",
        variables: &["FLYBALL_LEADER_ELECTION_ENABLED"],
        value: "BOOL",
        help: "Whether only the replica that holds a Lease works",
        set: |config, text| put(&mut config.leader_election.enabled, boolean(text)),
        get: |config| config.leader_election.enabled.to_string(),
    },
    Key {
        path: "leaderElection.name",
        flag: "leader-election-name",
        variables: &["FLYBALL_LEADER_ELECTION_NAME"],
        value: "NAME",
        help: "The Lease; the operator's name unless given",
        set: |config, text| put(&mut config.leader_election.name, optional(text)),
        get: |config| config.leader_election.name.clone().unwrap_or_default(),
    },
    Key {
        path: "leaderElection.namespace",
        flag: "leader-election-namespace",
        variables: &["FLYBALL_LEADER_ELECTION_NAMESPACE"],
        value: "NAMESPACE",
        help: "The Lease's namespace; where the operator runs unless given",
        set: |config, text| put(&mut config.leader_election.namespace, optional(text)),
        get: |config| config.leader_election.namespace.clone().unwrap_or_default(),
    },
    Key {
        path: "leaderElection.leaseDuration",
        flag: "leader-election-lease-duration",
        variables: &["FLYBALL_LEADER_ELECTION_LEASE_DURATION"],
        value: "DURATION",
        help: "How long others wait after the leader's last renewal",
        set: |config, text| put(&mut config.leader_election.lease_duration, duration(text)),
        get: |config| show(config.leader_election.lease_duration),
    },
    Key {
        path: "leaderElection.renewDeadline",
        flag: "leader-election-renew-deadline",
        variables: &["FLYBALL_LEADER_ELECTION_RENEW_DEADLINE"],
        value: "DURATION",
        help: "How long the leader tries to renew before it gives up",
        set: |config, text| put(&mut config.leader_election.renew_deadline, duration(text)),
        get: |config| show(config.leader_election.renew_deadline),
    },
    Key {
        path: "leaderElection.retryPeriod",
        flag: "leader-election-retry-period",
        variables: &["FLYBALL_LEADER_ELECTION_RETRY_PERIOD"],
        value: "DURATION",
        help: "How long to wait between attempts",
        set: |config, text| put(&mut config.leader_election.retry_period, duration(text)),
        get: |config| show(config.leader_election.retry_period),
    },
    Key {
        path: "metrics.enabled",
        flag: "metrics-enabled",
        variables: &["FLYBALL_METRICS_ENABLED"],
        value: "BOOL",
        help: "Whether metrics are served",
        set: |config, text| put(&mut config.metrics.enabled, boolean(text)),
        get: |config| config.metrics.enabled.to_string(),
    },
    Key {
        path: "metrics.address",
        flag: "metrics-address",
        variables: &["FLYBALL_METRICS_ADDRESS"],
        value: "ADDRESS",
        help: "The address to serve metrics on",
        set: |config, text| put(&mut config.metrics.address, address(text)),
        get: |config| config.metrics.address.to_string(),
    },
    Key {
        path: "metrics.port",
        flag: "metrics-port",
        variables: &["FLYBALL_METRICS_PORT"],
        value: "PORT",
        help: "The port to serve metrics on; 0 for a free one",
        set: |config, text| put(&mut config.metrics.port, port(text)),
        get: |config| config.metrics.port.to_string(),
    },
    Key {
        path: "metrics.path",
        flag: "metrics-path",
        variables: &["FLYBALL_METRICS_PATH"],
        value: "PATH",
        help: "The path of the metrics",
        set: |config, text| put(&mut config.metrics.path, path(text)),
        get: |config| config.metrics.path.clone(),
    },
    Key {
        path: "health.enabled",
        flag: "health-enabled",
        variables: &["FLYBALL_HEALTH_ENABLED"],
        value: "BOOL",
        help: "Whether probes are answered",
        set: |config, text| put(&mut config.health.enabled, boolean(text)),
        get: |config| config.health.enabled.to_string(),
    },
    Key {
        path: "health.address",
        flag: "health-address",
        variables: &["FLYBALL_HEALTH_ADDRESS"],
        value: "ADDRESS",
        help: "The address to answer probes on",
        set: |config, text| put(&mut config.health.address, address(text)),
        get: |config| config.health.address.to_string(),
    },
    Key {
        path: "health.port",
        flag: "health-port",
        variables: &["FLYBALL_HEALTH_PORT"],
        value: "PORT",
        help: "The port to answer probes on; 0 for a free one",
        set: |config, text| put(&mut config.health.port, port(text)),
        get: |config| config.health.port.to_string(),
    },
    Key {
        path: "health.livenessPath",
        flag: "health-liveness-path",
        variables: &["FLYBALL_HEALTH_LIVENESS_PATH"],
        value: "PATH",
        help: "The path that answers while the process is to be kept",
        set: |config, text| put(&mut config.health.liveness_path, path(text)),
        get: |config| config.health.liveness_path.clone(),
    },
    Key {
        path: "health.readinessPath",
        flag: "health-readiness-path",
        variables: &["FLYBALL_HEALTH_READINESS_PATH"],
        value: "PATH",
        help: "The path that answers once the caches are listed",
        set: |config, text| put(&mut config.health.readiness_path, path(text)),
        get: |config| config.health.readiness_path.clone(),
    },
    Key {
        path: "logging.level",
        flag: "logging-level",
        variables: &["FLYBALL_LOGGING_LEVEL", "RUST_LOG"],
        value: "LEVEL",
        help: "What to log: a level, or levels by target, as in `info,kube=debug`",
        set: |config, text| put(&mut config.logging.level, level(text)),
        get: |config| config.logging.level.clone(),
    },
    Key {
        path: "logging.format",
        flag: "logging-format",
        variables: &["FLYBALL_LOGGING_FORMAT"],
        value: "FORMAT",
        help: "auto (text on a terminal, JSON elsewhere), json or text",
        set: |config, text| put(&mut config.logging.format, format(text)),
        get: |config| shown_format(config.logging.format).into(),
    },
    Key {
        path: "tracing.endpoint",
        flag: "tracing-endpoint",
        variables: &["FLYBALL_TRACING_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"],
        value: "URL",
        help: "The OpenTelemetry collector that traces are sent to by OTLP over HTTP; needs the feature `otel`",
        set: |config, text| put(&mut config.tracing.endpoint, endpoint(text, trace::EXPORTED)),
        get: |config| config.tracing.endpoint.clone().unwrap_or_default(),
    },
    Key {
        path: "tracing.serviceName",
        flag: "tracing-service-name",
        variables: &["FLYBALL_TRACING_SERVICE_NAME", "OTEL_SERVICE_NAME"],
        value: "NAME",
        help: "What traces call the operator; its name unless given",
        set: |config, text| put(&mut config.tracing.service_name, service_name(text, trace::EXPORTED)),
        get: |config| config.tracing.service_name.clone().unwrap_or_default(),
    },
];

fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

fn namespaces(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let check = |name: &str| match is_label(name) {
        true => Ok(name.to_owned()),
        false => Err(format!("`{name}` is no namespace: lower-case letters, digits and dashes, 63 at most")),
    };
    names.map(check).collect()
}

fn optional(text: &str) -> Result<Option<String>, String> {
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

fn boolean(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("`{text}` is neither true nor false"))
}

fn address(text: &str) -> Result<std::net::IpAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is no IP address"))
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("`{text}` is no port: a number from 0 to 65535"))
}

fn path(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is no path: it begins with a slash"))
    }
}

/// A duration as Go writes it, or a number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    let written = || Duration::try_from(text.parse::<SignedDuration>().ok()?).ok();
    let duration = seconds.or_else(written);
    duration.ok_or_else(|| format!("`{text}` is no duration: write 15s, 1m30s, or a number of seconds"))
}

/// A duration as Go writes it: `1m30s`.
pub(super) fn show(duration: Duration) -> String {
    let printer = jiff::fmt::friendly::SpanPrinter::new();
    SignedDuration::try_from(duration)
        .map_or_else(|_| "forever".into(), |duration| printer.duration_to_string(&duration).replace(' ', ""))
}

fn level(text: &str) -> Result<String, String> {
    let examples = "error, warn, info, debug, trace, or `info,kube=debug`";
    let filter = EnvFilter::try_new(text).map_err(|_| format!("`{text}` is no level: {examples}"));
    filter.map(|_| text.to_owned())
}

fn format(text: &str) -> Result<LogFormat, String> {
    match text {
        "auto" => Ok(LogFormat::Auto),
        "json" => Ok(LogFormat::Json),
        "text" => Ok(LogFormat::Text),
        _ => Err(format!("`{text}` is no format: auto, json or text")),
    }
}

/// A collector's address, where this build exports.
fn endpoint(text: &str, exported: bool) -> Result<Option<String>, String> {
    let Some(address) = service_name(text, exported)? else {
        return Ok(None);
    };
    let uri: Option<Uri> = address.parse().ok();
    let known = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    match uri.filter(known) {
        Some(_) => Ok(Some(address)),
        None => Err(format!("`{text}` is no address of a collector: write http://collector:4318")),
    }
}

/// Whatever is given, where this build exports.
fn service_name(text: &str, exported: bool) -> Result<Option<String>, String> {
    match optional(text)? {
        Some(_) if !exported => {
            Err("this program was built without traces: build it with the feature `otel` of flyball \
                                     (`cargo add flyball --features otel`), or leave this out"
                .into())
        }
        given => Ok(given),
    }
}

fn shown_format(format: LogFormat) -> &'static str {
    match format {
        LogFormat::Auto => "auto",
        LogFormat::Json => "json",
        LogFormat::Text => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `leaderElection.leaseDuration` with `between` before each capital and dot.
    fn spelled(path: &str, between: char) -> String {
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

    #[test]
    fn flags_and_variables_are_spelled_as_their_keys() {
        for key in &KEYS {
            assert_eq!(key.flag, spelled(key.path, '-'));
            assert_eq!(key.variables[0], format!("FLYBALL_{}", spelled(key.path, '_').to_uppercase()));
        }
    }

    #[test]
    fn what_is_shown_is_read_back_as_the_same() {
        let mut config = Config::default();
        for key in &KEYS {
            (key.set)(&mut config, &(key.get)(&Config::default())).unwrap();
        }
        assert_eq!(config, Config::default());
    }

    #[test]
    fn a_build_without_traces_refuses_to_be_told_where_they_go() {
        for refused in [endpoint("http://collector:4318", false), service_name("ada", false)] {
            assert!(refused.unwrap_err().contains("`cargo add flyball --features otel`"));
        }
        assert_eq!((endpoint("", false), service_name("", false)), (Ok(None), Ok(None)));
        assert_eq!(endpoint("http://collector:4318", true), Ok(Some("http://collector:4318".into())));
        for text in ["collector:4318", "collector", "grpc://collector:4317", "http://"] {
            assert!(endpoint(text, true).unwrap_err().contains("is no address of a collector"), "{text}");
        }
    }

    #[test]
    fn durations_are_go_s_or_seconds() {
        for (text, millis) in [
            ("15", 15_000),
            ("15s", 15_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("1.5s", 1_500),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "-1s", "s", "1 fortnight"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(show(Duration::from_secs(90)), "1m30s");
    }
}
