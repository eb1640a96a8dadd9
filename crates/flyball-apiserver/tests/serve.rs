//! The server on a real port of this machine: who is let in, and how it shuts down.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use flyball_apiserver::audit::{AuditEvent, AuditSink, AuditUser, Stage};
use flyball_apiserver::authn::identity::Authority;
use flyball_apiserver::authn::kubeconfig::kubeconfig;
use flyball_apiserver::http::serve::{Config, ServeError, Serving, serve};
use flyball_apiserver::{ApiServer, ServerOptions, User, version};
use flyball_store::Store;
use flyball_store::testing::Chance;
use futures::{AsyncBufReadExt, StreamExt};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Keeps the users of requests, and panics at requests to `/panic`.
#[derive(Default)]
struct Users(Mutex<Vec<AuditUser>>);

impl AuditSink for Users {
    fn record(&self, event: &AuditEvent) {
        if event.stage == Stage::RequestReceived {
            assert_ne!(event.request_uri, "/panic", "on purpose");
            self.0.lock().unwrap().push(event.user.clone());
        }
    }
}

async fn serve_on(server: ApiServer, authority: &Arc<Authority>) -> Serving {
    let address = "127.0.0.1:0".parse().unwrap();
    let config = Config { address, hosts: vec![], authority: authority.clone() };
    serve(server, config).await.unwrap()
}

async fn start_with(authority: &Arc<Authority>, options: ServerOptions) -> Serving {
    serve_on(options.start(Store::memory()).await.unwrap(), authority).await
}

async fn start(authority: &Arc<Authority>) -> Serving {
    start_with(authority, ServerOptions::default()).await
}

fn authority() -> Arc<Authority> {
    Arc::new(Authority::generate().unwrap())
}

/// A client that trusts `server` and presents a certificate of a user, if one is given.
async fn client(serving: &Serving, server: &Authority, user: Option<(&Authority, User)>) -> kube::Client {
    let text = kubeconfig(server, &serving.url(), &User::admin()).unwrap();
    let mut config = Kubeconfig::from_yaml(&text).unwrap();
    let info = config.auth_infos[0].auth_info.as_mut().unwrap();
    match user {
        None => *info = kube::config::AuthInfo::default(),
        Some((authority, user)) => {
            let text = kubeconfig(authority, &serving.url(), &user).unwrap();
            *info = Kubeconfig::from_yaml(&text).unwrap().auth_infos[0].auth_info.clone().unwrap();
        }
    }
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

async fn admin(serving: &Serving, authority: &Authority) -> kube::Client {
    client(serving, authority, Some((authority, User::admin()))).await
}

async fn get(client: &kube::Client, path: &str) -> Result<String, u16> {
    match client.request_text(Request::get(path).body(vec![]).unwrap()).await {
        Ok(text) => Ok(text),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{path}: {error}"),
    }
}

#[tokio::test]
async fn the_admin_is_let_in_and_known() {
    let (authority, users) = (authority(), Arc::new(Users::default()));
    let options = ServerOptions { audit_sink: Some(users.clone()), ..ServerOptions::default() };
    let serving = start_with(&authority, options).await;
    let client = admin(&serving, &authority).await;

    assert_eq!(client.apiserver_version().await.unwrap().git_version, version::git_version());
    let expected = User::new("admin", ["system:masters", "system:authenticated"]);
    assert_eq!(*users.0.lock().unwrap(), [AuditUser::from(&expected)]);
    assert!(get(&client, "/api").await.unwrap().contains(&serving.address().to_string()));
}

#[tokio::test]
async fn an_impersonated_user_has_its_own_rights_only() {
    let authority = authority();
    let serving = start(&authority).await;
    let client = admin(&serving, &authority).await;
    let as_ada = |path: &str| Request::get(path).header("impersonate-user", "ada").body(vec![]).unwrap();

    assert!(client.request_text(as_ada("/version")).await.is_ok());
    let refused = client.request_text(as_ada("/api/v1/secrets")).await.unwrap_err();
    let sentence =
        r#"secrets is forbidden: User "ada" cannot list resource "secrets" in API group "" at the cluster scope"#;
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403 && status.message == sentence));
}

#[tokio::test]
async fn other_users_may_read_only_what_bootstrap_roles_grant() {
    let authority = authority();
    let serving = start(&authority).await;
    let anonymous = client(&serving, &authority, None).await;
    let ada = client(&serving, &authority, Some((&authority, User::new("ada", ["staff"])))).await;

    for client in [&anonymous, &ada] {
        assert!(get(client, "/version").await.is_ok());
        assert!(get(client, "/readyz").await.is_ok());
        assert_eq!(get(client, "/readyz/store").await, Err(403));
        assert_eq!(get(client, "/api/v1/secrets").await, Err(403));
    }
    assert_eq!(get(&anonymous, "/api").await, Err(403));
    assert!(get(&ada, "/api").await.is_ok());
    let request = Request::get("/api/v1/namespaces/a/secrets/b").body(vec![]).unwrap();
    let refused = ada.request_text(request).await.unwrap_err();
    let sentence =
        r#"secrets "b" is forbidden: User "ada" cannot get resource "secrets" in API group "" in the namespace "a""#;
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.reason == "Forbidden" && status.message == sentence),
        "{refused}"
    );
}

