//! Tokens: those of service accounts, what ends them, and static ones.

use crate::ask::{Answer, Server};
use flyball_apiserver::authn::token::StaticToken;
use flyball_apiserver::{ServerOptions, User};
use flyball_store::Store;
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

async fn with_account() -> Server {
    let server = Server::start().await;
    let created = server.post(ACCOUNTS, json!({"metadata": {"name": "robot"}})).await;
    assert_eq!(created.code, 201, "{}", created.body);
    server
}

async fn token(server: &Server, spec: Value) -> String {
    let issued = server.post(&format!("{ACCOUNTS}/robot/token"), json!({"spec": spec})).await;
    assert_eq!(issued.code, 201, "{}", issued.body);
    issued.body["status"]["token"].as_str().unwrap().to_owned()
}

async fn who_am_i(server: &Server, token: &str) -> Answer {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let authorization = format!("Bearer {token}");
    let headers = [
        ("authorization", authorization.as_str()),
        ("content-type", "application/json"),
    ];
    server.without_user(Method::POST, path, &headers, "{}").await
}

#[tokio::test(start_paused = true)]
async fn a_token_proves_its_service_account() {
    let server = with_account().await;
    let uid = server.get(&format!("{ACCOUNTS}/robot")).await.body["metadata"]["uid"].clone();

    let user = who_am_i(&server, &token(&server, json!({})).await).await;

    assert_eq!(user.code, 201, "{}", user.body);
    let info = &user.body["status"]["userInfo"];
    assert_eq!(info["username"], "system:serviceaccount:default:robot");
    assert_eq!(info["uid"], uid);
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    assert_eq!(info["groups"], json!(groups));
    assert!(
        info["extra"]["authentication.kubernetes.io/credential-id"][0]
            .as_str()
            .unwrap()
            .starts_with("JTI=")
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_at_its_time() {
    let server = with_account().await;
    let token = token(&server, json!({"expirationSeconds": 600})).await;

    tokio::time::advance(Duration::from_secs(640)).await;
    assert_eq!(who_am_i(&server, &token).await.code, 201);
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(who_am_i(&server, &token).await.code, 401);
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_its_account_and_another_of_the_same_name_does_not_revive_it() {
    let server = with_account().await;
    let token = token(&server, json!({})).await;

    server.delete(&format!("{ACCOUNTS}/robot"), Value::Null).await;
    assert_eq!(who_am_i(&server, &token).await.code, 401);
    server.post(ACCOUNTS, json!({"metadata": {"name": "robot"}})).await;
    assert_eq!(who_am_i(&server, &token).await.code, 401);
}

#[tokio::test(start_paused = true)]
async fn a_bound_token_ends_with_its_object() {
    let server = with_account().await;
    let pods = "/api/v1/namespaces/default/pods";
    let spec = json!({"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]});
    server.post(pods, json!({"metadata": {"name": "p"}, "spec": spec})).await;
    let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}});
    let token = token(&server, bound).await;
    let user = who_am_i(&server, &token).await;
    assert_eq!(
        user.body["status"]["userInfo"]["extra"]["authentication.kubernetes.io/pod-name"],
        json!(["p"])
    );

    server.delete(&format!("{pods}/p?gracePeriodSeconds=0"), Value::Null).await;

    assert_eq!(who_am_i(&server, &token).await.code, 401);
}

#[tokio::test(start_paused = true)]
async fn a_token_for_another_audience_is_not_for_the_server() {
    let server = with_account().await;
    let token = token(&server, json!({"audiences": ["vault"]})).await;
    assert_eq!(who_am_i(&server, &token).await.code, 401);

    let review = |audiences: Value| json!({"spec": {"token": token, "audiences": audiences}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let for_vault = server.post(path, review(json!(["vault", "other"]))).await.body["status"].clone();
    assert_eq!((&for_vault["authenticated"], &for_vault["audiences"]), (&json!(true), &json!(["vault"])));
    let for_server = server.post(path, review(json!([]))).await.body["status"].clone();
    assert_eq!(for_server["authenticated"], Value::Null);
    assert!(
        for_server["error"].as_str().unwrap().contains("is invalid for the target audiences"),
        "{for_server}"
    );
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_not_valid_never_become_anonymous() {
    let server = with_account().await;
    let token = token(&server, json!({})).await;
    let other = with_account().await;
    let (head, signature) = token.rsplit_once('.').unwrap();
    let forged = format!("{head}.{}", signature.chars().rev().collect::<String>());
    for bad in ["x", "a.b.c", forged.as_str()] {
        assert_eq!(who_am_i(&server, bad).await.code, 401, "{bad}");
    }
    assert_eq!(who_am_i(&other, &token).await.code, 401);
}

#[tokio::test(start_paused = true)]
async fn a_static_token_stands_for_its_user() {
    let options = ServerOptions {
        static_tokens: vec![StaticToken::new("secret", User::new("ada", ["staff"]))],
        ..ServerOptions::default()
    };
    let server = Server::with(Store::memory(), options).await;

    let user = who_am_i(&server, "secret").await;

    assert_eq!(
        user.body["status"]["userInfo"],
        json!({"username": "ada", "groups": ["staff", "system:authenticated"]})
    );
    assert_eq!(who_am_i(&server, "Secret").await.code, 401);
}
