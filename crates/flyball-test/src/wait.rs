//! Waits for an object to become what a test expects, and says what was last seen when it does not.

use crate::place::{Place, api};
use futures::{Stream, StreamExt, pin_mut};
use kube::{
    Client, Resource,
    api::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long a test waits, in virtual time: longer than any controller's patience.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How long it waits by the clock on the wall, where time is not virtual.
const WALL: Duration = Duration::from_secs(60);
/// How often it looks at that clock.
const TICK: Duration = Duration::from_secs(1);

/// The first state of an object that satisfies the condition; `None` stands for its absence.
///
/// # Panics
/// With what was last seen, when an hour of virtual time has passed.
pub(crate) async fn until<K, T>(client: Client, place: &Place, condition: impl FnMut(Option<&K>) -> Option<T>) -> T
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={}", place.name));
    let changes = watcher(api::<K>(client, place.namespace.as_deref()), config).default_backoff();
    let mut seen = Seen::default();
    let found = timeout(PATIENCE, settle::<K, T>(changes, &mut seen, condition)).await;
    let what = place.describe::<K>();
    match found {
        Ok(Ok(found)) => found,
        Ok(Err(Trouble::Refused(error))) => panic!("watch {what}: {error}"),
        Ok(Err(Trouble::Slow)) | Err(_) => panic!("{what} did not become what was expected; last seen:\n{seen}"),
    }
}

/// Why a test waits no longer.
enum Trouble {
    Refused(watcher::Error),
    Slow,
}

async fn settle<K, T>(
    changes: impl Stream<Item = watcher::Result<Event<DynamicObject>>>,
    seen: &mut Seen,
    mut condition: impl FnMut(Option<&K>) -> Option<T>,
) -> Result<T, Trouble>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let started = Instant::now();
    pin_mut!(changes);
    loop {
        let Ok(change) = timeout(TICK, changes.next()).await else {
            if started.elapsed() > WALL {
                return Err(Trouble::Slow);
            }
            continue;
        };
        match change.expect("a watch goes on until it is dropped") {
            Err(error) if is_final(&error) => return Err(Trouble::Refused(error)),
            Err(_) => {}
            Ok(change) => {
                if seen.take(change)
                    && let Some(answer) = condition(seen.object.as_ref().map(parse::<K>).as_ref())
                {
                    return Ok(answer);
                }
            }
        }
    }
}

/// What a watch has told so far.
#[derive(Default)]
struct Seen {
    object: Option<DynamicObject>,
    listed: Option<DynamicObject>,
}

impl Seen {
    /// Takes a change, and says whether the object's state is known now.
    fn take(&mut self, change: Event<DynamicObject>) -> bool {
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

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.object {
            Some(object) => f.write_str(&show(object)),
            None => f.write_str("nothing: there is no such object"),
        }
    }
}

/// A watch that is refused for what it asks will be refused again.
fn is_final(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if matches!(status.code, 400..=405 | 422))
}

fn parse<K: Resource + DeserializeOwned>(object: &DynamicObject) -> K {
    let parsed = object.clone().try_parse();
    parsed.unwrap_or_else(|error| panic!("the object is no such kind: {error}\n{}", show(object)))
}

fn show(object: &DynamicObject) -> String {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    serde_saphyr::to_string(&object).expect("an object is YAML")
}
