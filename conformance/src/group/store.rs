//! Group `store`: the store on a real etcd, held to the same model as the others, and to what only etcd can show.

mod model;
mod servers;

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use flyball_store::{Error, Etcd, Expect, Health, Op, Store, Tls, Value, Watch};
use futures::future::{FutureExt, LocalBoxFuture, join_all};
use tokio::time::timeout;

use crate::reference::{Error as StartError, Etcd as Cluster, Setting};
use crate::report::{Finding, sentence};

/// A check's verdict: nothing, or what is wrong.
type Outcome = Result<(), String>;

/// A check and its name.
type Check = (&'static str, fn() -> LocalBoxFuture<'static, Outcome>);

/// How long something that must happen may take.
const WITHIN: Duration = Duration::from_secs(30);

/// These take all there is of the machine, so each has it for itself.
const ALONE: [Check; 2] = [
    ("etcd does as the model", || model::one_member().boxed_local()),
    ("three members of which one dies do as the model", || model::three_members().boxed_local()),
];

/// These wait most of the time, so they wait together.
const TOGETHER: [Check; 11] = [
    ("a store sees what another one commits", || two_stores().boxed_local()),
    ("a watch begins before its store was opened", || watch_from_before().boxed_local()),
    ("a quiet watcher learns how far it has seen everything", || progress().boxed_local()),
    ("a slow watcher is ended", || slow_watcher().boxed_local()),
    ("etcd forgets what is too long ago", || forgets().boxed_local()),
    ("a backup of etcd is restored on disk", || backup().boxed_local()),
    ("TLS, and a certificate of our own", || tls().boxed_local()),
    ("a user logs in with a password", || login().boxed_local()),
    ("more than etcd takes at once is refused by name", || many_at_once().boxed_local()),
    ("an etcd that does not answer is reported as unavailable", || health().boxed_local()),
    ("two servers on one etcd are one cluster", || servers::two_servers().boxed_local()),
];

/// Runs the checks whose names contain the text.
pub async fn run(text: &str) -> Vec<Finding> {
    if let Err(error @ StartError::NoGo) = Cluster::start(1, Setting::Hasty).await {
        return vec![Finding::skipped("start", error.to_string())];
    }
    let mut findings = Vec::new();
    for check in ALONE.into_iter().filter(|(case, _)| case.contains(text)) {
        findings.push(find(check).await);
    }
    let together = TOGETHER.into_iter().filter(|(case, _)| case.contains(text)).map(find);
    findings.extend(join_all(together).await);
    findings
}

async fn find((case, check): Check) -> Finding {
    let started = Instant::now();
    let outcome = AssertUnwindSafe(check()).catch_unwind().await;
    println!("{:.0?} for: {case}", started.elapsed());
    Finding::check(case, outcome.unwrap_or_else(|panic| Err(said(panic.as_ref()))))
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default()
}

/// A cluster of one member that does not wait for the disk, because none of these checks is about it.
async fn cluster() -> Result<Cluster, String> {
    Cluster::start(1, Setting::Hasty).await.map_err(|error| sentence(&error))
}

async fn open(etcd: Etcd) -> Result<Store, String> {
    etcd.open().await.map_err(|error| sentence(&error))
}

async fn put(store: &Store, key: &str, value: impl Into<Value>) -> Result<u64, String> {
    let put = Op::put(key.to_owned(), value, Expect::Anything);
    store
        .commit(vec![put])
        .await
        .map(|committed| committed.revision)
        .map_err(|error| sentence(&error))
}

async fn watch(store: &Store, prefix: &'static str, after: u64) -> Result<Watch, String> {
    store.watch(prefix, after).await.map_err(|error| sentence(&error))
}

/// The next event of a watch, as `revision key value`.
async fn next(watch: &mut Watch) -> Result<String, String> {
    let event = timeout(WITHIN, watch.next()).await.map_err(|_| "no event came")?;
    let event = event.ok_or("the watch ended")?.map_err(|error| sentence(&error))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let value = event.value.as_deref().map_or("gone".to_owned(), text);
    Ok(format!("{} {} {value}", event.revision, text(&event.key)))
}

fn same<T: PartialEq + std::fmt::Debug>(found: T, wanted: T) -> Outcome {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("found {found:?}, wanted {wanted:?}"))
    }
}

