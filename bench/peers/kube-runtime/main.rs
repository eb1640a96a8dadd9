//! The same work as every peer's: see bench/src/frameworks.rs for what the words on standard output mean.

use bench::frameworks::{
    tally::{Tally, workers},
    widget::Widget,
};
use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        controller::{Action, Config, Controller},
        watcher,
    },
};
use serde_json::json;
use std::{error::Error, sync::Arc};

struct Work {
    client: Client,
    tally: Tally,
}

async fn reconcile(widget: Arc<Widget>, work: Arc<Work>) -> Result<Action, kube::Error> {
    let round = work.tally.round;
    if round == 0 {
        work.tally.reconciled();
    } else if widget.status.as_ref().is_none_or(|status| status.round != round) {
        let widgets: Api<Widget> = Api::namespaced(work.client.clone(), &widget.namespace().unwrap_or_default());
        let status = Patch::Merge(json!({ "status": { "round": round, "phase": "Ready" } }));
        widgets.patch_status(&widget.name_any(), &PatchParams::default(), &status).await?;
        work.tally.written();
    }
    Ok(Action::await_change())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let work = Arc::new(Work { client: client.clone(), tally: Tally::of_environment() });
    Controller::new(Api::<Widget>::all(client), watcher::Config::default())
        .with_config(Config::default().concurrency(workers()))
        .run(reconcile, |_, _, _| Action::await_change(), work)
        .for_each(async |_| {})
        .await;
    Ok(())
}
