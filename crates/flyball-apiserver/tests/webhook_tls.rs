//! Webhooks over TLS on a port of this machine: servers that work, and servers that fail in each way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flyball_apiserver::{ApiServer, User};
use flyball_store::Store;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rcgen::{CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What a webhook does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Allows,
    Refuses,
    Hangs,
    SaysGarbage,
    SaysItFailed,
    Disconnects,
    HasExpiredCertificate,
    HasOtherAuthority,
}

/// A webhook on a port.
struct Webhook {
    port: u16,
    ca_bundle: String,
    connections: Arc<AtomicUsize>,
    versions: Arc<Mutex<Vec<Version>>>,
}

impl Webhook {
    async fn start(behaviour: Behaviour) -> Webhook {
        let (acceptor, ca_bundle) = acceptor(behaviour);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let webhook = Webhook {
            port: listener.local_addr().unwrap().port(),
            ca_bundle: STANDARD.encode(ca_bundle),
            connections: Arc::default(),
            versions: Arc::default(),
        };
        let (connections, versions) = (webhook.connections.clone(), webhook.versions.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, acceptor.clone(), behaviour, versions.clone()));
            }
        });
        webhook
    }

    fn by_url(&self) -> Value {
        json!({"url": format!("https://127.0.0.1:{}/review", self.port), "caBundle": self.ca_bundle})
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, behaviour: Behaviour, versions: Arc<Mutex<Vec<Version>>>) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    if behaviour == Behaviour::Disconnects {
        return;
    }
    let service = service_fn(move |request| {
        versions.lock().unwrap().push(Request::version(&request));
        answer(request, behaviour)
    });
    let builder = Builder::new(TokioExecutor::new());
    drop(builder.serve_connection(TokioIo::new(stream), service).await);
}

async fn answer(request: Request<Incoming>, behaviour: Behaviour) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let mut response = Response::new(Full::default());
    let text = match behaviour {
        Behaviour::Hangs => std::future::pending().await,
        Behaviour::SaysGarbage => "garbage".to_owned(),
        Behaviour::SaysItFailed => {
            *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
            "it failed".to_owned()
        }
        _ => {
            let allowed = behaviour != Behaviour::Refuses;
            let status = json!({"code": 403, "message": "not today"});
            let response = json!({"uid": review["request"]["uid"], "allowed": allowed, "status": status});
            json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}).to_string()
        }
    };
    *response.body_mut() = Full::from(text);
    Ok(response)
}

/// The certificate of a webhook, and the certificate of the authority that signs it.
fn acceptor(behaviour: Behaviour) -> (TlsAcceptor, String) {
    let authority = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        (params, key, certificate)
    };
    let (params, key, certificate) = authority("ca");
    let hosts = ["127.0.0.1", "hook.default.svc"].map(str::to_owned);
    let mut leaf = CertificateParams::new(hosts).unwrap();
    if behaviour == Behaviour::HasExpiredCertificate {
        leaf.not_before = date_time_ymd(2019, 1, 1);
        leaf.not_after = date_time_ymd(2020, 1, 1);
    }
    let own_key = KeyPair::generate().unwrap();
    let leaf = leaf.signed_by(&own_key, &Issuer::from_params(&params, &key)).unwrap();
    let chain = vec![leaf.der().clone()];
    let own_key = PrivateKeyDer::from_pem_slice(own_key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, own_key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let bundle = match behaviour {
        Behaviour::HasOtherAuthority => authority("other").2,
        _ => certificate,
    };
    assert!(CertificateDer::from_pem_slice(bundle.as_bytes()).is_ok());
    (TlsAcceptor::from(Arc::new(config)), bundle)
}

