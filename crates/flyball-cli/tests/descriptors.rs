//! A cluster with few file descriptors: idle connections neither lock out clients nor stop writes. It takes a second to start.
#![allow(clippy::unwrap_used)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Duration,
};

const APPLICATIONS: &str = "/apis/cloudnative.elide.dev/v1/namespaces/default/applications";

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Sends one request over a connection of its own, and returns the answer.
fn send(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

fn create(address: &str, name: &str) -> String {
    let filler = "x".repeat(100_000);
    let body = format!(
        r#"{{"apiVersion": "cloudnative.elide.dev/v1", "kind": "Application",
        "metadata": {{"name": "{name}", "annotations": {{"filler": "{filler}"}}}}, "spec": {{"image": "nginx"}}}}"#
    );
    let head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length:";
    send(address, &format!("POST {APPLICATIONS} HTTP/1.1\r\n{head} {}\r\n\r\n{body}", body.len()))
}

#[test]
fn idle_connections_neither_lock_out_clients_nor_stop_writes() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 192; exec \"$0\" up --data data --port 0",
        env!("CARGO_BIN_EXE_flyball"),
    ]);
    command.current_dir(place.path()).env("PORT", "0").stdout(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let lines = BufReader::new(running.0.stdout.as_mut().unwrap()).lines().map_while(Result::ok);
    let lines: Vec<String> = lines.take_while(|line| !line.starts_with("Ctrl-C")).collect();
    let after = |prefix: &str| lines.iter().find_map(|line| line.split_once(prefix)).unwrap().1.to_owned();
    let (server, api) = (after("https://"), after("http://"));
    let server = server.split(' ').next().unwrap();

    let idle: Vec<TcpStream> = [server, &api]
        .iter()
        .flat_map(|address| (0..200).map(move |_| TcpStream::connect(address).unwrap()))
        .collect();

    for number in 0..20 {
        let answer = create(&api, &format!("app-{number}"));
        assert!(answer.starts_with("HTTP/1.1 201 "), "{number}: {answer}");
    }
    let answer = send(server, "GET / HTTP/1.1\r\n\r\n");
    assert!(answer.ends_with("Client sent an HTTP request to an HTTPS server.\n"), "{answer}");
    drop(idle);
}
