//! The same work as every peer's: see bench/src/frameworks.rs for the words on standard output.

use bench::frameworks::{
    tally::{Tally, workers},
    widget::{Widget, child_data, team},
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams},
    runtime::{
        WatchStreamExt,
        controller::{Action, Config, Controller},
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::{error::Error, fmt::Debug, sync::Arc};

struct Work {
    client: Client,
    tally: Tally,
    /// None where no child is applied.
    teams: Option<(Store<Secret>, Store<ServiceAccount>)>,
}

async fn reconcile(widget: Arc<Widget>, work: Arc<Work>) -> Result<Action, kube::Error> {
    let round = work.tally.round;
    if round == 0 {
        work.tally.reconciled();
    } else if widget.status.as_ref().is_none_or(|status| status.round != round) {
        let namespace = widget.namespace().unwrap_or_default();
        if let Some(teams) = &work.teams {
            apply_child(&widget, &work, teams, &namespace).await?;
        }
        let widgets: Api<Widget> = Api::namespaced(work.client.clone(), &namespace);
        let status = Patch::Merge(json!({ "status": { "round": round, "phase": "Ready" } }));
        widgets.patch_status(&widget.name_any(), &PatchParams::default(), &status).await?;
        work.tally.written();
    }
    Ok(Action::await_change())
}

/// Reads a Secret and a ServiceAccount from the cache, and applies a ConfigMap of both.
async fn apply_child(
    widget: &Widget,
    work: &Work,
    (secrets, accounts): &(Store<Secret>, Store<ServiceAccount>),
    namespace: &str,
) -> Result<(), kube::Error> {
    let (team, missing) = (team(widget), "the team's objects are created before the peers start");
    let secret = secrets.get(&ObjectRef::new(&team).within(namespace)).expect(missing);
    let account = accounts.get(&ObjectRef::new(&team).within(namespace)).expect(missing);
    let child = ConfigMap {
        metadata: ObjectMeta {
            name: widget.metadata.name.clone(),
            owner_references: widget.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(child_data(work.tally.round, widget, &secret, &account)),
        ..ConfigMap::default()
    };
    let children: Api<ConfigMap> = Api::namespaced(work.client.clone(), namespace);
    let params = PatchParams::apply("bench").force();
    children.patch(&widget.name_any(), &params, &Patch::Apply(&child)).await?;
    Ok(())
}

/// A cache of a kind, once it is filled.
async fn cached<K>(client: &Client) -> Result<Store<K>, Box<dyn Error>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let changes = watcher(Api::<K>::all(client.clone()), watcher::Config::default()).default_backoff();
    tokio::spawn(changes.reflect(writer).for_each(async |_| {}));
    store.wait_until_ready().await?;
    Ok(store)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (client, tally) = (Client::try_default().await?, Tally::of_environment());
    let teams = match tally.has_child {
        true => Some((cached(&client).await?, cached(&client).await?)),
        false => None,
    };
    let mut controller = Controller::new(Api::<Widget>::all(client.clone()), watcher::Config::default())
        .with_config(Config::default().concurrency(workers()));
    if teams.is_some() {
        controller = controller.owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default());
    }
    controller
        .run(reconcile, |_, _, _| Action::await_change(), Arc::new(Work { client, tally, teams }))
        .for_each(async |_| {})
        .await;
    Ok(())
}
