//! An operator at work: its watches, its controllers and its events, until it is stopped.

use crate::{
    Cache, Controller, Error, Key, Operator, Result,
    cache::{Change, Subscriber},
    client,
    context::Shared,
    controller::Watched,
    crds,
    kind::{Kind, Scope},
    object::Object,
    recorder,
    runner::Runner,
    watch,
    work::WorkQueue,
};
use kube::Client;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// An operator that was started. Dropping it ends everything at once, as a crash would.
#[must_use = "an operator ends when it is dropped"]
#[derive(Debug)]
pub struct Running {
    stop: CancellationToken,
    runners: JoinSet<()>,
    watches: JoinSet<()>,
    publisher: JoinSet<()>,
}

impl Running {
    pub(crate) async fn start(operator: &Operator, client: Client) -> Result<Running> {
        check(operator)?;
        crds::install(&client, operator.name(), operator.crds()).await?;
        let cache = Cache::new(operator.controllers().iter().flat_map(Controller::kinds).cloned());
        let client = client::observed(client, cache.clone());
        let (recorder, publisher) = recorder::channel();
        let name = operator.name().to_owned();
        let shared = Shared {
            name: name.clone(),
            client: client.clone(),
            cache: cache.clone(),
            recorder,
        };
        let mut running = Running {
            stop: CancellationToken::new(),
            runners: JoinSet::new(),
            watches: JoinSet::new(),
            publisher: JoinSet::new(),
        };
        running.publisher.spawn(publisher.run(client.clone(), name));
        running.control(operator, Arc::new(shared));
        for mirror in cache.mirrors() {
            let client = client.clone();
            running.watches.spawn(async move { watch::follow(&client, &mirror).await });
        }
        Ok(running)
    }

    /// Stops: begins no reconcile, lets those under way end, publishes what events are left.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.runners.join_next().await.is_some() {}
        self.watches.shutdown().await;
        while self.publisher.join_next().await.is_some() {}
    }

    fn control(&mut self, operator: &Operator, shared: Arc<Shared>) {
        for controller in operator.controllers() {
            let queue = Arc::new(WorkQueue::default());
            trigger(controller, &shared.cache, &queue);
            let runner = Runner::new(controller.clone(), shared.clone(), queue);
            self.runners.spawn(runner.run(self.stop.clone()));
        }
    }
}

/// Refuses what an author declared wrongly.
fn check(operator: &Operator) -> Result<()> {
    let mistakes = operator.controllers().iter().flat_map(|controller| &controller.mistakes);
    match mistakes.cloned().collect::<Vec<_>>() {
        mistakes if mistakes.is_empty() => Ok(()),
        mistakes => Err(Error::permanent(format!("operator {}: {}", operator.name(), mistakes.join("; ")))),
    }
}

/// Lets every kind that a controller reconciles, owns or watches fill its queue.
fn trigger(controller: &Controller, cache: &Cache, queue: &Arc<WorkQueue>) {
    subscribe(cache, &controller.kind, queue, |object, add| add(object.key.clone()));
    for kind in &controller.owned {
        let owner = controller.kind.clone();
        subscribe(cache, kind, queue, move |object, add| owner_of(object, &owner).into_iter().for_each(add));
    }
    for Watched { kind, map } in &controller.watched {
        let (map, cached) = (map.clone(), cache.clone());
        subscribe(cache, kind, queue, move |object, add| {
            // Authors' code must not end the watch that all controllers share.
            let keys = catch_unwind(AssertUnwindSafe(|| map(object, cached.clone())));
            keys.inspect_err(|_| tracing::error!(key = %object.key, "a mapper panicked"))
                .unwrap_or_default()
                .into_iter()
                .for_each(add);
        });
    }
}

/// Adds to the queue whatever `keys` finds for an object as it was and as it is.
fn subscribe(
    cache: &Cache,
    kind: &Kind,
    queue: &Arc<WorkQueue>,
    keys: impl Fn(&Object, &mut dyn FnMut(Key)) + Send + Sync + 'static,
) {
    let queue = queue.clone();
    let subscriber: Subscriber = Arc::new(move |change: &Change| {
        for object in [&change.old, &change.new].into_iter().flatten() {
            keys(object, &mut |key| queue.add(key));
        }
    });
    cache.mirror(&kind.id()).expect("a controller's kinds are cached").subscribe(subscriber);
}

/// The object of kind `owner` that controls `child`. The version of its API does not matter.
fn owner_of(child: &Object, owner: &Kind) -> Option<Key> {
    let meta = child.meta();
    let reference = meta.controller()?;
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    if reference.kind != owner.name() || group != owner.resource.group {
        return None;
    }
    let namespace = child.key.namespace().filter(|_| owner.scope != Scope::Cluster);
    Some(Key::from(reference.name.as_ref()).in_namespace(namespace))
}
