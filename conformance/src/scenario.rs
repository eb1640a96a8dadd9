//! What a scenario does to a cluster and waits for in it: plain requests, and `until`, which says what was last seen.

use std::time::{Duration, Instant};

use http::Request;
use serde_json::Value;

use crate::report::sentence;

/// How long something may take to come true.
const WITHIN: Duration = Duration::from_secs(60);

/// A cluster as a scenario sees it.
#[derive(Clone)]
pub struct World {
    client: kube::Client,
}

impl World {
    /// The cluster behind `client`.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// The object or list at `path`; none if there is no such thing.
    pub async fn get(&self, path: &str) -> Result<Option<Value>, String> {
        match self.send("GET", path, None).await {
            Ok(object) => Ok(Some(object)),
            // 429 is what a kind answers while its storage is being made.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 429) => Ok(None),
            Err(error) => Err(format!("GET {path}: {}", sentence(&error))),
        }
    }

    /// Creates `object` in the collection at `path`.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, String> {
        self.send("POST", path, Some(object))
            .await
            .map_err(|error| format!("POST {path}: {}", sentence(&error)))
    }

    /// Merges `patch` into the object at `path`.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value, String> {
        self.send("PATCH", path, Some(patch))
            .await
            .map_err(|error| format!("PATCH {path}: {}", sentence(&error)))
    }

    /// Deletes the object at `path`.
    pub async fn delete(&self, path: &str) -> Result<(), String> {
        let deleted = self.send("DELETE", path, None).await;
        deleted.map(drop).map_err(|error| format!("DELETE {path}: {}", sentence(&error)))
    }

    /// The status code that creating `object` at `path` is refused with.
    pub async fn refusal(&self, path: &str, object: &Value) -> Result<u16, String> {
        match self.send("POST", path, Some(object)).await {
            Err(kube::Error::Api(status)) => Ok(status.code),
            Err(error) => Err(sentence(&error)),
            Ok(_) => Err(format!("POST {path} was not refused")),
        }
    }

    /// Looks at `path` until what is there is as `expected` says.
    pub async fn until(&self, path: &str, expected: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let started = Instant::now();
        loop {
            let seen = self.get(path).await?.unwrap_or_default();
            if expected(&seen) {
                return Ok(seen);
            }
            if started.elapsed() > WITHIN {
                return Err(format!("{path} did not become so within {} s; last seen: {seen}", WITHIN.as_secs()));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Looks at `path` until nothing is there, or nothing that the selector in its query chooses.
    pub async fn until_gone(&self, path: &str) -> Result<(), String> {
        let gone = |seen: &Value| seen.is_null() || seen["items"].as_array().is_some_and(Vec::is_empty);
        self.until(path, gone).await.map(drop)
    }

    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, kube::Error> {
        let media = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let request = Request::builder().method(method).uri(path).header("Content-Type", media);
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        self.client.request(request.body(body).map_err(kube::Error::HttpError)?).await
    }
}
