//! Which clients may read an operator's state: those that the API server knows by a token (TokenReview) and allows the path
//! (SubjectAccessReview).

use crate::{Error, Result};
use axum::{
    extract::{Request as HttpRequest, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use kube::{
    Client,
    api::{PostParams, Request},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap, hash_map::RandomState},
    hash::BuildHasher,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// How many decisions are remembered.
const REMEMBERED: usize = 1_000;
/// controller-runtime's times: who a token belongs to, what is allowed, what is not.
const TOKEN: Duration = Duration::from_secs(60);
const ALLOWED: Duration = Duration::from_secs(5 * 60);
const DENIED: Duration = Duration::from_secs(30);
/// Requests are refused if the API server does not answer a review within this time.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the API server who may pass, and remembers what it said.
pub(crate) struct Gate {
    client: Client,
    /// Tokens are remembered by what they hash to, with a key that only this process has.
    hasher: RandomState,
    users: Mutex<Remembered<u64, Option<User>>>,
    decisions: Mutex<Remembered<Question, Result<(), String>>>,
}

/// Who, with which verb, at which path.
type Question = (User, &'static str, String);

type Remembered<K, V> = HashMap<K, (V, Instant)>;

/// A user as TokenReview tells of it and SubjectAccessReview asks about it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

impl Gate {
    pub(crate) fn new(client: Client) -> Gate {
        Gate {
            client,
            hasher: RandomState::new(),
            users: Mutex::default(),
            decisions: Mutex::default(),
        }
    }

    async fn user(&self, token: &str) -> Result<Option<User>> {
        let hash = self.hasher.hash_one(token);
        if let Some(user) = recall(&self.users, &hash) {
            return Ok(user);
        }
        let review =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token } });
        let status = self.review("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
        let known = status["authenticated"].as_bool().unwrap_or_default();
        let user = known.then(|| serde_json::from_value::<User>(status["user"].clone())).transpose()?;
        remember(&self.users, hash, user.clone(), if known { TOKEN } else { DENIED });
        Ok(user)
    }

    async fn allows(&self, user: &User, verb: &'static str, path: &str) -> Result<Result<(), String>> {
        let question = (user.clone(), verb, path.to_owned());
        if let Some(decision) = recall(&self.decisions, &question) {
            return Ok(decision);
        }
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra,
                "nonResourceAttributes": { "path": path, "verb": verb },
            },
        });
        let status = self.review("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
        let decision = match status["allowed"].as_bool().unwrap_or_default() {
            true => Ok(()),
            false => Err(status["reason"].as_str().unwrap_or_default().to_owned()),
        };
        let time = if decision.is_ok() { ALLOWED } else { DENIED };
        remember(&self.decisions, question, decision.clone(), time);
        Ok(decision)
    }

    /// The status of a review.
    async fn review(&self, path: &str, review: &Value) -> Result<Value> {
        let request = Request::new(path).create(&PostParams::default(), serde_json::to_vec(review)?)?;
        let answer = timeout(REVIEW_TIMEOUT, self.client.request::<Value>(request)).await;
        let mut answer = answer.map_err(|_| Error::from("the API server is silent"))??;
        Ok(answer["status"].take())
    }
}

/// Lets a request pass if its sender may, and says why not otherwise.
pub(crate) async fn admit(State(gate): State<Arc<Gate>>, request: HttpRequest, next: Next) -> Response {
    let (path, verb) = (request.uri().path().to_owned(), verb(request.method()));
    let Some(token) = bearer(request.headers()) else {
        return refusal(
            StatusCode::UNAUTHORIZED,
            "send a token of the cluster as `Authorization: Bearer …`; on loopback none is asked for (--metrics-address 127.0.0.1)"
                .into(),
        );
    };
    let user = match gate.user(token).await {
        Ok(Some(user)) => user,
        Ok(None) => return refusal(StatusCode::UNAUTHORIZED, "the cluster does not know this token".into()),
        Err(error) => return unsure(&error),
    };
    match gate.allows(&user, verb, &path).await {
        Ok(Ok(())) => next.run(request).await,
        Ok(Err(reason)) => {
            let reason = if reason.is_empty() {
                reason
            } else {
                format!(": {reason}")
            };
            let text = format!("user {:?} cannot {verb} path {path:?}{reason}", user.username);
            refusal(StatusCode::FORBIDDEN, text)
        }
        Err(error) => unsure(&error),
    }
}

/// The verb that a rule on `nonResourceURLs` names.
fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn refusal(code: StatusCode, text: String) -> Response {
    let mut refusal = (code, format!("{text}\n")).into_response();
    if code == StatusCode::UNAUTHORIZED {
        refusal
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    refusal
}

/// A request is refused if the API server could not be asked; its error is not part of the answer.
fn unsure(error: &Error) -> Response {
    tracing::warn!(%error, "a request to the admin server could not be reviewed");
    let text = "the API server could not be asked who may do this; the operator's log says why";
    refusal(StatusCode::INTERNAL_SERVER_ERROR, text.into())
}

fn recall<K: Eq + std::hash::Hash, V: Clone>(remembered: &Mutex<Remembered<K, V>>, key: &K) -> Option<V> {
    let remembered = remembered.lock().unwrap_or_else(PoisonError::into_inner);
    let (value, until) = remembered.get(key)?;
    (Instant::now() < *until).then(|| value.clone())
}

fn remember<K: Eq + std::hash::Hash, V>(remembered: &Mutex<Remembered<K, V>>, key: K, value: V, time: Duration) {
    let mut remembered = remembered.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    if remembered.len() >= REMEMBERED {
        remembered.retain(|_, (_, until)| now < *until);
    }
    if remembered.len() >= REMEMBERED {
        remembered.clear();
    }
    remembered.insert(key, (value, now + time));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn decisions_are_remembered_for_a_while_and_not_without_bound() {
        let remembered = Mutex::default();
        for number in 0..3 * REMEMBERED {
            remember(&remembered, number, number, DENIED);
        }
        assert!(remembered.lock().unwrap().len() <= REMEMBERED);
        assert_eq!(recall(&remembered, &(3 * REMEMBERED - 1)), Some(3 * REMEMBERED - 1));
        tokio::time::advance(DENIED).await;
        assert_eq!(recall(&remembered, &(3 * REMEMBERED - 1)), None);
    }
}
