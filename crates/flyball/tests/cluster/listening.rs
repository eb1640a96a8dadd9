//! The ports of an operator: the only tests here that open sockets, on loopback.

use crate::world::World;
use flyball::{Action, Config, Context, Controller, Operator, Result};
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

async fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(Duration::from_secs(600), stream.read_to_string(&mut answer)).await;
    read.expect("nobody is listened to for ever").unwrap();
    answer
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed() {
    let world = World::start().await;
    let operator = Operator::new("listener").controller(Controller::new(idle));
    let running = operator.config(&config("health", 0)).start(world.client.clone()).await.unwrap();
    let address = running.addresses().health.unwrap();
    assert_eq!(ask(address, "GET /healthz HTTP/1.1\r\nHost: a\r\n").await, "");
    let answer = ask(address, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("ok"), "{answer}");
    let refusal = ask(address, "DELETE /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(refusal.starts_with("HTTP/1.1 405") && refusal.contains("allow: GET,HEAD"), "{refusal}");
}
