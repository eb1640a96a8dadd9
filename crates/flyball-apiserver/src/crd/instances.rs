//! The objects of a definition that is being deleted go before it does.
// apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go

use crate::crd::{Definition, FINALIZER, conditions, write_status};
use crate::registry::Kind;
use crate::registry::object::{self, metadata_mut};
use crate::server::ApiServer;
use crate::status::{Result, Status};
use crate::{clock, endpoints};
use flyball_store::Range;
use serde_json::Value;

/// Removes what there is of a definition's objects, and lets the definition go when none is left; says whether it did.
pub(crate) async fn remove(server: &ApiServer, kind: &Kind, definition: &Definition) -> Result<bool> {
    if !object::finalizers(&definition.object).contains(&FINALIZER) {
        return Ok(false);
    }
    if let Some(instances) = definition.kinds.first() {
        let range = Range::prefix(instances.prefix(None));
        let page = server.store().range(range.clone()).await.map_err(Status::internal)?;
        for entry in page.entries {
            endpoints::purge(server, instances, entry).await?;
        }
        let left = server.store().range(Range { limit: Some(1), ..range }).await.map_err(Status::internal)?;
        if !left.entries.is_empty() {
            return Ok(false);
        }
    }
    let mut object = definition.object.clone();
    let now = clock::seconds(server.clock().now());
    let (reason, message) = ("InstanceDeletionCompleted", "removed all instances");
    conditions::set(&mut object, "Terminating", "False", reason, message, &now);
    let finalizers = metadata_mut(&mut object).get_mut("finalizers").and_then(Value::as_array_mut);
    if let Some(finalizers) = finalizers {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    write_status(server, kind, definition, object).await?;
    Ok(true)
}
