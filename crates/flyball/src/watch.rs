//! Keeps one mirror up to date: list, then watch, for as long as the operator runs.

use crate::{Backoff, Error, Metrics, cache::Mirror, kind::Form, object::Object};
use futures::{AsyncBufReadExt, StreamExt};
use kube::{
    Client,
    api::{ListParams, Request, WatchParams},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashSet, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// Objects per page of a list.
const PAGE: u32 = 500;
/// A page of a list, or the beginning of a watch, takes no longer than this.
const ANSWER: Duration = Duration::from_secs(60);
/// The server ends a watch after this time; it is then opened again.
const WATCH: Duration = Duration::from_secs(290);
/// A watch that ends sooner without having told anything counts as failed.
const SHORT: Duration = Duration::from_secs(1);

/// Why a list or watch ended before its time.
#[derive(Debug, thiserror::Error)]
enum WatchError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("build the request")]
    Build(#[from] kube::core::request::Error),
    #[error("the server said nothing for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("read the watch")]
    Read(#[from] std::io::Error),
    #[error("the watch ended as soon as it began")]
    Short,
    #[error("decode what the server sent")]
    Decode(#[from] serde_json::Error),
    #[error("the server ended the watch: {0}")]
    Ended(String),
    #[error("the version to watch from has expired")]
    Expired,
}

/// Follows a kind until the future is dropped.
///
/// Each watch has its own backoff, so that one which fails delays no other. It is reset by news, not by a list that worked: a
/// server which expires every watch is not listed in a circle.
pub(crate) async fn follow(client: &Client, mirror: &Mirror, metrics: &Metrics) {
    let mut watch = Watch { client, mirror, from: None, failures: 0 };
    loop {
        let watched = watch.from.is_some();
        let Err(error) = watch.step().await else {
            if watched {
                metrics.watch_restarted(mirror.kind().name(), "ended");
            }
            continue;
        };
        watch.failures += 1;
        let expired = error.is_expired();
        metrics.watch_restarted(mirror.kind().name(), if expired { "expired" } else { "failed" });
        if expired {
            watch.from = None;
            if watch.failures == 1 {
                continue;
            }
        }
        let error = Error::from(error);
        let (kind, failures) = (mirror.kind().name(), watch.failures);
        tracing::warn!(kind, failures, %error, "watch failed");
        mirror.failed(&error.to_string());
        sleep(Backoff::WATCH.delay(failures, &mirror.kind().id())).await;
    }
}

struct Watch<'a> {
    client: &'a Client,
    mirror: &'a Mirror,
    /// The version to watch from, once listed.
    from: Option<String>,
    /// Failures in a row.
    failures: u32,
}

#[derive(Deserialize)]
struct List<'a> {
    metadata: ListMeta,
    /// `null` when a real server lists no metadata.
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(rename = "continue", default)]
    next: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The object of a BOOKMARK: nothing but a version.
#[derive(Deserialize)]
struct Bookmark {
    metadata: ListMeta,
}

impl Watch<'_> {
    async fn step(&mut self) -> Result<(), WatchError> {
        match self.from.clone() {
            None => self.list().await,
            Some(version) => self.watch(&version).await,
        }
    }

    async fn list(&mut self) -> Result<(), WatchError> {
        self.mirror.list_began();
        let mut uids = HashSet::new();
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let text = answer(self.client.request_text(self.list_request(&page)?)).await?;
            let list: List<'_> = serde_json::from_str(&text)?;
            for item in list.items.into_iter().flatten() {
                let object = Object::parse(item.get())?;
                uids.insert(object.uid.clone());
                self.mirror.listed(object);
            }
            if list.metadata.next.is_empty() {
                return self.listed(&uids, list.metadata.resource_version);
            }
            page.continue_token = Some(list.metadata.next);
        }
    }

    fn listed(&mut self, uids: &HashSet<Box<str>>, version: String) -> Result<(), WatchError> {
        self.mirror.list_ended(uids, version.parse().unwrap_or_default());
        tracing::debug!(kind = self.mirror.kind().name(), objects = uids.len(), "listed");
        self.from = Some(version);
        Ok(())
    }

    async fn watch(&mut self, version: &str) -> Result<(), WatchError> {
        let started = Instant::now();
        let body = answer(self.client.request_stream(self.watch_request(version)?)).await?;
        self.mirror.watching();
        let mut lines = std::pin::pin!(body.lines());
        let mut told = false;
        let silence = WATCH + Duration::from_secs(5);
        while let Some(line) = timeout(silence, lines.next()).await.map_err(|_| WatchError::Silent(silence))? {
            self.take(&line?)?;
            self.failures = 0;
            told = true;
        }
        if !told && started.elapsed() < SHORT {
            return Err(WatchError::Short);
        }
        self.failures = 0;
        Ok(())
    }

    fn take(&mut self, line: &str) -> Result<(), WatchError> {
        let event: Event<'_> = serde_json::from_str(line)?;
        match event.event.as_ref() {
            "ADDED" | "MODIFIED" => {
                let object = Object::parse(event.object.get())?;
                self.from = Some(object.resource_version());
                self.mirror.changed(object);
            }
            "DELETED" => {
                let object = Object::parse(event.object.get())?;
                self.from = Some(object.resource_version());
                self.mirror.deleted(&object);
            }
            "BOOKMARK" => {
                let Bookmark { metadata } = serde_json::from_str(event.object.get())?;
                self.mirror.bookmarked(metadata.resource_version.parse().unwrap_or_default());
                self.from = Some(metadata.resource_version);
            }
            _ => return Err(ended(event.object)),
        }
        Ok(())
    }

    fn list_request(&self, page: &ListParams) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        let request = Request::new(self.mirror.kind().path(None));
        match self.mirror.kind().form {
            Form::Whole => request.list(page),
            Form::Metadata => request.list_metadata(page),
        }
    }

    fn watch_request(&self, version: &str) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        let request = Request::new(self.mirror.kind().path(None));
        let params = WatchParams::default().timeout(WATCH.as_secs() as u32);
        match self.mirror.kind().form {
            Form::Whole => request.watch(&params, version),
            Form::Metadata => request.watch_metadata(&params, version),
        }
    }
}

impl WatchError {
    /// HTTP 410 when a list is continued or a watch begins, or an ERROR event with that code while it runs.
    fn is_expired(&self) -> bool {
        match self {
            WatchError::Expired => true,
            WatchError::Api(kube::Error::Api(status)) => status.code == 410,
            _ => false,
        }
    }
}

async fn answer<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, WatchError> {
    Ok(timeout(ANSWER, request).await.map_err(|_| WatchError::Silent(ANSWER))??)
}

fn ended(status: &RawValue) -> WatchError {
    match serde_json::from_str::<kube::core::Status>(status.get()) {
        Ok(status) if status.code == 410 => WatchError::Expired,
        Ok(status) => WatchError::Ended(status.message),
        Err(_) => WatchError::Ended(status.get().into()),
    }
}
