//! The ports of an operator: the only tests here that open sockets, on loopback.

use crate::world::World;
use flyball::{Action, Config, Context, Controller, Operator, Result, Running};
use k8s_openapi::api::core::v1::ConfigMap;
use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

async fn idle(_: Arc<ConfigMap>, _: Context) -> Result {
    Ok(Action::await_change())
}

/// Any ports that are free, but this one.
fn config(what: &str, port: u16) -> Config {
    let port_of = |part: &str| if part == what { port } else { 0 };
    let part = |part: &str| format!("{part}: {{ address: 127.0.0.1, port: {} }}\n", port_of(part));
    let text = [
        "leaderElection: { enabled: false }\n",
        &part("health"),
        &part("metrics"),
    ]
    .concat();
    Config::from_yaml(&text).unwrap()
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_with_what_to_do() {
    let world = World::start().await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let operator = Operator::new("listener").controller(Controller::new(idle));
    for what in ["health", "metrics"] {
        let config = config(what, address.port());
        let refusal = operator
            .clone()
            .config(&config)
            .start(world.client.clone())
            .await
            .unwrap_err()
            .to_string();
        let beginning = format!("listen on {address}: Address already in use");
        assert!(refusal.starts_with(&beginning), "{refusal}");
        let ending = format!(
            "give another {what}.port (--{what}-port; 0 for any that is free) or {what}.address, or turn it off with \
             {what}.enabled"
        );
        assert!(refusal.ends_with(&ending), "{refusal}");
    }
    let running = operator.config(&config("health", 0)).start(world.client.clone()).await.unwrap();
    let addresses = running.addresses();
    assert!(addresses.health.is_some_and(|free| free != address) && addresses.metrics.is_some());
}

/// Sends a request, or part of one, and returns what comes until the server closes the connection.
async fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(Duration::from_secs(600), stream.read_to_end(&mut answer)).await;
    read.expect("the connection is closed in time").unwrap_or_default();
    String::from_utf8_lossy(&answer).into_owned()
}

async fn health() -> (World, Running, SocketAddr) {
    let world = World::start().await;
    let operator = Operator::new("listener").controller(Controller::new(idle));
    let running = operator.config(&config("health", 0)).start(world.client.clone()).await.unwrap();
    let address = running.addresses().health.unwrap();
    (world, running, address)
}

/// The clock may run ahead of the socket here: the only outcome that is asserted is that a timeout comes.
#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed() {
    let (_world, _running, address) = health().await;
    assert_eq!(ask(address, "GET /healthz HTTP/1.1\r\nHost: a\r\n").await, "");
}

#[tokio::test]
async fn probes_are_answered_on_the_port() {
    let (_world, _running, address) = health().await;
    let answer = ask(address, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("ok"), "{answer}");
    let refusal = ask(address, "DELETE /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(refusal.starts_with("HTTP/1.1 405") && refusal.contains("allow: GET,HEAD"), "{refusal}");
}

/// A client that trusts one certificate.
async fn ask_over_tls(address: SocketAddr, certificate: &rcgen::Certificate, request: &str) -> std::io::Result<String> {
    let mut roots = tokio_rustls::rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = tokio_rustls::rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = "greeter.default.svc".try_into().unwrap();
    let mut stream = connector.connect(name, TcpStream::connect(address).await?).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn a_port_that_asks_for_tokens_speaks_tls_only() {
    let world = World::start().await;
    let names = vec!["greeter.default.svc".to_owned()];
    let [ours, other] = [(), ()].map(|()| rcgen::generate_simple_self_signed(names.clone()).unwrap());
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("tls.crt"), ours.cert.pem()).unwrap();
    std::fs::write(file("tls.key"), ours.signing_key.serialize_pem()).unwrap();
    let files = format!("certFile: {}, keyFile: {}", file("tls.crt"), file("tls.key"));
    let request = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for (address, certificate) in [("0.0.0.0", ""), ("0.0.0.0", &*files), ("127.0.0.1", &*files)] {
        let separator = if certificate.is_empty() { "" } else { ", " };
        let text = format!(
            "leaderElection: {{ enabled: false }}\nhealth: {{ enabled: false }}\n\
             metrics: {{ address: {address}, port: 0{separator}{certificate} }}"
        );
        let operator = Operator::new("greeter").controller(Controller::new(idle));
        let running = operator
            .config(&Config::from_yaml(&text).unwrap())
            .start(world.client.clone())
            .await
            .unwrap();
        let port = running.addresses().metrics.unwrap().port();
        let port = SocketAddr::from(([127, 0, 0, 1], port));
        let plain = ask(port, request).await;
        assert!(!plain.contains("HTTP/1.1"), "{plain}");
        if certificate.is_empty() {
            continue;
        }
        let answer = ask_over_tls(port, &ours.cert, request).await.unwrap();
        let status = if address == "0.0.0.0" {
            "401 Unauthorized"
        } else {
            "200 OK"
        };
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(ask_over_tls(port, &other.cert, request).await.is_err());
    }
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let refused = Config::from_yaml("metrics: { certFile: tls.crt }").unwrap_err().to_string();
    assert_eq!(refused, "metrics.keyFile: missing beside metrics.certFile; give both, or none");
}
