//! A webhook in this process, which records the reviews that it is sent.

use crate::ask::Server;
use bytes::Bytes;
use flyball_apiserver::webhook::{Registration, WebhookAddress};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

pub const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// A webhook behind the Service `default/<name>`.
pub struct Hook {
    reviews: Arc<Mutex<Vec<Value>>>,
    _registration: Registration,
}

impl Hook {
    /// A webhook that answers each review as a function says.
    pub fn answering<A>(server: &Server, name: &str, answer: A) -> Hook
    where
        A: Fn(&Value) -> Value + Send + Sync + 'static,
    {
        let (answer, reviews) = (Arc::new(answer), Arc::new(Mutex::new(Vec::new())));
        let seen = reviews.clone();
        let service = tower::service_fn(move |request: Request<Full<Bytes>>| {
            let (answer, seen) = (answer.clone(), seen.clone());
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                let review: Value = serde_json::from_slice(&body).unwrap();
                seen.lock().unwrap().push(review.clone());
                let body = Bytes::from(answer(&review).to_string());
                Ok::<_, std::convert::Infallible>(Response::new(Full::new(body)))
            }
        });
        let address = WebhookAddress::service("default", name);
        let registration = server.0.webhook_services().register(address, service);
        Hook { reviews, _registration: registration }
    }

    /// An admission webhook; the function makes the response, which is given the uid.
    pub fn admitting<A>(server: &Server, name: &str, respond: A) -> Hook
    where
        A: Fn(&Value) -> Value + Send + Sync + 'static,
    {
        Hook::answering(server, name, move |review| {
            let mut response = respond(&review["request"]);
            if response["uid"].is_null() {
                response["uid"] = review["request"]["uid"].clone();
            }
            json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response})
        })
    }

    /// The requests of the reviews since this was last called.
    pub fn requests(&self) -> Vec<Value> {
        let reviews = std::mem::take(&mut *self.reviews.lock().unwrap());
        reviews.into_iter().map(|mut review| review["request"].take()).collect()
    }
}

/// A webhook that is called for every write of some resources.
pub fn webhook(service: &str, resources: Value) -> Value {
    json!({
        "name": format!("{service}.example.dev"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "default", "name": service, "path": "/review"}},
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources}],
    })
}

pub fn configuration(name: &str, webhooks: Value) -> Value {
    json!({"metadata": {"name": name}, "webhooks": webhooks})
}

/// A webhook with some fields replaced.
pub fn with(mut webhook: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        webhook[name] = value.clone();
    }
    webhook
}

pub fn allow(_request: &Value) -> Value {
    json!({"allowed": true})
}

/// A response with a JSON patch.
pub fn patch(operations: Value) -> Value {
    use base64::Engine;
    let patch = base64::engine::general_purpose::STANDARD.encode(operations.to_string());
    json!({"allowed": true, "patch": patch, "patchType": "JSONPatch"})
}

/// The texts of the Warning headers.
pub fn warnings(headers: &http::HeaderMap) -> Vec<String> {
    headers
        .get_all("warning")
        .iter()
        .map(|value| value.to_str().unwrap().to_owned())
        .collect()
}
