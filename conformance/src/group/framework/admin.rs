//! Who may look into an operator, by a real API server's word: tokens of ServiceAccounts, and rights on paths.

use std::sync::Arc;

use flyball::{Action, Config, Context, Controller, Operator};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::report::{Finding, sentence};
use crate::scenario::World;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Asks an operator's admin server, as it is where others can reach it, with and without a token.
pub async fn run(client: kube::Client, findings: &mut Vec<Finding>) {
    let outcome = asked(client).await;
    findings.push(Finding::check("reference: who may look is the API server's to say", outcome));
}

async fn asked(client: kube::Client) -> Result<(), String> {
    let world = World::new(client.clone());
    let scraper = account(&world, "scraper").await?;
    let nobody = account(&world, "nobody").await?;
    allow(&world, "scraper").await?;
    let idle = async |_: Arc<ConfigMap>, _: Context| Ok(Action::await_change());
    let operator = Operator::new("watched").controller(Controller::new(idle));
    let running = operator.start(client).await.map_err(|error| error.to_string())?;
    let admin = running.admin(&Config::default());
    let ask = async |method: &str, path: &str, token: &str| -> Result<(StatusCode, String), String> {
        let mut request = Request::builder().method(method).uri(path);
        if !token.is_empty() {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::<bytes::Bytes>::default()).expect("a constant request");
        let answer = admin.clone().oneshot(request).await.map_err(|error| sentence(&error))?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
    };
    let reconcile = "/debug/reconcile?controller=configmap&all";
    let user = "user \"system:serviceaccount:default:nobody\" cannot get path \"/metrics\"";
    for (method, path, token, expected, said) in [
        ("GET", "/metrics", &*scraper, StatusCode::OK, "workqueue_depth"),
        ("GET", "/metrics", &nobody, StatusCode::FORBIDDEN, user),
        (
            "POST",
            reconcile,
            &scraper,
            StatusCode::FORBIDDEN,
            "cannot post path \"/debug/reconcile\"",
        ),
        (
            "GET",
            "/metrics",
            "forged",
            StatusCode::UNAUTHORIZED,
            "the cluster does not know this token",
        ),
        ("GET", "/metrics", "", StatusCode::UNAUTHORIZED, "send a token"),
        ("GET", "/livez", "", StatusCode::OK, "ok"),
    ] {
        let (status, text) = ask(method, path, token).await?;
        if status != expected || !text.contains(said) {
            let beginning: String = text.chars().take(200).collect();
            return Err(format!("{method} {path}: {status} {beginning}, not {expected} {said}"));
        }
    }
    running.stop().await;
    Ok(())
}

/// A new ServiceAccount's token, as a pod gets it.
async fn account(world: &World, name: &str) -> Result<String, String> {
    world.create(ACCOUNTS, &json!({"metadata": {"name": name}})).await?;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let made = world.create(&format!("{ACCOUNTS}/{name}/token"), &request).await?;
    Ok(made["status"]["token"].as_str().unwrap_or_default().to_owned())
}

/// What a scraper is given: it may get the metrics.
async fn allow(world: &World, name: &str) -> Result<(), String> {
    let role: Value = json!({
        "metadata": {"name": name},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    });
    world.create(&format!("{RBAC}/clusterroles"), &role).await?;
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    });
    world.create(&format!("{RBAC}/clusterrolebindings"), &binding).await.map(drop)
}
