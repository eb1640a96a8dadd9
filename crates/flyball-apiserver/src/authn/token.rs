//! Bearer tokens: static ones from the server's options, those of service accounts, which end with the account and with
//! the object that they are bound to, and those of an OpenID Connect issuer.
// pkg/serviceaccount/claims.go, apiserver/pkg/authentication/token

use crate::authn::user::User;
use crate::registry::object;
use crate::server::ApiServer;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The issuer of service account tokens, and their audience if a request names none.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// How much clocks may differ.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// A token that stands for a user.
#[derive(Clone)]
pub struct StaticToken {
    hash: [u8; 32],
    user: User,
}

impl StaticToken {
    /// A request with this token acts as the user.
    pub fn new(token: &str, user: User) -> StaticToken {
        StaticToken { hash: Sha256::digest(token).into(), user }
    }
}

impl std::fmt::Debug for StaticToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StaticToken").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A user whose token is valid, and the audiences that it is valid for.
#[derive(Debug)]
pub(crate) struct Authenticated {
    /// The user.
    pub user: User,
    /// Those of the wanted audiences that the token is meant for.
    pub audiences: Vec<String>,
}

/// Finds the user of a token; an error says why it is not valid.
pub(crate) async fn authenticate(
    server: &ApiServer,
    token: &str,
    audiences: &[String],
) -> Result<Authenticated, String> {
    // Hashes are compared, so that the time it takes says nothing about a token.
    let hash: [u8; 32] = Sha256::digest(token).into();
    if let Some(known) = server.options().static_tokens.iter().find(|known| known.hash == hash) {
        return Ok(Authenticated { user: known.user.clone(), audiences: audiences.to_vec() });
    }
    let failed = |why: String| format!("[invalid bearer token, {why}]");
    let Some(claims) = server.token_keys().verify(token) else {
        return by_issuer(server, token, audiences)
            .await
            .map_err(failed)?
            .ok_or("invalid bearer token".into());
    };
    let audiences = check_claims(&claims, audiences, server.clock().now()).map_err(failed)?;
    let user = check_objects(server, &claims["kubernetes.io"]).await.map_err(failed)?;
    Ok(Authenticated { user: with_credential(user, &claims), audiences })
}

/// The user of an ID token of the issuer that the options name; none if the token is of another one.
async fn by_issuer(server: &ApiServer, token: &str, audiences: &[String]) -> Result<Option<Authenticated>, String> {
    let Some(oidc) = &server.options().oidc else {
        return Ok(None);
    };
    let Some(user) = oidc.authenticate(token, server.clock().now()).await else {
        return Ok(None);
    };
    let audiences: Vec<String> = audiences.iter().filter(|wanted| *wanted == ISSUER).cloned().collect();
    let user = user?;
    Ok((!audiences.is_empty()).then_some(Authenticated { user, audiences }))
}

/// The claims of a token for a service account that is bound to an object, or to none.
pub(crate) fn claims(account: &Value, bound: Value, seconds: i64, audiences: &[String], now: Timestamp) -> Value {
    let (namespace, name) = (object::text(account, "namespace"), object::name(account));
    let mut private = json!({
        "namespace": namespace,
        "serviceaccount": {"name": name, "uid": object::text(account, "uid")},
    });
    if let (Some(private), Value::Object(bound)) = (private.as_object_mut(), bound) {
        private.extend(bound);
    }
    let now = now.as_second();
    json!({
        "iss": ISSUER,
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "aud": audiences,
        "iat": now,
        "nbf": now,
        "exp": now + seconds,
        "jti": uuid::Uuid::new_v4().to_string(),
        "kubernetes.io": private,
    })
}

