//! Gives every namespace its ServiceAccount `default`, again if somebody deletes it.

use crate::refusal;
use flyball::{Action, Context, Controller, Key, Result};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::{
    Api, ResourceExt,
    api::{ObjectMeta, PartialObjectMeta, PostParams},
};
use std::sync::Arc;

const NAME: &str = "default";

/// The controller of default ServiceAccounts.
pub(crate) fn controller() -> Controller<PartialObjectMeta<Namespace>> {
    Controller::new(reconcile)
        .named("serviceaccount")
        .watches(|account: Arc<PartialObjectMeta<ServiceAccount>>, _| {
            let namespace = account.namespace().filter(|_| account.name_any() == NAME);
            namespace.map(Key::from)
        })
}

async fn reconcile(namespace: Arc<PartialObjectMeta<Namespace>>, ctx: Context) -> Result {
    let namespace = namespace.name_any();
    if ctx
        .get::<PartialObjectMeta<ServiceAccount>>(Key::namespaced(&*namespace, NAME))
        .await?
        .is_some()
    {
        return Ok(Action::await_change());
    }
    let metadata = ObjectMeta {
        name: Some(NAME.into()),
        namespace: Some(namespace.clone()),
        ..ObjectMeta::default()
    };
    let account = ServiceAccount { metadata, ..ServiceAccount::default() };
    let accounts: Api<ServiceAccount> = Api::namespaced(ctx.client(), &namespace);
    match accounts.create(&PostParams::default(), &account).await {
        Err(error) if !(refusal::already_exists(&error) || refusal::is_namespace_terminating(&error)) => {
            Err(error.into())
        }
        _ => Ok(Action::await_change()),
    }
}
