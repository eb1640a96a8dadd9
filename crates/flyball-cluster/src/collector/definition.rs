//! Starts collecting the objects of a custom resource when it is defined, and stops when its definition is gone.

use super::{controller, is_collected};
use crate::kinds::Kinds;
use flyball::{Action, Context, Controller, DynamicController, Key, Reconciler, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    ResourceExt,
    api::{ApiResource, PartialObjectMeta},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::time::sleep;

/// How long a kind that has gone is still listened to: its objects went before it, and the news may be on its way.
const ECHO: Duration = Duration::from_secs(1);

/// A definition is told of before its kind is served; and if its names are taken, that may be much later.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

type Definition = PartialObjectMeta<CustomResourceDefinition>;

/// The controller of definitions.
pub(crate) fn definitions(kinds: &Kinds) -> Controller<Definition> {
    Controller::new(Custom { kinds: kinds.clone(), running: Mutex::default() }).named("garbage-collector-definitions")
}

/// The collectors of custom resources.
struct Custom {
    kinds: Kinds,
    running: Mutex<HashMap<String, (ApiResource, DynamicController)>>,
}

impl Reconciler<Definition> for Custom {
    async fn reconcile(&self, definition: Arc<Definition>, ctx: Context) -> Result {
        self.follow(&definition.name_any(), &ctx)
    }

    /// The objects of a definition that is being deleted still have dependents.
    async fn terminating(&self, definition: Arc<Definition>, ctx: Context) -> Result {
        self.follow(&definition.name_any(), &ctx)
    }

    fn gone(&self, key: &Key) {
        self.forget(key.name());
    }
}

impl Custom {
    fn follow(&self, definition: &str, ctx: &Context) -> Result {
        let Some(kind) = self.kinds.defined_by(definition) else {
            return Ok(Action::requeue_after(LOOK_AGAIN));
        };
        if !is_collected(&kind) {
            return Ok(Action::await_change());
        }
        let mut running = self.lock();
        let resource = kind.resource.clone();
        if running.get(definition).is_none_or(|(known, _)| *known != resource) {
            let collector = ctx.control(controller(kind, &self.kinds))?;
            running.insert(definition.to_owned(), (resource, collector));
        }
        Ok(Action::await_change())
    }

    fn forget(&self, definition: &str) {
        if let Some((resource, collector)) = self.lock().remove(definition) {
            self.kinds.withdraw(&resource);
            tokio::spawn(async move {
                sleep(ECHO).await;
                drop(collector);
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (ApiResource, DynamicController)>> {
        self.running.lock().expect("nothing panics under this lock")
    }
}
