//! What is recorded of one request while it is handled.

use crate::audit::policy::Recorded;
use crate::audit::{AuditEvent, AuditSink, AuditUser, Level, ObjectReference, Stage};
use crate::authn::user::User;
use crate::clock;
use crate::request::context::RequestContext;
use crate::request::info::ResourceInfo;
use crate::response::ApiResponse;
use crate::status::Status;
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The audit record of a request, shared by the filters and the endpoint that handle it.
pub(crate) struct AuditRecord {
    sink: Arc<dyn AuditSink>,
    recorded: Recorded,
    event: Mutex<AuditEvent>,
}

impl AuditRecord {
    /// The record of a request that has arrived; its connection and its headers say who sent it.
    pub fn new(
        sink: Arc<dyn AuditSink>,
        recorded: Recorded,
        context: &RequestContext,
        request: &http::request::Parts,
    ) -> AuditRecord {
        let now = clock::microseconds(context.server.clock().now());
        let agent = request.headers.get(http::header::USER_AGENT);
        let event = AuditEvent {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: recorded.level,
            audit_id: context.audit_id.to_str().unwrap_or_default().to_owned(),
            stage: Stage::RequestReceived,
            request_uri: request.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            verb: context.info.verb().into_owned(),
            user: AuditUser::from(&context.user),
            impersonated_user: None,
            source_ips: source_addresses(request),
            user_agent: agent
                .map(|agent| String::from_utf8_lossy(agent.as_bytes()).into_owned())
                .unwrap_or_default(),
            object_ref: context.info.resource.as_ref().map(reference),
            response_status: None,
            request_object: None,
            response_object: None,
            request_received_timestamp: now.clone(),
            stage_timestamp: now,
            annotations: Default::default(),
        };
        AuditRecord { sink, recorded, event: Mutex::new(event) }
    }

    fn event(&self) -> MutexGuard<'_, AuditEvent> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the event of a stage to the sink, unless the policy omits it.
    pub fn stage(&self, context: &RequestContext, stage: Stage) {
        if self.recorded.omit_stages.contains(&stage) {
            return;
        }
        let event = {
            let mut event = self.event();
            event.stage = stage;
            event.stage_timestamp = clock::microseconds(context.server.clock().now());
            event.annotations = context.annotations();
            event.clone()
        };
        self.sink.record(&event);
    }

    /// Records the user as whom the request acts.
    pub fn impersonated(&self, user: &User) {
        self.event().impersonated_user = Some(AuditUser::from(user));
    }

    /// Records the object, patch or options that were sent.
    // apiserver/pkg/audit/request.go, LogRequestObject
    pub fn request_object(&self, object: &Value) {
        let mut event = self.event();
        if let Some(reference) = &mut event.object_ref {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            for (own, field) in [
                (&mut reference.namespace, "namespace"),
                (&mut reference.name, "name"),
                (&mut reference.uid, "uid"),
                (&mut reference.resource_version, "resourceVersion"),
            ] {
                if own.is_empty() {
                    *own = text(field);
                }
            }
        }
        if self.recorded.level >= Level::Request {
            event.request_object = Some(self.shown(object.clone()));
        }
    }

    /// Records what the endpoint returns.
    pub fn response(&self, result: &Result<ApiResponse, Status>) {
        match result {
            Err(status) => self.refused(status),
            Ok(ApiResponse::Done(status)) => self.response_object(|| json!(status)),
            Ok(ApiResponse::Object { object, .. }) => self.response_object(|| parse(object)),
            Ok(ApiResponse::Other { object, .. }) => self.response_object(|| object.clone()),
            Ok(ApiResponse::List(list)) => self.response_object(|| {
                let resource = &list.kind.resource;
                let items: Vec<Value> = list.items.iter().map(|item| self.shown(parse(item))).collect();
                json!({"kind": format!("{}List", resource.kind), "apiVersion": resource.api_version(),
                    "metadata": {"resourceVersion": list.resource_version.to_string()}, "items": items})
            }),
            Ok(ApiResponse::Watch { .. }) => {}
        }
    }

    fn response_object(&self, object: impl FnOnce() -> Value) {
        if self.recorded.level >= Level::RequestResponse {
            let object = self.shown(object());
            self.event().response_object = Some(object);
        }
    }

    /// Records that the request is refused.
    pub fn refused(&self, status: &Status) {
        let mut shown = json!(status);
        self.response_object(|| shown.clone());
        if let Some(members) = shown.as_object_mut() {
            members.remove("kind");
            members.remove("apiVersion");
        }
        self.event().response_status = Some(shown);
    }

    /// Records the code of the response, if nothing more is known of it.
    pub fn code(&self, code: StatusCode) {
        let mut event = self.event();
        let status = event.response_status.get_or_insert_with(|| json!({"metadata": {}}));
        status["code"] = code.as_u16().into();
    }

    fn shown(&self, mut object: Value) -> Value {
        if self.recorded.omit_managed_fields
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("managedFields");
        }
        object
    }
}

fn parse(object: &[u8]) -> Value {
    serde_json::from_slice(object).unwrap_or_default()
}

fn reference(target: &ResourceInfo) -> ObjectReference {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    ObjectReference {
        resource: target.resource.clone(),
        namespace: text(&target.namespace),
        name: text(&target.name),
        api_group: target.group.clone(),
        api_version: target.version.clone(),
        subresource: text(&target.subresource),
        ..ObjectReference::default()
    }
}

/// The addresses of the client: those that proxies name, then that of the connection.
// apimachinery/pkg/util/net/http.go, SourceIPs
fn source_addresses(request: &http::request::Parts) -> Vec<String> {
    let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let forwarded = header("x-forwarded-for").split(',').map(str::trim);
    let mut addresses: Vec<String> = forwarded
        .filter(|address| address.parse::<std::net::IpAddr>().is_ok())
        .map(str::to_owned)
        .collect();
    let real = header("x-real-ip");
    if real.parse::<std::net::IpAddr>().is_ok() && addresses.iter().all(|address| address != real) {
        addresses.push(real.to_owned());
    }
    if let Some(crate::http::connection::ClientAddress(address)) = request.extensions.get() {
        let address = address.ip().to_string();
        if addresses.last() != Some(&address) {
            addresses.push(address);
        }
    }
    addresses
}