#[tokio::test]
async fn credentials_that_are_not_valid_are_refused_everywhere() {
    let authority = authority();
    let serving = start(&authority).await;
    let anonymous = client(&serving, &authority, None).await;
    let foreign = Authority::generate().unwrap();
    let stranger = client(&serving, &authority, Some((&foreign, User::admin()))).await;

    assert_eq!(get(&stranger, "/version").await, Err(401));
    let token = Request::get("/version").header("authorization", "Bearer guess").body(vec![]).unwrap();
    let refused = anonymous.request_text(token).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 401 && status.reason == "Unauthorized"));
    let basic = Request::get("/version").header("authorization", "Basic YTpi").body(vec![]).unwrap();
    assert!(anonymous.request_text(basic).await.is_ok(), "no authenticator reads it");
}

#[tokio::test]
async fn an_occupied_port_says_so_in_one_sentence() {
    let authority = authority();
    let serving = start(&authority).await;
    let config = Config { address: serving.address(), hosts: vec![], authority };
    let server = ApiServer::start(Store::memory()).await.unwrap();

    let error = serve(server, config).await.err().unwrap();

    assert!(matches!(error, ServeError::Occupied { .. }));
    let port = serving.address().port();
    let sentence = "is in use by another process: stop that process, or choose another port";
    assert_eq!(error.to_string(), format!("port {port} of 127.0.0.1 {sentence}"));
}

#[tokio::test]
async fn a_stop_ends_watches_cleanly_and_frees_the_port() {
    let authority = authority();
    let serving = start(&authority).await;
    let address = serving.address();
    let client = admin(&serving, &authority).await;
    let watch = Request::get("/api/v1/namespaces?watch=1").body(vec![]).unwrap();
    let stream = client.request_stream(watch).await.unwrap();
    let mut lines = std::pin::pin!(stream.lines());
    assert!(lines.next().await.unwrap().unwrap().contains("ADDED"));

    let rest = async { while lines.next().await.transpose().unwrap().is_some() {} };
    let ((), ()) = tokio::join!(rest, serving.stop());

    tokio::net::TcpListener::bind(address).await.unwrap();
}

#[tokio::test]
async fn a_panic_costs_one_request_its_answer_and_nothing_else() {
    let authority = authority();
    let sink = Arc::new(Users::default());
    let options = ServerOptions { audit_sink: Some(sink), ..ServerOptions::default() };
    let serving = start_with(&authority, options).await;
    let client = admin(&serving, &authority).await;

    assert_eq!(get(&client, "/panic").await, Err(500));
    assert!(get(&client, "/version").await.is_ok());
}

#[tokio::test]
async fn plain_http_is_told_that_this_is_https() {
    let serving = start(&authority()).await;
    let mut stream = tokio::net::TcpStream::connect(serving.address()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();

    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();

    assert!(answer.ends_with("Client sent an HTTP request to an HTTPS server.\n"), "{answer}");
}

// Over a second, because each write waits for a disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_closes_interrupts_no_write() {
    const GROUPS: usize = 30;
    const MEMBERS: usize = 5;
    let (authority, directory) = (authority(), tempfile::tempdir().unwrap());
    let server = ApiServer::start(Store::open(directory.path()).await.unwrap()).await.unwrap();
    let serving = serve_on(server.clone(), &authority).await;
    let inside = kube::Client::new(server.as_user(User::admin()), "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(inside);
    let mut chance = Chance::from_environment();
    for group in 0..GROUPS {
        for member in 0..MEMBERS {
            let labels = json!({"group": group.to_string()});
            let map = json!({"metadata": {"name": format!("{group}-{member}"), "labels": labels}});
            maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
        }
        let client = admin(&serving, &authority).await;
        client.apiserver_version().await.unwrap();
        let path = format!("/api/v1/namespaces/default/configmaps?labelSelector=group%3D{group}");
        let delete = client.request_text(Request::delete(path).body(vec![]).unwrap());
        let moment = Duration::from_micros(chance.below(5_000) as u64);
        let _closed = tokio::time::timeout(moment, delete).await;
    }
    serving.stop().await;
    server.finish_writes().await;

    for group in 0..GROUPS {
        let left = maps
            .list(&ListParams::default().labels(&format!("group={group}")))
            .await
            .unwrap()
            .items
            .len();
        assert!(left == 0 || left == MEMBERS, "{left} of group {group} are left");
    }
}
