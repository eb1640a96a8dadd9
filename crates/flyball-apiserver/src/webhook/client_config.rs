//! The address of a webhook and the authority that signs its certificate, as `clientConfig` says.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use serde_json::Value;
use std::time::Duration;

/// The port of a Service, unless its reference names another.
const DEFAULT_PORT: u16 = 443;

/// A `WebhookClientConfig`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientConfig {
    pub(super) target: Target,
    /// The certificates of `caBundle`, in PEM; empty if there are none.
    pub(super) ca_bundle: Vec<u8>,
}

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// At a URL: its host and port, and its path.
    Url { authority: String, path: String },
    /// Behind a Service.
    Service {
        namespace: String,
        name: String,
        port: u16,
        path: String,
    },
}

impl ClientConfig {
    /// Reads a `clientConfig`.
    ///
    /// # Errors
    /// Why there is no address in it.
    pub fn read(config: &Value) -> Result<ClientConfig, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let bundle = text(&config["caBundle"]);
        let ca_bundle = STANDARD.decode(&bundle).map_err(|error| format!("invalid caBundle: {error}"))?;
        let service = &config["service"];
        let target = match service.is_object() {
            true => Target::Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(DEFAULT_PORT),
                path: clean(service["path"].as_str().unwrap_or_default()),
            },
            false => url(config["url"].as_str().unwrap_or_default())?,
        };
        Ok(ClientConfig { target, ca_bundle })
    }

    /// The URL that is called, with the time until the caller gives up.
    pub(super) fn url(&self, timeout: Duration) -> String {
        let (authority, path) = match &self.target {
            Target::Url { authority, path } => (authority.clone(), path),
            Target::Service { namespace, name, port, path } => (format!("{name}.{namespace}.svc:{port}"), path),
        };
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        format!("https://{authority}{path}?timeout={seconds}s")
    }

    /// The name that the certificate of the webhook has to be valid for.
    pub(super) fn server_name(&self) -> String {
        match &self.target {
            Target::Url { authority, .. } => {
                let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
                host.trim_matches(['[', ']']).to_owned()
            }
            Target::Service { namespace, name, .. } => format!("{name}.{namespace}.svc"),
        }
    }

    /// Whether HTTP/2 is offered: Go's client balances HTTP/1.1 only, so that upstream keeps HTTP/2 to the own machine.
    pub(super) fn offers_http2(&self) -> bool {
        let name = self.server_name();
        let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        matches!(self.target, Target::Url { .. }) && (is_loopback || name.eq_ignore_ascii_case("localhost"))
    }
}

fn url(url: &str) -> Result<Target, String> {
    if url.is_empty() {
        return Err("webhook configuration must have either service or URL".to_owned());
    }
    let uri: Uri = url.parse().map_err(|error| format!("Unparsable URL: {error}"))?;
    let authority = uri.authority().map(|authority| authority.to_string());
    let authority = authority.filter(|_| uri.scheme_str() == Some("https"));
    Ok(Target::Url {
        authority: authority.ok_or_else(|| format!("Unparsable URL: {url:?} is not of the form https://host/path"))?,
        path: clean(uri.path()),
    })
}

/// A path as Go's `path.Join` cleans it, in so far as valid configurations need it.
fn clean(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty() && *segment != ".").collect();
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_url_has_the_path_and_the_timeout_in_whole_seconds() {
        let service = |path: &str| json!({"service": {"namespace": "n", "name": "s", "path": path}});
        for (config, timeout, expected) in [
            (service("/a"), 10_000, "https://s.n.svc:443/a?timeout=10s"),
            (service(""), 1_001, "https://s.n.svc:443/?timeout=2s"),
            (json!({"url": "https://h.dev:8443/a/b/"}), 5_000, "https://h.dev:8443/a/b?timeout=5s"),
            (json!({"url": "https://h.dev"}), 5_000, "https://h.dev/?timeout=5s"),
        ] {
            let read = ClientConfig::read(&config).unwrap();
            assert_eq!(read.url(Duration::from_millis(timeout)), expected);
        }
        for invalid in [
            json!({}),
            json!({"url": "http://h.dev"}),
            json!({"url": "https://h.dev", "caBundle": "%"}),
        ] {
            assert!(ClientConfig::read(&invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn the_certificate_is_for_the_host_or_for_the_service() {
        let name = |config: Value| ClientConfig::read(&config).unwrap().server_name();
        assert_eq!(name(json!({"url": "https://[::1]:8443/a"})), "::1");
        assert_eq!(name(json!({"url": "https://127.0.0.1/a"})), "127.0.0.1");
        assert_eq!(name(json!({"service": {"namespace": "n", "name": "s"}})), "s.n.svc");
    }
}