async fn two_stores() -> Outcome {
    let etcd = cluster().await?;
    let one = open(Etcd::new(etcd.endpoints())).await?;
    let two = open(Etcd::new(etcd.endpoints())).await?;
    let other = open(Etcd::new(etcd.endpoints()).prefix("/other")).await?;
    let mut watching = watch(&two, "/", two.revision()).await?;
    put(&other, "/a", "not ours").await?;
    let revision = put(&one, "/a", Value::stamped("rv=", 3)).await?;
    same(next(&mut watching).await?, format!("{revision} /a rv={revision}"))?;
    let entry = two.get("/a").await.map_err(|error| sentence(&error))?;
    same(entry.map(|entry| entry.revision), Some(revision))?;
    timeout(WITHIN, two.reached(revision)).await.map_err(|_| "the revision is not reached")?;
    let stale = Op::put("/a", "stale", Expect::Revision(revision - 1));
    match two.commit(vec![stale]).await {
        Err(Error::Conflict { current: Some(current), .. }) => same(current.revision, revision),
        answer => Err(format!("a stale commit was answered with {answer:?}")),
    }
}

async fn watch_from_before() -> Outcome {
    let etcd = cluster().await?;
    let one = open(Etcd::new(etcd.endpoints())).await?;
    let before = put(&one, "/a", "one").await?;
    let removal = Op::delete("/a", Expect::Anything);
    one.commit(vec![removal]).await.map_err(|error| sentence(&error))?;
    let two = open(Etcd::new(etcd.endpoints())).await?;
    let mut watching = watch(&two, "/", before - 1).await?;
    same(next(&mut watching).await?, format!("{before} /a one"))?;
    same(next(&mut watching).await?, format!("{} /a gone", before + 1))?;
    put(&one, "/a", "new").await?;
    same(next(&mut watching).await?, format!("{} /a new", before + 2))?;
    two.close().await;
    match timeout(WITHIN, watching.next()).await {
        Ok(Some(Err(Error::Closed))) => Ok(()),
        other => Err(format!("a closed store answered {other:?}")),
    }
}

