//! Audit events: one stage of one request, as `audit.k8s.io/v1` writes it.

use crate::audit::Level;
use crate::authn::user::User;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub enum Stage {
    /// The request is authenticated and about to be handled.
    RequestReceived,
    /// The headers of a long-running request's response are sent; its body follows.
    ResponseStarted,
    /// The response is complete, or the client has closed the connection.
    ResponseComplete,
    /// Handling the request caused a panic.
    Panic,
}

/// One stage of one request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// `Event`.
    pub kind: &'static str,
    /// `audit.k8s.io/v1`.
    pub api_version: &'static str,
    /// How much of the request is recorded.
    pub level: Level,
    /// Identifies the request.
    #[serde(rename = "auditID")]
    pub audit_id: String,
    /// How far the request has come.
    pub stage: Stage,
    /// The URI as the client sent it.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// The verb of a resource; of other paths, the method in lower case.
    pub verb: String,
    /// The user who is authenticated.
    pub user: AuditUser,
    /// The user as whom the request acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonated_user: Option<AuditUser>,
    /// The address of the client, after those that proxies have added.
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    pub source_ips: Vec<String>,
    /// The `User-Agent` header.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_agent: String,
    /// The object that the request is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_ref: Option<ObjectReference>,
    /// The code of the response, and why it is not a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<Value>,
    /// The object, patch or options that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_object: Option<Value>,
    /// The object that was returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_object: Option<Value>,
    /// When the request arrived.
    pub request_received_timestamp: String,
    /// When it reached the stage.
    pub stage_timestamp: String,
    /// What authorization and admission add.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl AuditEvent {
    /// The code of the response, once there is one.
    pub fn code(&self) -> Option<u64> {
        self.response_status.as_ref()?["code"].as_u64()
    }
}

/// A user in an audit event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditUser {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Tells users of the same name apart.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Further attributes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl From<&User> for AuditUser {
    fn from(user: &User) -> AuditUser {
        let User { name, uid, groups, extra } = user.clone();
        AuditUser { username: name, uid, groups, extra }
    }
}

/// The object that a request is about.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// The plural name of the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The uid, if the client sent one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The version of the group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The resource version, if the client sent one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// The subresource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}