/// Checks issuer, audience and times; returns the audiences that are both wanted and meant.
fn check_claims(claims: &Value, wanted: &[String], now: Timestamp) -> Result<Vec<String>, String> {
    if claims["iss"] != ISSUER {
        return Err("the issuer of the token is another one".into());
    }
    let meant: Vec<&str> = claims["aud"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let audiences: Vec<String> = wanted.iter().filter(|wanted| meant.contains(&wanted.as_str())).cloned().collect();
    if audiences.is_empty() {
        let list = |audiences: &[&str]| {
            let quoted: Vec<String> = audiences.iter().map(|audience| format!("{audience:?}")).collect();
            format!("[{}]", quoted.join(" "))
        };
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let (meant, wanted) = (list(&meant), list(&wanted));
        return Err(format!("token audiences {meant} is invalid for the target audiences {wanted}"));
    }
    let time = |claim: &str| claims[claim].as_i64().and_then(|seconds| Timestamp::from_second(seconds).ok());
    if time("exp").is_none_or(|end| now - LEEWAY > end) {
        return Err("service account token has expired".into());
    }
    if time("nbf").is_some_and(|start| now + LEEWAY < start) {
        return Err("service account token is not valid yet".into());
    }
    if time("iat").is_some_and(|start| now + LEEWAY < start) {
        return Err("service account token is issued in the future".into());
    }
    Ok(audiences)
}

/// Checks that the service account and the object that the token is bound to still exist.
async fn check_objects(server: &ApiServer, private: &Value) -> Result<User, String> {
    let text = |path: &Value, field: &str| path[field].as_str().unwrap_or_default().to_owned();
    let (namespace, account) = (text(private, "namespace"), &private["serviceaccount"]);
    let name = text(account, "name");
    let found = get(server, format!("core/serviceaccounts/{namespace}/{name}")).await?;
    let stored = found.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
    let (uid, claimed) = (object::text(&stored, "uid"), text(account, "uid"));
    if uid != claimed {
        return Err(format!("service account UID ({uid}) does not match claim ({claimed})"));
    }
    if is_deleted(server, &stored) {
        return Err(format!("service account {namespace}/{name} has been deleted"));
    }
    let mut user = User::service_account(&namespace, &name);
    user.uid = claimed;
    for (kind, claim) in [("secrets", "secret"), ("pods", "pod"), ("nodes", "node")] {
        let Some(reference) = private.get(claim) else { continue };
        let (name, uid) = (text(reference, "name"), text(reference, "uid"));
        // The node of a pod's token is a remark; only a token bound to the node itself ends with it.
        if claim != "node" || private.get("pod").is_none() {
            let key = match claim {
                "node" => format!("core/nodes/{name}"),
                _ => format!("core/{kind}/{namespace}/{name}"),
            };
            let stored = get(server, key).await?.ok_or("service account token has been invalidated")?;
            let found = object::text(&stored, "uid");
            if found != uid {
                return Err(format!("{claim} UID ({found}) does not match service account {claim} ref claim ({uid})"));
            }
            if is_deleted(server, &stored) {
                return Err("service account token has been invalidated".into());
            }
        }
        if claim != "secret" {
            let prefix = "authentication.kubernetes.io";
            user.extra.insert(format!("{prefix}/{claim}-name"), vec![name]);
            if !uid.is_empty() {
                user.extra.insert(format!("{prefix}/{claim}-uid"), vec![uid]);
            }
        }
    }
    Ok(user)
}

/// Whether an object was to be gone a while ago.
fn is_deleted(server: &ApiServer, stored: &Value) -> bool {
    let deleted: Option<Timestamp> = object::text(stored, "deletionTimestamp").parse().ok();
    deleted.is_some_and(|deleted| deleted < server.clock().now() - LEEWAY)
}

async fn get(server: &ApiServer, key: String) -> Result<Option<Value>, String> {
    let entry = server.store().get(key).await.map_err(|error| error.to_string())?;
    Ok(entry.map(|entry| object::decode(&entry.value)))
}

fn with_credential(mut user: User, claims: &Value) -> User {
    if let Some(id) = claims["jti"].as_str() {
        let key = "authentication.kubernetes.io/credential-id";
        user.extra.insert(key.into(), vec![format!("JTI={id}")]);
    }
    user
}