async fn progress() -> Outcome {
    let etcd = cluster().await?;
    let store = open(Etcd::new(etcd.endpoints())).await?;
    let watching = watch(&store, "/quiet/", store.revision()).await?;
    let mut old = watch(&store, "/quiet/", 0).await?;
    let revision = put(&store, "/other", "v").await?;
    let told = async {
        while watching.revision() < revision || old.revision() < revision {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(WITHIN, told).await.map_err(|_| "the watchers were not told")?;
    put(&store, "/quiet/a", "v").await?;
    same(next(&mut old).await?, format!("{} /quiet/a v", revision + 1))
}

async fn health() -> Outcome {
    let mut etcd = cluster().await?;
    let store = open(Etcd::new(etcd.endpoints())).await?;
    same(store.health().await, Health::Healthy)?;
    etcd.kill(0);
    match timeout(WITHIN, store.health()).await {
        Ok(Health::Unavailable { .. }) => {}
        other => return Err(format!("without etcd the health is {other:?}")),
    }
    etcd.restart(0).map_err(|error| sentence(&error))?;
    let recovered = async {
        while !store.health().await.is_healthy() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(WITHIN, recovered).await.map_err(|_| "it stays unavailable".to_owned())
}

async fn slow_watcher() -> Outcome {
    let etcd = cluster().await?;
    let store = open(Etcd::new(etcd.endpoints()).watch_bytes(10_000)).await?;
    let mut slow = watch(&store, "/", store.revision()).await?;
    let mut quick = watch(&store, "/", store.revision()).await?;
    for _ in 0..40 {
        put(&store, "/a", "v".repeat(1_000)).await?;
        // Each comes by itself: what etcd tells at once is queued at once, however much it is.
        next(&mut quick).await?;
    }
    let ended = async {
        loop {
            match slow.next().await {
                Some(Ok(_)) => {}
                end => break end,
            }
        }
    };
    match timeout(WITHIN, ended).await {
        Ok(Some(Err(Error::Lagged { .. }))) => Ok(()),
        other => Err(format!("it was answered {other:?}")),
    }
}

async fn forgets() -> Outcome {
    let etcd = cluster().await?;
    let store = open(Etcd::new(etcd.endpoints()).history_revisions(100)).await?;
    let first = store.revision();
    for _ in 0..200 {
        put(&store, "/a", "v").await?;
    }
    let forgotten = async {
        loop {
            match store.watch("/", first).await {
                Err(Error::Compacted { oldest, .. }) if store.revision() - oldest <= 125 => break oldest,
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let oldest = timeout(WITHIN, forgotten).await.map_err(|_| "nothing was forgotten")?;
    let kept = store.revision() - oldest;
    if kept < 100 {
        return Err(format!("{kept} revisions are kept"));
    }
    watch(&store, "/", oldest).await.map(drop)
}

async fn backup() -> Outcome {
    let etcd = cluster().await?;
    let store = open(Etcd::new(etcd.endpoints())).await?;
    for n in 0..50 {
        let many = (0..100).map(|m| Op::put(format!("/{n:02}{m:02}"), Value::stamped("rv=", 3), Expect::Absent));
        store.commit(many.collect()).await.map_err(|error| sentence(&error))?;
    }
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (file, path) = (directory.path().join("backup"), directory.path().join("store"));
    let written = store.backup(&file).await.map_err(|error| sentence(&error))?;
    Store::restore(&file, &path).await.map_err(|error| sentence(&error))?;
    let restored = Store::open(&path).await.map_err(|error| sentence(&error))?;
    let [before, after] = [
        store.range(Default::default()).await,
        restored.range(Default::default()).await,
    ];
    same(after.map(|page| page.entries).map_err(|error| sentence(&error))?.len(), 5_000)?;
    same(written.revision, before.map(|page| page.revision).map_err(|error| sentence(&error))?)
}

async fn tls() -> Outcome {
    let etcd = Cluster::start(1, Setting::Tls).await.map_err(|error| sentence(&error))?;
    let [authority, certificate, key] = etcd.identity();
    let tls = Tls::new(authority).identity(certificate, key);
    let store = open(Etcd::new(etcd.endpoints()).tls(tls)).await?;
    put(&store, "/a", "v").await?;
    let anonymous = Etcd::new(etcd.endpoints()).tls(Tls::new(authority)).open().await;
    if anonymous.is_ok() {
        return Err("a client without a certificate was served".into());
    }
    match Etcd::new(etcd.endpoints()).open().await {
        Err(Error::Refused { reason, .. }) => same(reason.as_str(), "https needs a certificate authority to trust"),
        other => Err(format!("https without an authority was answered {:?}", other.map(drop))),
    }
}

async fn login() -> Outcome {
    let mut etcd = cluster().await?;
    drop(open(Etcd::new(etcd.endpoints())).await?);
    for (path, body) in [
        ("/v3/auth/user/add", r#"{"name": "root", "password": "secret"}"#),
        ("/v3/auth/role/add", r#"{"name": "root"}"#),
        ("/v3/auth/user/grant", r#"{"user": "root", "role": "root"}"#),
        ("/v3/auth/enable", "{}"),
    ] {
        let answer = etcd.post(path, body).map_err(|error| sentence(&error))?;
        if !answer.starts_with("HTTP/1.1 200") {
            return Err(answer);
        }
    }
    let store = open(Etcd::new(etcd.endpoints()).login("root", "secret")).await?;
    let mut watching = watch(&store, "/", store.revision()).await?;
    let revision = put(&store, "/a", "v").await?;
    same(next(&mut watching).await?, format!("{revision} /a v"))?;
    for etcd in [
        Etcd::new(etcd.endpoints()),
        Etcd::new(etcd.endpoints()).login("root", "guess"),
    ] {
        match etcd.open().await {
            Err(Error::Refused { .. }) => {}
            other => return Err(format!("a stranger was answered {:?}", other.map(drop))),
        }
    }
    // A member that is started again knows no token of before, and of this store only the watch asks for a new one.
    etcd.kill(0);
    etcd.restart(0).map_err(|error| sentence(&error))?;
    let other = open(Etcd::new(etcd.endpoints()).login("root", "secret")).await?;
    let revision = put(&other, "/b", "v").await?;
    same(next(&mut watching).await?, format!("{revision} /b v"))
}

/// etcd takes 128 operations at once, of which a put may need two.
async fn many_at_once() -> Outcome {
    let etcd = cluster().await?;
    let store = open(Etcd::new(etcd.endpoints())).await?;
    let puts = |count: usize| (0..count).map(|n| Op::put(format!("/{n}"), "v", Expect::Anything)).collect();
    same(
        store
            .commit(puts(64))
            .await
            .map(|committed| committed.entries.len())
            .map_err(|error| sentence(&error))?,
        64,
    )?;
    let before = store.revision();
    match store.commit(puts(65)).await {
        Err(Error::Refused { .. }) => {}
        other => return Err(format!("65 puts were answered {:?}", other.map(drop))),
    }
    let page = store.range(Default::default()).await.map_err(|error| sentence(&error))?;
    same((page.revision, page.entries.len()), (before, 64))
}
