//! What was written, by whom, in the order in which the server took it; and the rule that it must obey.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use kube::api::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::task::JoinSet;

/// How long to wait between looks at the record.
const PAUSE: Duration = Duration::from_millis(5);

/// One write that the server took.
#[derive(Clone, Debug)]
pub struct Write {
    version: u64,
    pub at: Instant,
    pub writer: String,
    /// Whoever holds the Lease from here on, if it was the Lease that was written.
    pub holder: Option<String>,
}

/// Writes to the Lease and to what its holder writes.
#[derive(Clone, Default)]
pub struct Record {
    writes: Arc<Mutex<Vec<Write>>>,
}

impl Record {
    /// Follows the two objects for as long as the answer is kept.
    pub fn follow(client: &Client) -> (Record, JoinSet<()>) {
        let record = Record::default();
        let kinds = [
            ("", "v1", "ConfigMap", "target"),
            ("coordination.k8s.io", "v1", "Lease", "writer"),
        ];
        let followed = kinds.map(|(group, version, kind, name)| {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let api = Api::<DynamicObject>::namespaced_with(client.clone(), "default", &kind);
            follow(api, name, record.clone())
        });
        (record, JoinSet::from_iter(followed))
    }

    /// The writes that an audit log tells of.
    pub fn audited(log: &str) -> Result<Record, String> {
        let record = Record::default();
        for line in log.lines() {
            let event: Value = serde_json::from_str(line).map_err(|error| format!("the audit log: {error}"))?;
            if event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300) {
                record.add(&event["responseObject"]);
            }
        }
        Ok(record)
    }

    /// The first write of data after a time, by anybody else.
    ///
    /// It is waited for in looks, not by the clock: a machine that stands still for a while takes nothing from the replicas.
    pub async fn next(&self, after: Instant, but: &str, within: Duration) -> Result<Write, String> {
        for _ in 0..within.as_millis() / PAUSE.as_millis() {
            match self.first(after, but) {
                Some(write) => return Ok(write),
                None => tokio::time::sleep(PAUSE).await,
            }
        }
        Err(format!("nobody but {but} wrote within {within:?}"))
    }

    fn first(&self, after: Instant, but: &str) -> Option<Write> {
        let writes = self.lock();
        let late = writes.iter().rev().take_while(|write| write.at > after);
        late.filter(|write| write.holder.is_none() && write.writer != but).last().cloned()
    }

    /// Whoever held the Lease last.
    pub fn holder(&self) -> Option<String> {
        self.lock().iter().rev().find_map(|write| write.holder.clone())
    }

    pub fn writes(&self) -> usize {
        self.lock().len()
    }

    /// In the server's order, every write is by whoever holds the Lease.
    pub fn check(&self) -> Result<(), String> {
        let mut writes = self.lock().clone();
        writes.sort_by_key(|write| write.version);
        writes.dedup_by_key(|write| write.version);
        let mut holder = None;
        let mut wrong = Vec::new();
        for write in writes {
            match write.holder {
                Some(next) => holder = Some(next),
                None if write.writer.is_empty() || Some(&write.writer) == holder.as_ref() => {}
                None => wrong.push(format!("{} wrote version {} under {holder:?}", write.writer, write.version)),
            }
        }
        match wrong.len() {
            0 => Ok(()),
            count => Err(format!(
                "{count} writes were not the leader's, first {}",
                wrong[..count.min(5)].join("; ")
            )),
        }
    }

    fn add(&self, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let Ok(version) = text(&object["metadata"]["resourceVersion"]).parse() else {
            return;
        };
        let holder = (object["kind"] == "Lease").then(|| text(&object["spec"]["holderIdentity"]));
        let write = Write {
            version,
            at: Instant::now(),
            writer: text(&object["data"]["writer"]),
            holder,
        };
        self.lock().push(write);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Write>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every version of an object, also across watches that end.
async fn follow(api: Api<DynamicObject>, name: &'static str, record: Record) {
    let mut from = "0".to_owned();
    loop {
        let params = WatchParams::default().fields(&format!("metadata.name={name}"));
        if let Ok(events) = api.watch(&params, &from).await {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                    from = object.resource_version().unwrap_or(from);
                    record.add(&serde_json::to_value(&object).unwrap_or_default());
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
