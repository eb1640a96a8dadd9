//! A server under load, and the leanest client that can load it: one TLS connection a task, raw requests and answers.
//! The same client asks Flyball and its peer, so that what differs is the server.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use kube::{
    client::ConfigExt,
    config::{KubeConfigOptions, Kubeconfig},
};
use rustls_pki_types::ServerName;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{net::TcpStream, task::JoinHandle};
use tokio_rustls::TlsConnector;

/// A server on loopback, and the administrator's way in.
#[derive(Clone)]
pub struct Target {
    /// What the table calls it.
    pub name: &'static str,
    /// The processes it consists of.
    pub pids: Vec<u32>,
    /// Where the way in was read from.
    pub kubeconfig: PathBuf,
    address: SocketAddr,
    tls: TlsConnector,
}

impl Target {
    /// Reads the way in from a kubeconfig.
    pub async fn of(name: &'static str, kubeconfig: &Path, pids: Vec<u32>) -> Target {
        let path = kubeconfig.to_owned();
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig is written at start");
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let config = config.expect("the kubeconfig is whole");
        let tls = config.rustls_client_config().expect("the administrator's certificate");
        let port = config.cluster_url.port_u16().expect("a port");
        Target {
            name,
            pids,
            kubeconfig: path,
            address: ([127, 0, 0, 1], port).into(),
            tls: TlsConnector::from(Arc::new(tls)),
        }
    }

    /// Opens one connection.
    pub async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a TCP stream");
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = self.tls.connect(name, stream).await.expect("TLS");
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                eprintln!("bench: a connection broke: {error}");
            }
        });
        Connection { sender, driver }
    }

    /// The resident memory of its processes, in bytes.
    pub fn memory(&self) -> f64 {
        self.pids.iter().map(|pid| resident(*pid)).sum()
    }
}

/// One connection; requests go one after the other.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Connection {
    /// Sends a request and reads the whole answer.
    ///
    /// # Panics
    /// If the answer is no success: a benchmark of refusals measures nothing.
    pub async fn send(&mut self, method: Method, path: &str, body: impl Into<Bytes>) -> Bytes {
        let answer = self.open(method, path, body).await;
        success(path, answer).await
    }

    /// Sends a merge patch and reads the whole answer.
    ///
    /// # Panics
    /// If the answer is no success.
    pub async fn patch(&mut self, path: &str, patch: impl Into<Bytes>) -> Bytes {
        let answer = self.request(Method::PATCH, path, "application/merge-patch+json", patch.into()).await;
        success(path, answer).await
    }

    /// Sends a request and hands out the answer as it comes, for watches.
    pub async fn open(&mut self, method: Method, path: &str, body: impl Into<Bytes>) -> Response<Incoming> {
        self.request(method, path, "application/json", body.into()).await
    }

    async fn request(&mut self, method: Method, path: &str, media_type: &str, body: Bytes) -> Response<Incoming> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", media_type)
            .header("accept", "application/json")
            .body(Full::new(body))
            .expect("a request");
        self.sender.ready().await.expect("an open connection");
        self.sender.send_request(request).await.expect("an answer")
    }
}

async fn success(path: &str, answer: Response<Incoming>) -> Bytes {
    let status = answer.status();
    let body = answer.into_body().collect().await.expect("a whole answer").to_bytes();
    assert!(status.is_success(), "{path}: {status}: {}", String::from_utf8_lossy(&body));
    body
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The resident memory of a process, in bytes.
pub fn resident(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
    kibibytes * 1024.0
}
