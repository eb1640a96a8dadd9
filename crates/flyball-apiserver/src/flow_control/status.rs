//! The condition `Dangling` of FlowSchemas: whether their priority level exists.
// apiserver/pkg/util/flowcontrol/apf_controller.go, digestConfigObjects

use crate::clock;
use crate::endpoints;
use crate::flow_control::GROUP;
use crate::internal;
use crate::server::ApiServer;
use futures::future::{BoxFuture, FutureExt};
use http::Method;
use serde_json::{Value, json};

/// The field manager of the condition.
pub(crate) const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

/// The condition of a schema.
pub(crate) fn condition(level: &str, is_dangling: bool, now: &str) -> Value {
    let subject = format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?}");
    let (status, reason, rest) = match is_dangling {
        true => ("True", "NotFound", "but there is no such object"),
        false => ("False", "Found", "and it exists"),
    };
    json!({"type": "Dangling", "status": status, "reason": reason, "lastTransitionTime": now,
        "message": format!("{subject} {rest}")})
}

/// Sets the condition of every schema that has another one.
pub(crate) fn refresh(server: &ApiServer) -> BoxFuture<'_, ()> {
    async move {
        let Ok(changed) = changed(server).await else {
            return;
        };
        for (name, condition) in changed {
            let path = format!("/apis/{GROUP}/v1/flowschemas/{name}/status?fieldManager={MANAGER}&force=true");
            let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "FlowSchema", "metadata": {"name": name},
                "status": {"conditions": [condition]}});
            let request = internal::request(server, Method::PATCH, &path, &object);
            let outcome = match request {
                Ok(request) => endpoints::handle(&request).await.map(drop),
                Err(status) => Err(status),
            };
            if let Err(status) = outcome.or_else(|status| if status.code == 404 { Ok(()) } else { Err(status) }) {
                tracing::warn!(name, message = status.message, "set the status of a flow schema");
            }
        }
    }
    .boxed()
}

async fn changed(server: &ApiServer) -> crate::status::Result<Vec<(String, Value)>> {
    let now = clock::seconds(server.clock().now());
    let configuration = server.flow_control().configuration.read(server.store()).await?;
    let mut changed = Vec::new();
    for schema in configuration.schemas.iter().filter(|schema| !schema.uid.is_empty()) {
        let is_dangling = configuration.is_dangling(schema);
        let expected = if is_dangling { "True" } else { "False" };
        if schema.dangling.as_deref() != Some(expected) {
            let level = &schema.spec.priority_level_configuration.name;
            changed.push((schema.name.clone(), condition(level, is_dangling, &now)));
        }
    }
    Ok(changed)
}
