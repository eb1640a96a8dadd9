//! Counts what the objects of a namespace use of its ResourceQuotas: when a quota is written, when objects are deleted or
//! end, and from time to time. Admission charges new objects, so a count that another write overtakes is repeated.
// pkg/controller/resourcequota/resource_quota_controller.go

use crate::{kinds::Kinds, refusal};
use flyball::{Action, Context, Controller, Error, Key, Predicate, Reconciler, Result, Trigger};
use flyball_schema::builtin::quota::{self, Amounts, Resource};
use flyball_store::{Event, Range, Store};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// How often everything is counted again.
const RESYNC: Duration = Duration::from_secs(300);
/// How soon a count is repeated that another write has overtaken.
const RETRY: Duration = Duration::from_millis(20);
/// Kinds whose objects are measured; of all others they are counted.
const MEASURED: [&str; 3] = ["pods", "services", "persistentvolumeclaims"];

/// The controller of quotas. The trigger names the quotas of namespaces that objects have left.
pub(crate) fn controller(kinds: &Kinds, freed: &Trigger) -> Controller<ResourceQuota> {
    let is_new = |old: &ResourceQuota, new: &ResourceQuota| {
        let wanted = new.spec.as_ref().and_then(|spec| spec.hard.as_ref());
        old.spec != new.spec || wanted != new.status.as_ref().and_then(|status| status.hard.as_ref())
    };
    Controller::new(Counter { kinds: kinds.clone() })
        .named("resourcequota-controller")
        .when::<ResourceQuota>(Predicate::changed(is_new))
        .triggered_by(freed)
}

struct Counter {
    kinds: Kinds,
}

impl Reconciler<ResourceQuota> for Counter {
    async fn reconcile(&self, quota: Arc<ResourceQuota>, ctx: Context) -> Result {
        let (namespace, name) = (quota.namespace().unwrap_or_default(), quota.name_any());
        let api = Api::namespaced_with(ctx.client(), &namespace, &ApiResource::erase::<ResourceQuota>(&()));
        // The quota is read before the objects: whatever is charged after this changes its version.
        let Some(quota) = api.get_opt(&name).await? else {
            return Ok(Action::await_change());
        };
        let mut value = json(&quota)?;
        let used = self.count(&value, &namespace, &ctx).await?;
        let status = json!({ "hard": value["spec"]["hard"], "used": used });
        if value["status"] == status {
            return Ok(Action::requeue_after(RESYNC));
        }
        value["status"] = status;
        let new: DynamicObject = serde_json::from_value(value).map_err(Error::permanent)?;
        match api.replace_status(&name, &PostParams::default(), &new).await {
            Ok(_) => Ok(Action::requeue_after(RESYNC)),
            Err(error) if refusal::is_conflict(&error) => Ok(Action::requeue_after(RETRY)),
            Err(error) if refusal::is_not_found(&error) => Ok(Action::await_change()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Counter {
    /// What the objects of all kinds use; what no kind uses stays as it was.
    // quota.CalculateUsage
    async fn count(&self, quota: &Value, namespace: &str, ctx: &Context) -> Result<Value> {
        let hard: Vec<String> = members(&quota["spec"]["hard"]).map(|(name, _)| name.clone()).collect();
        let mut total = Amounts::new();
        for kind in self.kinds.all().into_iter().filter(|kind| kind.namespaced && kind.can(&["list"])) {
            let resource = Resource { group: &kind.resource.group, plural: &kind.resource.plural };
            let names = quota::matching(resource, &hard);
            if names.is_empty() {
                continue;
            }
            let nothing = || "0".parse().expect("zero is a quantity");
            for name in names {
                total.entry(name.to_owned()).or_insert_with(nothing);
            }
            for object in self.objects(&kind.resource, namespace, ctx).await? {
                quota::add_usage(&mut total, resource, quota, &object, ctx.now().0);
            }
        }
        let mut used = quota::to_value(&total);
        for (name, amount) in members(&quota["status"]["used"]) {
            if hard.contains(name) && used.get(name).is_none() {
                used[name] = amount.clone();
            }
        }
        Ok(used)
    }

    async fn objects(&self, resource: &ApiResource, namespace: &str, ctx: &Context) -> Result<Vec<Value>> {
        let api: Api<DynamicObject> = Api::namespaced_with(ctx.client(), namespace, resource);
        let everything = ListParams::default();
        if resource.group.is_empty() && MEASURED.contains(&&*resource.plural) {
            return api.list(&everything).await?.items.iter().map(json).collect();
        }
        api.list_metadata(&everything).await?.items.iter().map(json).collect()
    }
}

fn json(object: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(object).map_err(Error::permanent)
}

fn members(map: &Value) -> impl Iterator<Item = (&String, &Value)> {
    map.as_object().into_iter().flatten()
}

/// Watches for objects that use less than before, and asks for a count of the quotas of their namespaces.
pub(crate) async fn follow(store: Store, freed: Trigger) -> Result<()> {
    let mut watch = store.watch("", store.revision()).await.map_err(Error::retry)?;
    // Objects may have left before the watch began.
    freed.reconcile_all();
    while let Some(event) = watch.next().await {
        let event = event.map_err(Error::retry)?;
        let Some(namespace) = freed_namespace(&event) else {
            continue;
        };
        let prefix = format!("core/resourcequotas/{namespace}/");
        let quotas = store.range(Range::prefix(prefix.clone())).await.map_err(Error::retry)?;
        for quota in quotas.entries {
            let name = String::from_utf8_lossy(&quota.key[prefix.len()..]).into_owned();
            freed.reconcile(Key::namespaced(&*namespace, name))?;
        }
    }
    Err(Error::retry("the watch of all objects has ended"))
}

/// The namespace of an object that is deleted, or whose update may free something.
// pkg/quota/v1/install/update_filter.go
fn freed_namespace(event: &Event) -> Option<String> {
    let key = std::str::from_utf8(&event.key).ok()?;
    let mut parts = key.split('/');
    let (group, plural, namespace, _name) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_freed = match (&event.value, group, plural) {
        (None, _, _) => group != "flyball",
        (Some(pod), "core", "pods") if !event.created => has_ended(pod),
        (Some(_), "core", "services" | "persistentvolumeclaims") => !event.created,
        _ => false,
    };
    is_freed.then(|| namespace.to_owned())
}

fn has_ended(pod: &[u8]) -> bool {
    let pod: Value = serde_json::from_slice(pod).unwrap_or_default();
    matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"))
}
