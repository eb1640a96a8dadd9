//! The same work as every peer's: see bench/src/frameworks.rs for what the words on standard output mean.

use bench::frameworks::widget::Widget;
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
use std::{
    env,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

struct Work {
    client: Client,
    /// Zero where nothing is written.
    round: u64,
    reconciled: AtomicU64,
    written: AtomicU64,
}

async fn reconcile(widget: Arc<Widget>, work: Arc<Work>) -> Result<Action, kube::Error> {
    if work.round == 0 {
        tell("reconciled", &work.reconciled);
    } else if widget.status.as_ref().is_none_or(|status| status.round != work.round) {
        let widgets: Api<Widget> = Api::namespaced(work.client.clone(), &widget.namespace().unwrap_or_default());
        let status = Patch::Merge(json!({ "status": { "round": work.round, "phase": "Ready" } }));
        widgets.patch_status(&widget.name_any(), &PatchParams::default(), &status).await?;
        tell("written", &work.written);
    }
    Ok(Action::await_change())
}

fn tell(word: &str, count: &AtomicU64) {
    let count = count.fetch_add(1, Ordering::Relaxed) + 1;
    if count.is_multiple_of(100) {
        println!("{word} {count}");
    }
}

fn number(name: &str) -> Result<u64, Box<dyn Error>> {
    Ok(env::var(name)?.parse()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let work = Arc::new(Work {
        client: client.clone(),
        round: number("ROUND")?,
        reconciled: AtomicU64::default(),
        written: AtomicU64::default(),
    });
    let concurrency = number("WORKERS")? as u16;
    Controller::new(Api::<Widget>::all(client), watcher::Config::default())
        .with_config(Config::default().concurrency(concurrency))
        .run(reconcile, |_, _, _| Action::await_change(), work)
        .for_each(async |_| {})
        .await;
    Ok(())
}
