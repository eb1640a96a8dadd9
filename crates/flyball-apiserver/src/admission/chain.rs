//! The admission chain: every plugin, in the order in which they are asked.
// apiserver/pkg/admission/chain.go

use crate::admission::Attributes;
use crate::admission::certificates::{CertificateRequester, CertificateSigning, CertificateSubjectRestriction};
use crate::admission::escalation::EscalationCheck;
use crate::admission::limit_ranger::LimitRanger;
use crate::admission::namespace_lifecycle::NamespaceLifecycle;
use crate::admission::pod_defaults::{DefaultTolerationSeconds, PodTopologyLabels, TaintNodesByCondition};
use crate::admission::pod_security::PodSecurity;
use crate::admission::policy::{MutatingAdmissionPolicy, PolicyAccess, ValidatingAdmissionPolicy};
use crate::admission::priority::Priority;
use crate::admission::resource_quota::ResourceQuota;
use crate::admission::runtime_class::RuntimeClass;
use crate::admission::service_account::ServiceAccount;
use crate::admission::storage::{
    DefaultIngressClass, DefaultStorageClass, PersistentVolumeClaimResize, StorageObjectInUseProtection,
};
use crate::admission::webhook::{MutatingAdmissionWebhook, ValidatingAdmissionWebhook};
use crate::registry::object;
use crate::status::{Result, Status};
use flyball_schema::managed_fields;
use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;

/// The plugins in upstream's order.
// pkg/kubeapiserver/options/plugins.go, AllOrderedPlugins
static PLUGINS: &[&dyn Plugin] = &[
    &NamespaceLifecycle,
    &LimitRanger,
    &ServiceAccount,
    &TaintNodesByCondition,
    &PodSecurity,
    &Priority,
    &DefaultTolerationSeconds,
    &DefaultStorageClass,
    &StorageObjectInUseProtection,
    &PersistentVolumeClaimResize,
    &RuntimeClass,
    &CertificateSigning,
    &CertificateSubjectRestriction,
    &DefaultIngressClass,
    &PodTopologyLabels,
    &MutatingAdmissionPolicy,
    &MutatingAdmissionWebhook,
    &CertificateRequester,
    &EscalationCheck,
    &PolicyAccess,
    &ValidatingAdmissionPolicy,
    &ValidatingAdmissionWebhook,
    &ResourceQuota,
    #[cfg(test)]
    &tests::Recorder,
];

/// An admission plugin. Both steps may wait for the store or for other servers; neither may change anything but the
/// object and what the commit depends on.
pub(crate) trait Plugin: Sync {
    /// The name by which users know the plugin: that of its type.
    fn name(&self) -> &'static str {
        let path = std::any::type_name::<Self>();
        path.rsplit("::").next().unwrap_or(path)
    }

    /// Whether the plugin is asked about a write at all.
    fn handles(&self, attributes: &Attributes<'_>) -> bool;

    /// The mutating step: may change the object, or refuse it. Runs before validation.
    fn admit<'a>(&'a self, _attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        ready(Ok(())).boxed()
    }

    /// The validating step: may refuse the object. Runs after validation.
    fn validate<'a>(&'a self, _attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        ready(Ok(())).boxed()
    }
}

/// Plugins that are part of a kind's storage upstream, and cannot be disabled there.
const MANDATORY: [&str; 3] = ["CertificateRequester", "EscalationCheck", "PolicyAccess"];

/// Refuses names of plugins that are not built in, or cannot be disabled.
pub(crate) fn check_names(names: &[String]) -> Result<()> {
    let is_optional = |name: &String| {
        let mut plugins = PLUGINS.iter().map(|plugin| plugin.name());
        plugins.any(|known| known == name) && !MANDATORY.contains(&name.as_str())
    };
    match names.iter().find(|name| !is_optional(name)) {
        Some(name) => Err(Status::bad_request(format!("unknown admission plugin {name:?}"))),
        None => Ok(()),
    }
}

fn is_asked(plugin: &dyn Plugin, attributes: &Attributes<'_>) -> bool {
    let disabled = &attributes.request.server.options().disabled_admission_plugins;
    plugin.handles(attributes) && !disabled.iter().any(|name| name == plugin.name())
}

/// Runs the mutating steps, twice if a plugin asks for it.
// apiserver/pkg/admission/reinvocation.go
pub(crate) async fn admit(attributes: &mut Attributes<'_>) -> Result<()> {
    admit_once(attributes).await?;
    if attributes.reinvocation.is_required {
        attributes.reinvocation.is_second_round = true;
        admit_once(attributes).await?;
    }
    if let Some(before) = attributes.managed_fields_before.take() {
        restore_managed_fields(attributes, before);
    }
    Ok(())
}

