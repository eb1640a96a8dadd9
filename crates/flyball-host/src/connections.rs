//! A bounded number of connections. When the bound is reached, a new connection takes the place of the oldest one that is
//! idle and not authenticated, so that idle clients cannot lock out others.

use crate::activity::{Activity, IdleLimits, InFlight};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Duration, sleep},
};

/// How long an expired connection without a request in flight may take to close.
const MAX_FLUSH: Duration = Duration::from_secs(1);

/// The connections of one port; clones share them.
#[derive(Clone)]
pub struct Connections {
    permits: Arc<Semaphore>,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    next: u64,
    /// In the order of their acceptance.
    connections: BTreeMap<u64, Arc<State>>,
}

struct State {
    activity: Activity,
    authenticated: AtomicBool,
    evicted: AtomicBool,
    eviction: Notify,
}

/// One open connection; its place is free when this is dropped.
pub struct Connection {
    id: u64,
    state: Arc<State>,
    open: Arc<Mutex<Open>>,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    /// Allows `max` connections at a time.
    pub fn new(max: usize) -> Connections {
        Connections {
            permits: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
            open: Arc::default(),
        }
    }

    /// A place for a connection that was accepted. Waits while every place is taken by one that is busy or authenticated.
    pub async fn open(&self) -> Connection {
        if self.permits.available_permits() == 0 {
            self.lock().evict();
        }
        let permit = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        let state = Arc::new(State {
            activity: Activity::start(),
            authenticated: AtomicBool::new(false),
            evicted: AtomicBool::new(false),
            eviction: Notify::new(),
        });
        let mut open = self.lock();
        let id = open.next;
        open.next += 1;
        open.connections.insert(id, state.clone());
        Connection { id, state, open: self.open.clone(), _permit: permit }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn evict(&self) {
        let oldest = self.connections.values().find(|state| state.is_evictable());
        if let Some(state) = oldest {
            state.evicted.store(true, Ordering::Relaxed);
            state.eviction.notify_one();
        }
    }
}

impl State {
    fn is_evictable(&self) -> bool {
        let kept = self.authenticated.load(Ordering::Relaxed) || self.evicted.load(Ordering::Relaxed);
        !kept && self.activity.is_idle()
    }
}

impl Connection {
    /// Marks the client as known: its connection is not evicted.
    pub fn authenticate(&self) {
        self.state.authenticated.store(true, Ordering::Relaxed);
    }

    /// Counts a request as in flight.
    pub fn begin(&self) -> InFlight {
        self.state.activity.begin()
    }

    /// Completes when the connection must end: it is evicted, or idle for too long.
    pub async fn expired(&self, limits: IdleLimits) {
        tokio::select! {
            () = self.state.eviction.notified() => {}
            () = self.state.activity.idle(limits) => {}
        }
    }

    /// Completes when the rest of the responses had its time: an expired connection is then closed without waiting.
    pub async fn drained(&self) {
        loop {
            sleep(MAX_FLUSH).await;
            if self.state.activity.is_idle() {
                return;
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.connections.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    const HOUR: Duration = Duration::from_secs(3600);
    const HOURS: IdleLimits = IdleLimits { first_request: HOUR, keep_alive: HOUR };
    const MINUTE: Duration = Duration::from_secs(60);

    /// Holds a connection until it expires.
    fn hold(connection: Connection) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move { connection.expired(HOURS).await })
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_replaces_the_oldest_idle_one() {
        let connections = Connections::new(3);
        let authenticated = connections.open().await;
        authenticated.authenticate();
        let busy = connections.open().await;
        let request = busy.begin();
        let held = [hold(authenticated), hold(busy), hold(connections.open().await)];
        tokio::task::yield_now().await;

        let newest = timeout(MINUTE, connections.open()).await.expect("the idle connection is evicted");

        assert_eq!(held.map(|task| task.is_finished()), [false, false, true]);
        drop((newest, request));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_waits_while_all_places_are_in_use() {
        let connections = Connections::new(1);
        let busy = connections.open().await;
        let request = busy.begin();

        assert!(timeout(MINUTE, connections.open()).await.is_err());
        drop((request, busy));
        assert!(timeout(MINUTE, connections.open()).await.is_ok());
    }
}
