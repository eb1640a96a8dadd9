//! `token` of a ServiceAccount: issues a token for the account, possibly bound to a pod, a secret or a node.
// pkg/registry/core/serviceaccount/storage/token.go

use crate::admission::{self, Attributes, Operation, Options};
use crate::authn::token::{self, ISSUER};
use crate::clock;
use crate::endpoints::{Subresource, decode};
use crate::registry::object;
use crate::request::context::ResourceRequest;
use crate::request::options::{WriteOptions, causes};
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use flyball_schema::kinds;
use flyball_schema::violation::Violation;
use http::StatusCode;
use jiff::SignedDuration;
use serde_json::{Value, json};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;
const DEFAULT_SECONDS: i64 = 3600;

/// Answers a TokenRequest.
pub(crate) async fn issue(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = WriteOptions::create(&request.info.query, &request.headers)?;
    let node = kinds::builtin()
        .schema("io.k8s.api.authentication.v1.TokenRequest")
        .expect("TokenRequest is in the table");
    let version = format!("{GROUP}/v1");
    let mut body = decode::as_type(request, node, KIND, &version, options.field_validation)?;
    let namespace = request.namespace().unwrap_or_default();
    decode::check_namespace(request, &mut body)?;
    check_name(request, &body)?;
    let mut body = admit(request, &options, body).await?;
    let account = get(request, "serviceaccounts", Some(namespace), request.name()).await?;
    let own = object::text(&account, "uid").to_owned();
    let given = object::text(&body, "uid").to_owned();
    if !given.is_empty() && given != own {
        let why =
            format!("the UID in the token request ({given}) does not match the UID of the service account ({own})");
        return Err(Status::conflict_about(GROUP, KIND, request.name(), why));
    }
    let now = request.server.clock().now();
    let metadata = object::metadata_mut(&mut body);
    metadata.insert("name".into(), request.name().into());
    metadata.insert("uid".into(), own.into());
    metadata.insert("creationTimestamp".into(), clock::seconds(now).into());
    let seconds = body["spec"]["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);
    check_seconds(seconds)?;
    let audiences = audiences(&mut body);
    let bound = bound(request, &body["spec"]["boundObjectRef"], namespace).await?;
    body["spec"]["expirationSeconds"] = seconds.into();
    // Go writes the reference even if there is none.
    if body["spec"]["boundObjectRef"].is_null() {
        body["spec"]["boundObjectRef"] = Value::Null;
    }
    let claims = token::claims(&account, bound, seconds, &audiences, now);
    let end = now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
    body["status"] = json!({
        "token": request.server.token_keys().sign(&claims),
        "expirationTimestamp": clock::seconds(end),
    });
    Ok(ApiResponse::Other { code: StatusCode::CREATED, object: body })
}

/// Runs admission on the TokenRequest.
async fn admit(request: &ResourceRequest, options: &WriteOptions, body: Value) -> Result<Value> {
    let mut attributes = Attributes::new(request, Operation::Create, Options::Write(options));
    attributes.subresource = Subresource::Token;
    attributes.object = body;
    admission::admit(&mut attributes).await?;
    admission::validate(&mut attributes).await?;
    Ok(attributes.object)
}

fn check_name(request: &ResourceRequest, body: &Value) -> Result<()> {
    let given = object::name(body);
    if given.is_empty() || given == request.name() {
        return Ok(());
    }
    let why = "must match the service account name if specified";
    let violation = Violation::invalid("metadata.name", given, why);
    Err(Status::invalid(GROUP, KIND, request.name(), causes(vec![violation])))
}

fn check_seconds(seconds: i64) -> Result<()> {
    let why = match seconds {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let violation = Violation::invalid("spec.expirationSeconds", seconds, why);
    Err(Status::invalid(GROUP, KIND, "", causes(vec![violation])))
}

/// The audiences of a token; the server's own if the request names none.
fn audiences(body: &mut Value) -> Vec<String> {
    let named = body["spec"]["audiences"].as_array().filter(|audiences| !audiences.is_empty());
    match named {
        Some(audiences) => audiences.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => {
            body["spec"]["audiences"] = json!([ISSUER]);
            vec![ISSUER.to_owned()]
        }
    }
}

/// The claims that bind a token to an object.
async fn bound(request: &ResourceRequest, reference: &Value, namespace: &str) -> Result<Value> {
    if !reference.is_object() {
        return Ok(Value::Null);
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (plural, namespace) = match (version.contains('/'), kind) {
        (false, "Pod") => ("pods", Some(namespace)),
        (false, "Secret") => ("secrets", Some(namespace)),
        (false, "Node") => ("nodes", None),
        _ => {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            let why = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(Status::bad_request(why));
        }
    };
    let object = get(request, plural, namespace, name).await?;
    if kind == "Pod" && object["spec"]["serviceAccountName"] != request.name() {
        let account = request.name();
        let why = format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
        );
        return Err(Status::bad_request(why));
    }
    let (uid, given) = (object::text(&object, "uid"), text("uid"));
    if !given.is_empty() && given != uid {
        let why = format!(
            "the UID in the bound object reference ({given}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict_about("", kind, name, why));
    }
    let mut claims = json!({kind.to_lowercase(): {"name": name, "uid": uid}});
    let node = object["spec"]["nodeName"].as_str().filter(|node| kind == "Pod" && !node.is_empty());
    if let Some(node) = node {
        claims["node"] = json!({"name": node});
        if let Ok(stored) = get(request, "nodes", None, node).await {
            claims["node"]["uid"] = object::text(&stored, "uid").into();
        }
    }
    Ok(claims)
}

async fn get(request: &ResourceRequest, plural: &str, namespace: Option<&str>, name: &str) -> Result<Value> {
    let served = request.server.registry().served();
    let kind = served.find("", "v1", plural).expect("core kinds are built in");
    let entry = request.store().get(kind.key(namespace, name)).await.map_err(Status::store_failed)?;
    let entry = entry.ok_or_else(|| Status::not_found(&kind.resource, name))?;
    Ok(object::decode(&entry.value))
}
