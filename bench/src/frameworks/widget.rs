//! The kind that is reconciled, and as many objects of it as are wanted: one to two KiB each, with the metadata that real ones have.

use crate::target::{Connection, Target};
use futures::future::join_all;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::{CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeMap, ops::Range, time::Duration};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const WIDGETS: &str = "/apis/bench.flyball.dev/v1/namespaces/default/widgets";
const CONNECTIONS: usize = 16;
/// How many teams there are, each with a Secret and a ServiceAccount.
const TEAMS: usize = 50;
const PART_OF: &str = "app.kubernetes.io/part-of";
const CONTACT: &str = "bench.flyball.dev/contact";

/// Something to run.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "bench.flyball.dev", version = "v1", kind = "Widget")]
#[kube(namespaced, status = "WidgetStatus")]
#[serde(rename_all = "camelCase")]
pub struct WidgetSpec {
    /// What is run.
    pub image: String,
    /// How often.
    pub replicas: u32,
    /// With which variables.
    pub env: Option<Vec<Variable>>,
    /// Reachable how.
    pub ports: Option<Vec<Port>>,
    /// Given how much.
    pub resources: Option<BTreeMap<String, String>>,
    /// Whether to leave it alone.
    pub paused: Option<bool>,
}

/// A variable of the environment.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A port.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u16,
}

/// What became of it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct WidgetStatus {
    /// The run of the benchmark that wrote it last.
    pub round: u64,
    /// In one word.
    pub phase: String,
}

/// Installs the kind, and waits until it is served.
pub async fn install(target: &Target) {
    let mut connection = target.connect().await;
    let crd = serde_json::to_vec(&Widget::crd()).expect("a CRD is JSON");
    connection.send(Method::POST, CRDS, crd).await;
    // kube-apiserver serves a new kind some time after it answered.
    while !is_served(&mut connection).await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn is_served(connection: &mut Connection) -> bool {
    let answer = connection.open(Method::GET, &format!("{WIDGETS}?limit=1"), "").await;
    let status = answer.status();
    answer.into_body().collect().await.expect("a whole answer");
    status == StatusCode::OK
}

/// Creates the Secret and the ServiceAccount of each team, which reconciles with a child read.
pub async fn create_teams(target: &Target) {
    let mut connection = target.connect().await;
    for team in 0..TEAMS {
        let name = format!("team-{team}");
        let annotations = json!({ CONTACT: format!("{name}@example.dev") });
        let secret = json!({ "metadata": { "name": name }, "stringData": { "token": format!("token of {name}") } });
        let account = json!({ "metadata": { "name": name, "annotations": annotations } });
        connection.send(Method::POST, SECRETS, secret.to_string()).await;
        connection.send(Method::POST, ACCOUNTS, account.to_string()).await;
    }
}

/// The name of the team that a widget belongs to, and of its objects.
pub fn team(widget: &Widget) -> String {
    widget.labels().get(PART_OF).cloned().unwrap_or_default()
}

/// The data of a widget's child, which differs in each round.
pub fn child_data(round: u64, widget: &Widget, secret: &Secret, account: &ServiceAccount) -> BTreeMap<String, String> {
    let token = secret.data.as_ref().and_then(|data| data.get("token"));
    let token = token.map(|token| String::from_utf8_lossy(&token.0).into_owned());
    let contact = account.annotations().get(CONTACT).cloned();
    BTreeMap::from([
        ("round".to_owned(), round.to_string()),
        ("image".to_owned(), widget.spec.image.clone()),
        ("token".to_owned(), token.unwrap_or_default()),
        ("contact".to_owned(), contact.unwrap_or_default()),
    ])
}

/// Creates the objects of these numbers.
pub async fn fill(target: &Target, numbers: Range<usize>) {
    eprintln!("bench: creating {} objects", numbers.len());
    let tasks = (0..CONNECTIONS).map(|task| {
        let numbers = numbers.clone().skip(task).step_by(CONNECTIONS);
        async move {
            let mut connection = target.connect().await;
            for number in numbers {
                connection.send(Method::POST, WIDGETS, widget(number).to_string()).await;
                if number % 10_000 == 9_999 {
                    eprintln!("bench: … {}", number + 1);
                }
            }
        }
    });
    join_all(tasks).await;
}

fn widget(number: usize) -> Value {
    let name = format!("widget-{number:05}");
    json!({
        "apiVersion": "bench.flyball.dev/v1",
        "kind": "Widget",
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/name": "widget",
                "app.kubernetes.io/instance": name,
                PART_OF: format!("team-{}", number % TEAMS),
                "app.kubernetes.io/managed-by": "bench",
            },
            "annotations": {
                CONTACT: format!("team-{}@example.dev", number % TEAMS),
                "bench.flyball.dev/description": "one of many objects, each as large as the usual custom resource is",
            },
        },
        "spec": {
            "image": format!("registry.example.dev/widgets/server:1.{}.{}", number % 30, number % 7),
            "replicas": number % 5 + 1,
            "env": (0..8).map(variable).collect::<Vec<_>>(),
            "ports": [{ "name": "http", "number": 8080 }, { "name": "metrics", "number": 9090 }],
            "resources": { "cpu": "250m", "memory": "256Mi", "ephemeral-storage": "1Gi" },
            "paused": false,
        },
    })
}

fn variable(index: usize) -> Value {
    json!({ "name": format!("SETTING_{index}"), "value": format!("value-{index}-of-a-setting") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_of_the_size_that_is_claimed_and_of_the_kind() {
        let object = widget(7);
        assert!((1024..2048).contains(&object.to_string().len()), "{}", object.to_string().len());
        let widget: Widget = serde_json::from_value(object).unwrap();
        assert_eq!(widget.spec.env.unwrap().len(), 8);
    }
}
