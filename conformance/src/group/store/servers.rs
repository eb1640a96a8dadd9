//! Two servers of ours on one etcd: what one is told, the other serves.

use std::fmt::Debug;
use std::time::Duration;

use flyball_store::Etcd;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, CustomResourceExt, ResourceExt};
use tokio::time::{sleep, timeout};

use super::{Outcome, WITHIN, same};
use crate::garden::{Garden, GardenSpec};
use crate::ours;
use crate::reference::Etcd as Cluster;
use crate::report::sentence;

/// How long to wait before something is looked at again.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn two_servers() -> Outcome {
    let etcd = super::cluster().await?;
    let (one, two) = (server(&etcd).await?, server(&etcd).await?);
    let definitions: Api<CustomResourceDefinition> = Api::all(one.clone());
    let created = definitions.create(&PostParams::default(), &Garden::crd()).await;
    created.map_err(|error| sentence(&error))?;
    let (here, there): (Api<Garden>, Api<Garden>) = (Api::default_namespaced(one), Api::default_namespaced(two));
    let version = served(&there).await?;
    let watching = there.watch(&WatchParams::default(), &version).await.map_err(|error| sentence(&error))?;
    objects_cross(&here, &there, &mut watching.boxed()).await?;
    let gone = definitions.delete(&Garden::crd().name_any(), &DeleteParams::default()).await;
    gone.map_err(|error| sentence(&error))?;
    withdrawn(&there).await
}

async fn server(etcd: &Cluster) -> Result<Client, String> {
    let store = super::open(Etcd::new(etcd.endpoints())).await?;
    ours::client_on(store).await
}

/// Waits until a server serves Gardens; returns the version at which it first did.
async fn served(gardens: &Api<Garden>) -> Result<String, String> {
    let listed = async {
        loop {
            match gardens.list(&ListParams::default()).await {
                Ok(list) => break Ok(list.metadata.resource_version.unwrap_or_default()),
                Err(kube::Error::Api(status)) if status.code == 404 => sleep(PAUSE).await,
                Err(error) => break Err(sentence(&error)),
            }
        }
    };
    timeout(WITHIN, listed).await.map_err(|_| "the other server does not serve the kind")?
}

async fn withdrawn(gardens: &Api<Garden>) -> Outcome {
    let refused = async {
        while gardens.list(&ListParams::default()).await.is_ok() {
            sleep(PAUSE).await
        }
    };
    timeout(WITHIN, refused)
        .await
        .map_err(|_| "the other server serves the kind for ever".to_owned())
}

/// Creates here, changes there, is refused here, and deletes here; all of it is seen there.
async fn objects_cross(here: &Api<Garden>, there: &Api<Garden>, watching: &mut Watching) -> Outcome {
    let garden = Garden::new("ada", GardenSpec { plants: 1 });
    let mut stale = here.create(&PostParams::default(), &garden).await.map_err(|error| sentence(&error))?;
    same(seen(watching).await?, "added ada 1".to_owned())?;
    let mut fresh = there.get("ada").await.map_err(|error| sentence(&error))?;
    same(fresh.resource_version(), stale.resource_version())?;
    fresh.spec.plants = 2;
    let replaced = there.replace("ada", &PostParams::default(), &fresh).await;
    replaced.map_err(|error| sentence(&error))?;
    same(seen(watching).await?, "modified ada 2".to_owned())?;
    stale.spec.plants = 3;
    match here.replace("ada", &PostParams::default(), &stale).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        other => return Err(format!("a stale write was answered {}", said(other))),
    }
    let deleted = here.delete("ada", &DeleteParams::default()).await;
    deleted.map_err(|error| sentence(&error))?;
    same(seen(watching).await?, "deleted ada 2".to_owned())?;
    match there.get("ada").await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => Err(format!("what was deleted is answered {}", said(other))),
    }
}

type Watching = BoxStream<'static, Result<WatchEvent<Garden>, kube::Error>>;

/// The next event, as `added name plants`.
async fn seen(watching: &mut Watching) -> Result<String, String> {
    let event = timeout(WITHIN, watching.try_next()).await.map_err(|_| "no event came")?;
    let (what, garden) = match event.map_err(|error| sentence(&error))? {
        Some(WatchEvent::Added(garden)) => ("added", garden),
        Some(WatchEvent::Modified(garden)) => ("modified", garden),
        Some(WatchEvent::Deleted(garden)) => ("deleted", garden),
        other => return Err(format!("{other:?} came")),
    };
    Ok(format!("{what} {} {}", garden.name_any(), garden.spec.plants))
}

fn said(answer: Result<impl Debug, kube::Error>) -> String {
    answer.map_or_else(|error| sentence(&error), |answer| format!("{answer:?}"))
}
