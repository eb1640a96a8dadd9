//! A store that fails: health says so, and requests that need it are to be repeated.

use crate::ask::Server;
use bytes::Bytes;
use flyball_store::{Backend, Committed, Entry, Error, Health, Op, Page, Range, Result, Snapshot, Store, Watch};
use futures::future::BoxFuture;
use http::Method;
use serde_json::json;
use std::io;
use std::sync::{Arc, Mutex};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What a store cannot do.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Commits fail: the disk is full.
    Full,
    /// Commits fail: a file could not be opened, and nothing was written.
    NotWritten,
    /// Commits fail: a file could not be written to its end.
    Write,
    /// Nothing is answered.
    Silent,
}

impl Fault {
    fn error(self) -> Option<Error> {
        let source = || Arc::new(io::Error::from(io::ErrorKind::TimedOut));
        match self {
            Fault::None => None,
            Fault::Full => Some(Error::Full { path: "data".into() }),
            Fault::NotWritten => Some(Error::NotWritten { path: "data".into(), source: source() }),
            Fault::Write => Some(Error::Write { path: "data".into(), source: source() }),
            Fault::Silent => Some(Error::Unavailable { place: "etcd".into(), source: source() }),
        }
    }
}

/// A store in memory that fails on demand.
#[derive(Clone)]
struct Failing {
    store: Store,
    fault: Arc<Mutex<Fault>>,
}

impl Failing {
    async fn serve() -> (Server, Failing) {
        let failing = Failing {
            store: Store::memory(),
            fault: Arc::new(Mutex::new(Fault::None)),
        };
        (Server::over(Store::new(failing.clone())).await, failing)
    }

    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap()
    }

    fn read(&self) -> Result<&Store> {
        match self.fault() {
            fault @ Fault::Silent => Err(fault.error().unwrap()),
            _ => Ok(&self.store),
        }
    }
}

impl Backend for Failing {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        Box::pin(async move { self.read()?.get(key).await })
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        Box::pin(async move { self.read()?.range(range).await })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(async { self.read()?.snapshot().await })
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(async move {
            match self.fault().error() {
                None => self.store.commit(ops).await,
                Some(error) => Err(error),
            }
        })
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        Box::pin(async move { self.read()?.watch(prefix, after).await })
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.store.compact(revision))
    }

    fn revision(&self) -> u64 {
        self.store.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.store.reached(revision))
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        let health = match self.fault().error() {
            None => Health::Healthy,
            Some(error @ Error::Unavailable { .. }) => Health::Unavailable { reason: error.to_string() },
            Some(error) => Health::ReadOnly { reason: error.to_string() },
        };
        Box::pin(async move { health })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.store.close())
    }
}

#[tokio::test(start_paused = true)]
async fn health_tells_whether_the_store_works() {
    let (server, store) = Failing::serve().await;
    for (fault, reason) in [
        (Fault::Full, "the disk of the data directory data is full"),
        (Fault::Silent, "etcd does not answer"),
    ] {
        store.set(fault);

        for endpoint in ["healthz", "livez", "readyz"] {
            let failed = server.get(&format!("/{endpoint}")).await;
            let shutdown = if endpoint == "readyz" { "[+]shutdown ok\n" } else { "" };
            let text = format!("[+]ping ok\n[-]store failed: reason withheld\n{shutdown}{endpoint} check failed\n");
            assert_eq!((failed.code, failed.body.as_str()), (500, Some(text.as_str())));
            assert_eq!(server.get(&format!("/{endpoint}?exclude=store")).await.body, "ok");
            assert_eq!(server.get(&format!("/{endpoint}/ping")).await.body, "ok");
            let detail = server.get(&format!("/{endpoint}/store")).await;
            let expected = format!("internal server error: {reason}");
            assert!(
                detail.code == 500 && detail.body.as_str().unwrap().starts_with(&expected),
                "{}",
                detail.body
            );
        }
        store.set(Fault::None);
        assert_eq!(server.get("/readyz").await.body, "ok");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_need_a_failed_store_are_to_be_repeated() {
    let (server, store) = Failing::serve().await;
    server.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let path = format!("{MAPS}/a");
    for (fault, code, reason) in [
        (Fault::Full, 503, "ServiceUnavailable"),
        (Fault::NotWritten, 503, "ServiceUnavailable"),
        (Fault::Write, 503, "ServiceUnavailable"),
        (Fault::Silent, 504, "Timeout"),
    ] {
        store.set(fault);

        let mut failed = vec![
            server.post(MAPS, json!({"metadata": {"name": "b"}})).await,
            server.put(&path, json!({"metadata": {"name": "a"}, "data": {"a": "b"}})).await,
            server.patch("merge-patch+json", &path, json!({"data": {"a": "b"}})).await,
            server.delete(&path, json!(null)).await,
            server.ask(Method::DELETE, MAPS, "").await,
        ];
        if fault == Fault::Silent {
            failed.push(server.get(&path).await);
            failed.push(server.get(MAPS).await);
            failed.push(server.get(&format!("{MAPS}?watch=1")).await);
        } else {
            assert_eq!((server.get(&path).await.code, server.get(MAPS).await.code), (200, 200));
        }
        for (number, answer) in failed.iter().enumerate() {
            assert_eq!(
                (answer.code, answer.body["reason"].as_str()),
                (code, Some(reason)),
                "{number}: {}",
                answer.body
            );
            assert_eq!(answer.headers["retry-after"], "1");
        }
        store.set(Fault::None);
        assert_eq!(server.get(&format!("{MAPS}/b")).await.code, 404);
    }
}