/// Restores managed fields that a webhook or a policy has damaged, with a warning.
// apiserver/pkg/endpoints/handlers/fieldmanager/admission.go
fn restore_managed_fields(attributes: &mut Attributes<'_>, before: Value) {
    let Err(why) = managed_fields::validate(&attributes.object) else {
        return;
    };
    let metadata = object::metadata_mut(&mut attributes.object);
    match before {
        Value::Null => metadata.remove("managedFields"),
        before => metadata.insert("managedFields".into(), before),
    };
    attributes.request.warn(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating \
         admission controller; please fix your requests: {why}"
    ));
}

async fn admit_once(attributes: &mut Attributes<'_>) -> Result<()> {
    for plugin in PLUGINS {
        if is_asked(*plugin, attributes) {
            plugin.admit(attributes).await?;
        }
    }
    Ok(())
}

/// Runs the validating steps.
pub(crate) async fn validate(attributes: &mut Attributes<'_>) -> Result<()> {
    for plugin in PLUGINS {
        if is_asked(*plugin, attributes) {
            plugin.validate(attributes).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::user::User;
    use crate::server::ApiServer;
    use flyball_store::Store;
    use http::Request;
    use http_body_util::{BodyExt, Full};
    use serde_json::json;
    use std::cell::RefCell;

    thread_local! {
        /// What the plugins of this thread's test were asked, since it was last taken.
        static ASKED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    /// Keeps what it is asked.
    pub(super) struct Recorder;

    impl Recorder {
        fn record(step: &str, attributes: &Attributes<'_>) {
            let kind = |object: &Value| match object["kind"].as_str() {
                Some(kind) => format!("{}/{kind}", object["apiVersion"].as_str().unwrap_or_default()),
                None => "-".to_owned(),
            };
            let resource = &attributes.request.kind.resource;
            let subresource = attributes.subresource.subresource().unwrap_or("-");
            let (new, old) = (kind(&attributes.object), attributes.old.map_or("-".to_owned(), kind));
            let (operation, name) = (attributes.operation, attributes.name());
            let asked = format!("{step} {operation:?} {} {subresource} {name} {old} {new}", resource.plural);
            ASKED.with_borrow_mut(|all| all.push(asked));
        }
    }

    impl Plugin for Recorder {
        fn handles(&self, _attributes: &Attributes<'_>) -> bool {
            true
        }

        fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
            Recorder::record("admit", attributes);
            ready(Ok(())).boxed()
        }

        fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
            Recorder::record("validate", attributes);
            ready(Ok(())).boxed()
        }
    }

    /// Sends a request, and returns what the plugins were asked meanwhile.
    async fn asked(server: &ApiServer, method: &str, path: &str, body: Value) -> Vec<String> {
        ASKED.take();
        let request = Request::builder().method(method).uri(format!("/{path}"));
        let request = request.header("content-type", "application/json");
        let request = request.body(Full::from(body.to_string())).unwrap();
        let response = server.as_user(User::admin()).respond(request).await;
        let code = response.status();
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert!(code.is_success(), "{method} {path}: {}", String::from_utf8_lossy(&text));
        ASKED.take()
    }

    fn deployment() -> Value {
        let (labels, containers) = (json!({"app": "a"}), json!([{"name": "c", "image": "a:1"}]));
        json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}}})
    }

    fn pod(name: &str) -> Value {
        json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}})
    }

    // apiserver/pkg/endpoints/handlers/create.go and update.go, NewAttributesRecord
    #[tokio::test(start_paused = true)]
    async fn plugins_see_the_object_of_a_subresource() {
        let server = ApiServer::start(Store::memory()).await.unwrap();
        let account = json!({"metadata": {"name": "default"}});
        asked(&server, "POST", "api/v1/namespaces/default/serviceaccounts", account).await;
        let (pods, deployments) = ("api/v1/namespaces/default/pods", "apis/apps/v1/namespaces/default/deployments");
        asked(&server, "POST", deployments, deployment()).await;
        for name in ["a", "b"] {
            asked(&server, "POST", pods, pod(name)).await;
        }
        let scale = json!({"metadata": {"name": "d"}, "spec": {"replicas": 3}});
        let binding = json!({"metadata": {"name": "a"}, "target": {"name": "n"}});
        let other = json!({"metadata": {"name": "b"}, "target": {"name": "n"}});
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
        for (path, method, body, expected) in [
            (
                format!("{deployments}/d/scale"),
                "PUT",
                scale,
                "Update deployments scale d autoscaling/v1/Scale autoscaling/v1/Scale",
            ),
            (format!("{pods}/a/binding"), "POST", binding, "Create pods binding a - v1/Binding"),
            (
                "api/v1/namespaces/default/bindings".to_owned(),
                "POST",
                other,
                "Create bindings - b - v1/Binding",
            ),
            (
                format!("{pods}/a/eviction"),
                "POST",
                eviction,
                "Create pods eviction a - policy/v1/Eviction",
            ),
            (format!("{pods}/b"), "DELETE", json!({}), "Delete pods - b v1/Pod -"),
        ] {
            let steps = ["admit", "validate"].map(|step| format!("{step} {expected}"));
            assert_eq!(asked(&server, method, &path, body).await, steps, "{method} {path}");
        }
    }
}