async fn send(server: &ApiServer, method: &str, path: &str, body: Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = request.body(Full::from(text)).unwrap();
    let response = server.as_user(User::admin()).respond(request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

/// Configures a webhook for ConfigMaps.
async fn configure(server: &ApiServer, client_config: Value, policy: &str, timeout: u64) {
    let rules = json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]);
    let webhook = json!({"name": "a.example.dev", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": client_config, "rules": rules, "failurePolicy": policy, "timeoutSeconds": timeout});
    drop(send(server, "DELETE", &format!("{CONFIGURATIONS}/a"), Value::Null).await);
    let configuration = json!({"metadata": {"name": "a"}, "webhooks": [webhook]});
    let (code, body) = send(server, "POST", CONFIGURATIONS, configuration).await;
    assert_eq!(code, 201, "{body}");
}

async fn create(server: &ApiServer, name: &str) -> (u16, Value) {
    send(server, "POST", MAPS, json!({"metadata": {"name": name}})).await
}

/// Takes the seconds that the timeouts of the webhook that hangs take.
#[tokio::test]
async fn the_failure_policy_decides_about_servers_that_fail() {
    let server = ApiServer::start(Store::memory()).await.unwrap();
    for (behaviour, why) in [
        (Behaviour::Hangs, "?timeout=1s\": context deadline exceeded"),
        (Behaviour::SaysGarbage, "couldn't get version/kind; json parse error"),
        (
            Behaviour::SaysItFailed,
            "an error on the server (\"it failed\") has prevented the request from succeeding",
        ),
        (Behaviour::Disconnects, "\": EOF"),
        (
            Behaviour::HasExpiredCertificate,
            "x509: certificate has expired or is not yet valid: current time ",
        ),
        (Behaviour::HasOtherAuthority, "x509: certificate signed by unknown authority"),
    ] {
        let webhook = Webhook::start(behaviour).await;
        for (policy, expected) in [("Fail", 500), ("Ignore", 201)] {
            configure(&server, webhook.by_url(), policy, 1).await;
            let (code, body) = create(&server, &format!("{behaviour:?}").to_lowercase()).await;
            assert_eq!(code, expected, "{behaviour:?} {policy}: {body}");
            let message = body["message"].as_str().unwrap_or_default();
            let prefix = "Internal error occurred: failed calling webhook \"a.example.dev\": failed to call webhook: ";
            assert!(policy == "Ignore" || message.starts_with(prefix) && message.contains(why), "{message}");
        }
    }
    let refusing = Webhook::start(Behaviour::Refuses).await;
    for policy in ["Fail", "Ignore"] {
        configure(&server, refusing.by_url(), policy, 1).await;
        let (code, body) = create(&server, "refused").await;
        let message = "admission webhook \"a.example.dev\" denied the request: not today";
        assert_eq!((code, &body["message"]), (403, &json!(message)), "no policy ignores a refusal");
    }
}

#[tokio::test]
async fn an_unrelated_create_does_not_wait_for_a_webhook_that_hangs() {
    let server = ApiServer::start(Store::memory()).await.unwrap();
    let webhook = Webhook::start(Behaviour::Hangs).await;
    configure(&server, webhook.by_url(), "Fail", 10).await;
    let other = server.clone();
    let late = tokio::spawn(async move { create(&other, "late").await });
    while webhook.versions.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }

    let begin = Instant::now();
    let (code, _) = send(&server, "POST", "/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    let took = begin.elapsed();

    assert_eq!(code, 201);
    println!("an unrelated create took {took:?}");
    assert!(took < Duration::from_secs(1) && !late.is_finished(), "{took:?}");
    late.abort();
}

#[tokio::test]
async fn connections_are_kept_for_the_next_call() {
    let server = ApiServer::start(Store::memory()).await.unwrap();
    let webhook = Webhook::start(Behaviour::Allows).await;
    configure(&server, webhook.by_url(), "Fail", 10).await;

    for name in ["a", "b", "c"] {
        assert_eq!(create(&server, name).await.0, 201);
    }

    assert_eq!(webhook.connections.load(Ordering::SeqCst), 1);
    assert_eq!(*webhook.versions.lock().unwrap(), [Version::HTTP_2; 3], "loopback is offered HTTP/2");
}

#[tokio::test]
async fn a_service_is_called_at_one_of_its_endpoints() {
    let server = ApiServer::start(Store::memory()).await.unwrap();
    let webhook = Webhook::start(Behaviour::Allows).await;
    let service = json!({"namespace": "default", "name": "hook"});
    configure(&server, json!({"service": service, "caBundle": webhook.ca_bundle}), "Fail", 10).await;
    let why = async |server: &ApiServer| {
        let (code, body) = create(server, "m").await;
        assert_eq!(code, 500, "{body}");
        body["message"].as_str().unwrap().rsplit("timeout=10s\": ").next().unwrap().to_owned()
    };
    assert_eq!(why(&server).await, "service \"hook\" not found");

    let ports = json!([{"name": "https", "port": 444}]);
    let object = json!({"metadata": {"name": "hook"}, "spec": {"ports": ports}});
    assert_eq!(send(&server, "POST", "/api/v1/namespaces/default/services", object).await.0, 201);
    assert_eq!(why(&server).await, "no service port 443 found for service \"hook\"");
    let patch = json!({"spec": {"ports": [{"name": "https", "port": 443}]}});
    let request = Request::patch("/api/v1/namespaces/default/services/hook");
    let request = request
        .header("content-type", "application/merge-patch+json")
        .body(Full::from(patch.to_string()));
    assert_eq!(server.as_user(User::admin()).respond(request.unwrap()).await.status(), 200);
    assert_eq!(why(&server).await, "no endpoints available for service \"hook\"");

    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "ports": [{"name": "https", "port": webhook.port}], "endpoints": [{"addresses": ["127.0.0.1"]}]});
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let (code, body) = send(&server, "POST", path, slice).await;
    assert_eq!(code, 201, "{body}");
    assert_eq!(create(&server, "m").await.0, 201);
    assert_eq!(*webhook.versions.lock().unwrap(), [Version::HTTP_11], "services are called by HTTP/1.1");
}

#[tokio::test]
async fn a_webhook_without_a_ca_bundle_is_refused_by_name() {
    let server = ApiServer::start(Store::memory()).await.unwrap();
    let webhook = Webhook::start(Behaviour::Allows).await;
    let mut config = webhook.by_url();
    config["caBundle"] = Value::Null;
    configure(&server, config, "Fail", 10).await;

    let (code, body) = create(&server, "m").await;

    assert_eq!(code, 500);
    assert!(body["message"].as_str().unwrap().contains("set clientConfig.caBundle"), "{body}");
}
