//! The server on a real port of this machine: who gets in, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use bytes::Bytes;
use flyball_apiserver::authn::identity::{Authority, User};
use flyball_apiserver::authn::kubeconfig::kubeconfig;
use flyball_apiserver::http::serve::{Config, ServeError, Serving, serve};
use flyball_apiserver::{Body, version};
use futures::{AsyncBufReadExt, StreamExt};
use http::{Request, Response};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Answers `/watch` with a stream that never ends by itself, `/panic` not at all, and all else with the version.
async fn answer(request: Request<hyper::body::Incoming>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(match request.uri().path() {
        "/watch" => {
            let line = Bytes::from_static(b"{}\n");
            Body::stream(futures::stream::once(async { line }).chain(futures::stream::pending()))
        }
        "/panic" => panic!("on purpose"),
        "/host" => Body::whole(request.headers()["host"].to_str().unwrap().to_owned()),
        "/who" => Body::whole(request.extensions().get::<User>().map_or(String::new(), |user| user.name.clone())),
        _ => Body::whole(version::version().to_string()),
    }))
}

async fn start(authority: &Arc<Authority>) -> Serving {
    let address = "127.0.0.1:0".parse().unwrap();
    let config = Config { address, hosts: vec![], authority: authority.clone() };
    serve(tower::service_fn(answer), config).await.unwrap()
}

fn authority() -> Arc<Authority> {
    Arc::new(Authority::generate().unwrap())
}

/// A client that trusts `server` and shows a certificate of `user`, if any is given.
async fn client(serving: &Serving, server: &Authority, user: Option<&Authority>) -> kube::Client {
    let text = kubeconfig(server, &serving.url(), &User::admin()).unwrap();
    let mut config = Kubeconfig::from_yaml(&text).unwrap();
    let info = config.auth_infos[0].auth_info.as_mut().unwrap();
    match user {
        None => *info = kube::config::AuthInfo::default(),
        Some(authority) => {
            let text = kubeconfig(authority, &serving.url(), &User::admin()).unwrap();
            *info = Kubeconfig::from_yaml(&text).unwrap().auth_infos[0].auth_info.clone().unwrap();
        }
    }
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

async fn get(client: &kube::Client, path: &str) -> Result<String, u16> {
    match client.request_text(Request::get(path).body(vec![]).unwrap()).await {
        Ok(text) => Ok(text),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{path}: {error}"),
    }
}

#[tokio::test]
async fn the_admin_gets_in_and_is_known() {
    let authority = authority();
    let serving = start(&authority).await;
    let client = client(&serving, &authority, Some(&authority)).await;

    assert_eq!(client.apiserver_version().await.unwrap().git_version, version::git_version());
    assert_eq!(get(&client, "/who").await, Ok("admin".into()));
    assert_eq!(get(&client, "/host").await, Ok(serving.address().to_string()));
}

#[tokio::test]
async fn to_act_as_somebody_else_is_refused_by_name() {
    let authority = authority();
    let serving = start(&authority).await;
    let client = client(&serving, &authority, Some(&authority)).await;
    let request = Request::get("/version").header("impersonate-user", "ada").body(vec![]).unwrap();

    let refused = client.request_text(request).await.unwrap_err();

    let sentence = "impersonation is not supported: remove the header impersonate-user";
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 400 && status.message == sentence));
}

#[tokio::test]
async fn nobody_else_gets_in_but_may_ask_for_health_and_version() {
    let authority = authority();
    let serving = start(&authority).await;
    let nobody = client(&serving, &authority, None).await;
    let stranger = client(&serving, &authority, Some(&Authority::generate().unwrap())).await;

    assert_eq!(get(&nobody, "/api").await, Err(401));
    assert!(get(&nobody, "/version").await.is_ok());
    assert!(get(&nobody, "/readyz").await.is_ok());
    assert_eq!(get(&stranger, "/version").await, Err(401));
    let token = Request::get("/version").header("authorization", "Bearer guess").body(vec![]).unwrap();
    let refused = nobody.request_text(token).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 401 && status.reason == "Unauthorized"));
}

#[tokio::test]
async fn an_occupied_port_says_so_in_one_sentence() {
    let authority = authority();
    let serving = start(&authority).await;
    let config = Config { address: serving.address(), hosts: vec![], authority };

    let error = serve(tower::service_fn(answer), config).await.err().unwrap();

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
    let client = client(&serving, &authority, Some(&authority)).await;
    let stream = client.request_stream(Request::get("/watch").body(vec![]).unwrap()).await.unwrap();
    let mut lines = std::pin::pin!(stream.lines());
    assert_eq!(lines.next().await.unwrap().unwrap(), "{}");

    let (end, ()) = tokio::join!(lines.next(), serving.stop());

    assert!(end.is_none(), "{end:?}");
    tokio::net::TcpListener::bind(address).await.unwrap();
}

#[tokio::test]
async fn a_panic_costs_one_request_its_answer_and_nothing_else() {
    let authority = authority();
    let serving = start(&authority).await;
    let client = client(&serving, &authority, Some(&authority)).await;

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
