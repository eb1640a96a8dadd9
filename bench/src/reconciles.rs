//! Ten thousand reconciles that do nothing, beside kube-runtime's Controller: same objects, same server, in one process.

use crate::{
    figure::{Figure, median},
    report::{Aim, Row},
};
use flyball::{Action, Context, Controller, Operator};
use flyball_store::Store;
use futures::{StreamExt, future::join_all};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
    runtime::{controller, watcher},
};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;

const OBJECTS: usize = 10_000;
const ROUNDS: usize = 5;

/// From starting the operator to the last first reconcile.
pub fn rows() -> Vec<Row> {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(measure())
}

async fn measure() -> Vec<Row> {
    let server = flyball_apiserver::ApiServer::start(Store::memory())
        .await
        .expect("a server in memory starts");
    let client = Client::new(server.as_user(flyball_apiserver::User::admin()), "default");
    fill(client.clone()).await;
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(flyball(client.clone()).await);
        peer.push(kube_runtime(client.clone()).await);
    }
    vec![Row {
        what: "10,000 no-op reconciles from a start".into(),
        ours: Figure::Time(median(ours)),
        peer: Some(("kube-runtime", Figure::Time(median(peer)))),
        aim: Aim::Times(1.0),
    }]
}

async fn fill(client: Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    for chunk in (0..OBJECTS).collect::<Vec<_>>().chunks(100) {
        let creates = chunk.iter().map(|index| {
            let metadata = ObjectMeta { name: Some(format!("map-{index}")), ..Default::default() };
            let data = Some([("text".into(), "x".repeat(500))].into());
            let (maps, map) = (maps.clone(), ConfigMap { metadata, data, ..Default::default() });
            async move { maps.create(&PostParams::default(), &map).await }
        });
        for created in join_all(creates).await {
            created.expect("a ConfigMap is created");
        }
    }
}

/// Counts reconciles, and says when the last one is done.
#[derive(Default)]
struct Count {
    done: AtomicUsize,
    all: Notify,
}

impl Count {
    fn one(&self) {
        if self.done.fetch_add(1, Ordering::Relaxed) + 1 == OBJECTS {
            self.all.notify_one();
        }
    }
}

async fn flyball(client: Client) -> Duration {
    let count = Arc::new(Count::default());
    let counted = count.clone();
    let reconcile = move |_: Arc<ConfigMap>, _: Context| {
        counted.one();
        async { Ok(Action::await_change()) }
    };
    let operator = Operator::new("bench").controller(Controller::new(reconcile));
    let start = Instant::now();
    let running = operator.start(client).await.expect("an operator starts");
    count.all.notified().await;
    let elapsed = start.elapsed();
    running.stop().await;
    elapsed
}

async fn kube_runtime(client: Client) -> Duration {
    let count = Arc::new(Count::default());
    let start = Instant::now();
    let controller = controller::Controller::new(Api::<ConfigMap>::all(client), watcher::Config::default()).run(
        |_, count: Arc<Count>| {
            count.one();
            async { Ok::<_, Infallible>(controller::Action::await_change()) }
        },
        |_, _, _| controller::Action::await_change(),
        count.clone(),
    );
    let task = tokio::spawn(controller.for_each(|_| async {}));
    count.all.notified().await;
    let elapsed = start.elapsed();
    task.abort();
    elapsed
}
