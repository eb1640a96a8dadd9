//! Waits for an object to become what a test expects; if it does not, shows its last state and what the operators report.

use crate::{
    Cluster,
    objects::{Place, decode},
};
use futures::{Stream, StreamExt, pin_mut};
use kube::{
    api::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use std::{
    panic::Location,
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// How long a test waits, in virtual time: longer than any controller's backoff.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(3600);
/// How long it waits in real time, where time is not virtual.
const MAX_REAL_WAIT: Duration = Duration::from_secs(60);
/// How often it looks at the real clock.
const TICK: Duration = Duration::from_secs(1);

/// The first state of an object that satisfies the condition; `None` stands for its absence.
///
/// # Panics
/// With the caller's line, the last state and what the operators report, when an hour of virtual time has passed.
pub(crate) async fn until<K, T>(
    caller: &Location<'_>,
    cluster: &Cluster,
    place: Place,
    condition: impl FnMut(Option<K>) -> Option<T>,
) -> T
where
    K: DeserializeOwned,
{
    let Place { api, name, what, .. } = place;
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let changes = watcher(api, config).default_backoff();
    let mut last = LastSeen::default();
    let found = timeout(MAX_WAIT, settle(cluster, changes, &mut last, condition)).await;
    match found {
        Ok(Err(Failure::MissingRights(missing))) => {
            panic!("{caller}: while waiting for {what}: {}", missing.join("; "))
        }
        Ok(Ok(found)) => found,
        Ok(Err(Failure::Refused(error))) => panic!("{caller}: watch {what}: {error}"),
        Ok(Err(Failure::Undecodable(error))) => panic!("{caller}: {what} does not decode: {error}\n{last}"),
        Ok(Err(Failure::Timeout)) | Err(_) => {
            let reported = cluster.report(&what);
            panic!("{caller}: {what} did not become what was expected; last seen:\n{last}{reported}")
        }
    }
}

/// Why a test stops waiting.
enum Failure {
    MissingRights(Vec<String>),
    Refused(watcher::Error),
    Undecodable(serde_json::Error),
    Timeout,
}

async fn settle<K, T>(
    cluster: &Cluster,
    changes: impl Stream<Item = watcher::Result<Event<DynamicObject>>>,
    last: &mut LastSeen,
    mut condition: impl FnMut(Option<K>) -> Option<T>,
) -> Result<T, Failure>
where
    K: DeserializeOwned,
{
    let started = Instant::now();
    pin_mut!(changes);
    loop {
        let Ok(change) = timeout(TICK, changes.next()).await else {
            let missing = cluster.missing_rights();
            if !missing.is_empty() {
                return Err(Failure::MissingRights(missing));
            }
            if started.elapsed() > MAX_REAL_WAIT {
                return Err(Failure::Timeout);
            }
            continue;
        };
        match change.expect("a watch goes on until it is dropped") {
            Err(error) if is_final(&error) => return Err(Failure::Refused(error)),
            Err(_) => {}
            Ok(change) => {
                if !last.update(change) {
                    continue;
                }
                let object = last.object.as_ref().map(decode).transpose().map_err(Failure::Undecodable)?;
                if let Some(answer) = condition(object) {
                    return Ok(answer);
                }
            }
        }
    }
}

/// The object as a watch has last shown it.
#[derive(Default)]
struct LastSeen {
    object: Option<DynamicObject>,
    listed: Option<DynamicObject>,
}

impl LastSeen {
    /// Takes a change, and returns whether the object's state is known now.
    fn update(&mut self, change: Event<DynamicObject>) -> bool {
        match change {
            Event::Init => return false,
            Event::InitApply(object) => {
                self.listed = Some(object);
                return false;
            }
            Event::InitDone => self.object = self.listed.take(),
            Event::Apply(object) => self.object = Some(object),
            Event::Delete(_) => self.object = None,
        }
        true
    }
}

impl std::fmt::Display for LastSeen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.object {
            Some(object) => f.write_str(&yaml(object)),
            None => f.write_str("nothing: there is no such object"),
        }
    }
}

/// Whether a watch was refused for its request: it would be refused again.
fn is_final(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if matches!(status.code, 400..=405 | 422))
}

fn yaml(object: &DynamicObject) -> String {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    serde_saphyr::to_string(&object).expect("an object is YAML")
}
