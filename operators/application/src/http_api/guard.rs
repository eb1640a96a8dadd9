//! Refuses requests that a web page of another site may have sent. The API has no authentication: a browser on the same
//! machine reaches it, so `Host` stops DNS rebinding and `Origin` stops cross-site requests.

use super::refusal::Refusal;
use axum::{
    body::Body,
    extract::{Request, State},
    http::{
        HeaderMap, Uri,
        header::{HOST, ORIGIN},
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::{net::IpAddr, sync::Arc};

/// The hosts that a request may name, beside loopback addresses and `localhost`.
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// Allows these names and addresses, without a port.
    pub fn new(hosts: &[String]) -> AllowedHosts {
        AllowedHosts(hosts.iter().map(|host| host.to_ascii_lowercase()).collect())
    }

    fn allows(&self, authority: &Authority) -> bool {
        let host = authority.host().to_ascii_lowercase();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let loopback = || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        host == "localhost" || loopback() || self.0.iter().any(|allowed| allowed == host)
    }
}

/// Passes a request on if its `Host` is allowed and its `Origin`, if any, is the same.
pub async fn check(State(hosts): State<Arc<AllowedHosts>>, request: Request<Body>, next: Next) -> Response {
    match refusal(&hosts, request.uri(), request.headers()) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(hosts: &AllowedHosts, uri: &Uri, headers: &HeaderMap) -> Option<Refusal> {
    let mut named = headers.get_all(HOST).iter();
    let host = match (named.next(), named.next()) {
        (Some(host), None) => Authority::try_from(host.as_bytes()).ok(),
        _ => None,
    };
    let Some(host) = host else {
        return Some(Refusal::bad_request("expected exactly one valid Host header"));
    };
    let target = uri.authority().unwrap_or(&host);
    if let Some(host) = [&host, target].into_iter().find(|host| !hosts.allows(host)) {
        let host = host.host();
        return Some(Refusal::forbidden(&format!("host {host:?} is not allowed: add it to ALLOWED_HOSTS")));
    }
    let foreign = headers.get_all(ORIGIN).iter().find(|origin| !is_same_origin(origin.as_bytes(), &host))?;
    Some(Refusal::forbidden(&format!("cross-origin request from {foreign:?} is not allowed")))
}

fn is_same_origin(origin: &[u8], host: &Authority) -> bool {
    let uri = Uri::try_from(origin).ok();
    uri.and_then(|uri| uri.into_parts().authority).is_some_and(|authority| authority == *host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(uri: &str, headers: &[(&str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<axum::http::HeaderName>().unwrap(), value.parse().unwrap());
        }
        let hosts = AllowedHosts::new(&["Apps.Example.dev".into(), "192.0.2.7".into()]);
        refusal(&hosts, &uri.parse().unwrap(), &map).is_some()
    }

    #[test]
    fn only_loopback_localhost_and_configured_hosts_are_served() {
        for host in [
            "localhost",
            "LOCALHOST:3000",
            "127.0.0.1:3000",
            "127.8.8.8",
            "[::1]:3000",
            "apps.example.dev",
            "192.0.2.7:80",
        ] {
            assert!(!is_refused("/", &[("host", host)]), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "192.0.2.8",
            "",
            "a b",
            "127.0.0.1.evil.example",
        ] {
            assert!(is_refused("/", &[("host", host)]), "{host}");
        }
        assert!(is_refused("/", &[]), "none");
        assert!(is_refused("/", &[("host", "localhost"), ("host", "localhost")]), "two");
        assert!(is_refused("http://evil.example/", &[("host", "localhost")]), "absolute form");
    }

    #[test]
    fn only_the_same_origin_is_served() {
        let host = ("host", "localhost:3000");
        assert!(!is_refused("/", &[host, ("origin", "http://localhost:3000")]));
        for origin in [
            "http://evil.example",
            "http://localhost:8080",
            "http://localhost",
            "null",
            "localhost:3000x",
        ] {
            assert!(is_refused("/", &[host, ("origin", origin)]), "{origin}");
        }
    }
}
