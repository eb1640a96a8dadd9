//! ResourceQuota: a write is charged to the quotas of its namespace in its own commit, so that concurrent writes cannot
//! exceed them. What deleted objects used is given back by a controller, which counts again.
// apiserver/pkg/admission/plugin/resourcequota

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::endpoints::{FieldManager, Subresource};
use crate::kinds::core::RESOURCE_QUOTA;
use crate::registry::{Kind, object};
use crate::status::{Result, Status};
use flyball_schema::builtin::quota::{self, Resource, Write};
use flyball_store::{Entry, Expect, Op, Range};
use futures::future::{self, BoxFuture, FutureExt};
use serde_json::Value;
use std::sync::Arc;

/// A key for each namespace that every new quota writes: a commit that depends on it has seen all quotas.
const MARKER: &str = "flyball/quotas/";

/// The operation that removes what is kept of the quotas of a namespace that is removed.
pub(crate) fn forget_quotas(namespace: &str) -> Op {
    Op::delete(format!("{MARKER}{namespace}"), Expect::Anything)
}

/// The plugin. It is the last validating one, so that it charges what is stored.
///
/// The controller counts what is stored and then writes the status of the quota as it read it. For the count to hold,
/// every commit of an object that a quota measures changes the quota, or fails if the quota has changed.
pub(super) struct ResourceQuota;

impl Plugin for ResourceQuota {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let is_write = attributes.operation != Operation::Delete;
        is_write && attributes.namespace.is_some() && write(attributes).is_measured()
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let Some(namespace) = attributes.namespace else {
                return Ok(());
            };
            let marker = format!("{MARKER}{namespace}");
            let (seen, (kind, quotas)) =
                future::try_join(attributes.get(marker.clone()), quotas(attributes, namespace)).await?;
            let values: Vec<Value> = quotas.iter().map(|entry| object::decode(&entry.value)).collect();
            let charged = quota::charge(&values, &write(attributes)).map_err(|why| attributes.forbidden(why))?;
            for ((entry, value), used) in quotas.iter().zip(values).zip(charged) {
                match used {
                    Some(used) => attributes.commit_with(charge(attributes, &kind, entry, value, used)),
                    None if is_uncounted(attributes, &value) => attributes.commit_with(touch(&kind, entry, value)),
                    None => attributes.require(entry),
                }
            }
            attributes.commit_with(match (attributes.creates(&RESOURCE_QUOTA), seen) {
                (true, _) => Op::put(marker, bytes::Bytes::new(), Expect::Anything),
                (false, Some(entry)) => Op::check(entry.key, Expect::Revision(entry.revision)),
                (false, None) => Op::check(marker, Expect::Absent),
            });
            Ok(())
        }
        .boxed()
    }
}

fn write<'a>(attributes: &'a Attributes<'_>) -> Write<'a> {
    let resource = &attributes.request.kind.resource;
    Write {
        resource: Resource { group: &resource.group, plural: &resource.plural },
        subresource: attributes.subresource.subresource(),
        object: &attributes.object,
        old: attributes.old,
        now: attributes.request.server.clock().now(),
    }
}

async fn quotas(attributes: &Attributes<'_>, namespace: &str) -> Result<(Arc<Kind>, Vec<Entry>)> {
    let served = attributes.request.server.registry().served();
    let kind = served.find("", "v1", RESOURCE_QUOTA.plural).expect("quotas are built in").clone();
    let page = attributes.request.store().range(Range::prefix(kind.prefix(Some(namespace)))).await;
    Ok((kind, page.map_err(Status::store_failed)?.entries))
}

/// Whether the controller is still to count what the write changes: the quota was created or extended a moment ago.
fn is_uncounted(attributes: &Attributes<'_>, value: &Value) -> bool {
    let names: Vec<String> = value["spec"]["hard"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    let write = write(attributes);
    let matching = quota::matching(write.resource, &names);
    let is_counted = |name: &&str| value["status"]["used"].get(*name).is_some();
    !matching.iter().all(is_counted) && quota::includes(write.resource, value, write.object)
}

fn put(kind: &Kind, entry: &Entry, value: Value) -> Op {
    Op::put(entry.key.clone(), kind.encode_built_in(value), Expect::Revision(entry.revision))
}

/// Gives a quota a new version, so that a count of the controller that is under way is repeated.
fn touch(kind: &Kind, entry: &Entry, value: Value) -> Op {
    put(kind, entry, value)
}

fn charge(attributes: &Attributes<'_>, kind: &Kind, entry: &Entry, mut value: Value, used: Value) -> Op {
    let old = value.clone();
    value["status"]["used"] = used;
    let manager = FieldManager {
        kind,
        others: Vec::new(),
        subresource: Subresource::Status,
        manager: "kube-apiserver",
        now: attributes.request.now(),
    };
    manager.update(Some(&old), &mut value);
    put(kind, entry, value)
}
