//! The history of a StatefulSet or DaemonSet: one ControllerRevision per template.

use crate::{
    claim::{self, Member},
    owner, refusal,
    template_hash::{fnv1, safe_text},
};
use flyball::{Context, Result};
use k8s_openapi::{
    api::apps::v1::ControllerRevision,
    apimachinery::pkg::{apis::meta::v1::LabelSelector, runtime::RawExtension},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// The label that names the revision which a pod was made of; a DaemonSet's revisions have it, too.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";
/// The label of a StatefulSet's revisions.
pub(crate) const REVISION_LABEL: &str = "controller.kubernetes.io/hash";

/// The longest part of an owner's name that a revision's name begins with.
const MAX_PREFIX: usize = 223;

/// The revisions of an owner, the oldest first, after adopting and releasing.
pub(crate) async fn revisions<K: Member>(
    owner: &K,
    selector: &LabelSelector,
    ctx: &Context,
) -> Result<Vec<Arc<ControllerRevision>>> {
    let mut revisions = claim::claim::<K, ControllerRevision>(owner, selector, ctx).await?;
    revisions.sort_by(|one, other| {
        let age = |it: &ControllerRevision| it.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let order = one.revision.cmp(&other.revision).then_with(|| age(one).cmp(&age(other)));
        order.then_with(|| one.name_any().cmp(&other.name_any()))
    });
    Ok(revisions)
}

/// What a revision keeps of a template.
pub(crate) fn data(template: &impl Serialize) -> Value {
    let mut template = serde_json::to_value(template).unwrap_or_default();
    if let Some(template) = template.as_object_mut() {
        template.insert("$patch".into(), "replace".into());
    }
    json!({ "spec": { "template": template } })
}

/// The template that a revision keeps.
pub(crate) fn template<T: serde::de::DeserializeOwned>(revision: &ControllerRevision) -> Option<T> {
    let mut template = revision.data.as_ref()?.0.get("spec")?.get("template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// The revision of the present template, made if there is none, and the newest in any case.
// pkg/controller/statefulset/stateful_set_control.go, getStatefulSetRevisions
pub(crate) async fn current<K: Member>(
    owner: &K,
    (labels, label): (&BTreeMap<String, String>, &str),
    data: Value,
    known: &[Arc<ControllerRevision>],
    collisions: &mut i32,
    ctx: &Context,
) -> Result<Arc<ControllerRevision>> {
    let next = known.last().map_or(1, |last| last.revision + 1);
    let equal = known.iter().rev().find(|known| known.data.as_ref().is_some_and(|known| known.0 == data));
    let api: Api<ControllerRevision> = Api::namespaced(ctx.client(), &owner.namespace().unwrap_or_default());
    match (equal, known.last()) {
        (Some(equal), Some(last)) if equal.metadata.uid == last.metadata.uid => Ok(equal.clone()),
        (Some(equal), _) => {
            let patch = Patch::Merge(json!({ "revision": next }));
            Ok(Arc::new(api.patch(&equal.name_any(), &PatchParams::default(), &patch).await?))
        }
        (None, _) => loop {
            let revision = revision(owner, (labels, label), &data, next, *collisions);
            match api.create(&PostParams::default(), &revision).await {
                Err(error) if refusal::already_exists(&error) => {
                    let exists = api.get(&revision.name_any()).await?;
                    if exists.data.as_ref().is_some_and(|exists| exists.0 == data) {
                        return Ok(Arc::new(exists));
                    }
                    *collisions += 1;
                }
                created => return Ok(Arc::new(created?)),
            }
        },
    }
}

fn revision<K: Member>(
    owner: &K,
    (labels, label): (&BTreeMap<String, String>, &str),
    data: &Value,
    number: i64,
    collisions: i32,
) -> ControllerRevision {
    let hash = hash(data, collisions);
    let name = owner.name_any();
    let prefix = &name[..name.len().min(MAX_PREFIX)];
    let mut labels = labels.clone();
    labels.insert(label.into(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{prefix}-{hash}")),
            namespace: owner.namespace(),
            labels: Some(labels),
            owner_references: Some(vec![owner::reference(owner)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data.clone())),
        revision: number,
    }
}

// pkg/controller/history/controller_history.go, HashControllerRevision
fn hash(data: &Value, collisions: i32) -> String {
    let text = format!("{data}{collisions}");
    safe_text(fnv1(text.as_bytes()))
}

/// Deletes the oldest revisions that are neither among `live` nor within the limit.
pub(crate) async fn truncate(
    known: &[Arc<ControllerRevision>],
    live: &[&str],
    limit: i32,
    ctx: &Context,
) -> Result<()> {
    let old: Vec<_> = known.iter().filter(|known| !live.contains(&known.name_any().as_str())).collect();
    let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    for revision in old.into_iter().take(surplus) {
        let api: Api<ControllerRevision> = Api::namespaced(ctx.client(), &revision.namespace().unwrap_or_default());
        match api.delete(&revision.name_any(), &DeleteParams::default()).await {
            Err(error) if refusal::is_not_found(&error) => {}
            deleted => drop(deleted?),
        }
    }
    Ok(())
}
