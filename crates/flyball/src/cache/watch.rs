//! Keeps one mirror up to date: list, then watch, for as long as the operator runs.

mod event;
mod split;

use crate::cache::kind::Form;
use crate::cache::object::Object;
use crate::cache::{Mirror, WatchIndex};
use crate::leader::FencedClient;
use crate::{Backoff, Error, Metrics};
use event::{Event, ListMeta};
use futures::{Stream, StreamExt};
use http::StatusCode;
use kube::{
    api::{ListParams, Request, WatchParams},
    client::Body,
};
use serde::Deserialize;
use split::{Items, Lines};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Objects per page of a list.
const PAGE: u32 = 500;
/// A list, or the beginning of a watch, is silent for no longer than this.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The server ends a watch after this time; it is then opened again.
const WATCH_DURATION: Duration = Duration::from_secs(290);
/// How often the API server is asked for an optional kind that is not installed.
const INSTALLED_POLL: Duration = Duration::from_secs(10);
/// A watch that ends sooner counts as failed if it told nothing, and is not opened again before.
const MIN_WATCH_DURATION: Duration = Duration::from_secs(1);

/// Why a list or watch ended before its time.
#[derive(Debug, thiserror::Error)]
enum WatchError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("{message}")]
    Refused {
        code: StatusCode,
        message: String,
        retry_after: Duration,
    },
    #[error("build the request")]
    Build(#[from] kube::core::request::Error),
    #[error("the server said nothing for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("read what the server sent")]
    Read(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the watch ended as soon as it began")]
    Short,
    #[error("decode what the server sent")]
    Decode(#[from] serde_json::Error),
    #[error("the server ended the watch: {0}")]
    Ended(String),
    #[error("the version to watch from has expired")]
    Expired,
}

/// How a kind is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lists {
    /// In pages, each decoded while it arrives. It was not dearer for a kube-apiserver than the other way.
    #[default]
    Paged,
    /// As the beginning of a watch (KEP-3157), where the server can; it then holds no list in memory.
    Streamed,
    /// In pages, from an API server in this process: its watches neither break nor fall silent, so they need no end and no bookmarks.
    InProcess,
}

/// Follows a kind, or one namespace of it, until the future is dropped.
///
/// Each watch has its own backoff, so that one which fails delays no other. It is reset by a watch that lasts, not by a list that
/// worked or a first word: a server which expires or ends every watch is not asked in a circle.
pub(crate) async fn follow(client: &FencedClient, mirror: &Mirror, watch: WatchIndex, lists: Lists, metrics: &Metrics) {
    let mut watch = Watch { client, mirror, watch, lists, from: None, failures: 0 };
    loop {
        let watched = watch.from.is_some();
        let Err(error) = watch.step().await else {
            if watched {
                metrics.watch_restarted(mirror.kind().name(), "ended");
            }
            continue;
        };
        if error.is_not_served() && mirror.is_optional() {
            watch.not_installed().await;
            continue;
        }
        watch.failures += 1;
        let expired = error.is_expired();
        metrics.watch_restarted(mirror.kind().name(), if expired { "expired" } else { "failed" });
        if expired || error.lasts() {
            watch.from = None;
        }
        if expired && watch.failures == 1 {
            continue;
        }
        watch.failed(error).await;
    }
}

struct Watch<'a> {
    client: &'a FencedClient,
    mirror: &'a Mirror,
    watch: WatchIndex,
    lists: Lists,
    /// The version to watch from, once listed.
    from: Option<String>,
    /// Failures in a row.
    failures: u32,
}

impl Watch<'_> {
    async fn step(&mut self) -> Result<(), WatchError> {
        match (self.from.clone(), self.lists) {
            (Some(version), _) => self.watch(self.watch_request(Some(&version))?).await,
            (None, Lists::Paged | Lists::InProcess) => self.list().await,
            (None, Lists::Streamed) => self.stream().await,
        }
    }

    /// Lists anew what was watched, or waits until an optional kind may have been installed.
    async fn not_installed(&mut self) {
        self.failures = 0;
        if self.from.take().is_none() {
            self.mirror.not_installed(self.watch);
            sleep(INSTALLED_POLL).await;
        }
    }

    /// Says what failed, and waits until it is time to try again.
    async fn failed(&self, error: WatchError) {
        let wait = error.retry_after();
        let error = Error::from(error);
        let (kind, namespace) = (self.mirror.kind().name(), self.mirror.namespace(self.watch));
        tracing::warn!(kind, namespace, failures = self.failures, %error, "watch failed");
        self.mirror.failed(self.watch, &error.to_string());
        // Replicas of one operator do not come back together, either.
        let what = (self.mirror.kind().id(), namespace, std::env::var_os("HOSTNAME"));
        sleep(Backoff::WATCH.delay(self.failures, &what).max(wait)).await;
    }

    async fn list(&mut self) -> Result<(), WatchError> {
        self.mirror.list_began(self.watch);
        let selection = &self.mirror.kind().selection;
        let mut page = ListParams {
            label_selector: selection.label_selector(),
            field_selector: selection.field_selector(),
            ..ListParams::default().limit(PAGE)
        };
        loop {
            let ListMeta { resource_version, next, .. } = self.page(&page).await?;
            if next.is_empty() {
                self.mirror.list_ended(self.watch, resource_version.parse().unwrap_or_default());
                tracing::debug!(kind = self.mirror.kind().name(), version = resource_version, "listed");
                self.from = Some(resource_version);
                return Ok(());
            }
            page.continue_token = Some(next);
        }
    }

    /// Reads one page; its items are put into the mirror while the rest of them arrives.
    async fn page(&self, page: &ListParams) -> Result<ListMeta, WatchError> {
        let request = Request::new(self.mirror.kind().path(self.mirror.namespace(self.watch)));
        let request = match self.mirror.kind().form {
            Form::Whole => request.list(page)?,
            Form::Metadata => request.list_metadata(page)?,
        };
        let mut body = std::pin::pin!(self.open(request).await?);
        let mut items = Items::default();
        while let Some(piece) = with_timeout(RESPONSE_TIMEOUT, body.next()).await? {
            items.feed(&piece.map_err(WatchError::Read)?, |item| -> Result<(), WatchError> {
                self.mirror.listed(self.watch, Object::parse(event::text(item)?)?);
                Ok(())
            })?;
        }
        #[derive(Deserialize)]
        struct Envelope {
            metadata: ListMeta,
        }
        let Envelope { metadata } = serde_json::from_slice(&items.end())?;
        Ok(metadata)
    }

    /// Lists by watching. A server that cannot do that is asked for pages from then on.
    async fn stream(&mut self) -> Result<(), WatchError> {
        self.mirror.list_began(self.watch);
        match self.watch(self.watch_request(None)?).await {
            Err(WatchError::Refused {
                code: StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY,
                ..
            }) => {
                self.lists = Lists::Paged;
                Ok(())
            }
            Ok(()) if self.from.is_none() => Err(WatchError::Short),
            ended => ended,
        }
    }

    async fn watch(&mut self, request: http::Request<Vec<u8>>) -> Result<(), WatchError> {
        let started = Instant::now();
        let mut body = std::pin::pin!(self.open(request).await?);
        if self.from.is_some() {
            self.mirror.watching(self.watch);
        }
        let (mut lines, mut told) = (Lines::default(), false);
        while let Some(piece) = self.patiently(body.next()).await? {
            lines.feed(&piece.map_err(WatchError::Read)?, |line| {
                self.take(line)?;
                told = true;
                if started.elapsed() >= MIN_WATCH_DURATION {
                    self.failures = 0;
                }
                Ok::<_, WatchError>(())
            })?;
        }
        if let Some(line) = lines.end() {
            self.take(&line)?;
            told = true;
        }
        match MIN_WATCH_DURATION.saturating_sub(started.elapsed()) {
            Duration::ZERO => self.failures = 0,
            _ if !told => return Err(WatchError::Short),
            early => sleep(early).await,
        }
        Ok(())
    }

    /// Waits for the next piece of a watch as long as the watch may be silent.
    async fn patiently<T>(&self, next: impl Future<Output = T>) -> Result<T, WatchError> {
        match self.lists {
            Lists::InProcess => Ok(next.await),
            _ => with_timeout(WATCH_DURATION + Duration::from_secs(5), next).await,
        }
    }

    fn take(&mut self, line: &[u8]) -> Result<(), WatchError> {
        match Event::parse(event::text(line)?)? {
            Event::Put(object) if self.from.is_none() => self.mirror.listed(self.watch, object),
            Event::Put(object) => {
                self.from = Some(object.resource_version());
                self.mirror.changed(self.watch, object);
            }
            Event::Deleted(object) => {
                self.from = self.from.is_some().then(|| object.resource_version());
                self.mirror.deleted(self.watch, &object);
            }
            Event::Bookmark(meta) => self.bookmarked(meta),
            Event::Nothing => {}
            Event::Expired => return Err(WatchError::Expired),
            Event::Failed(message) => return Err(WatchError::Ended(message)),
        }
        Ok(())
    }

    fn bookmarked(&mut self, meta: ListMeta) {
        if meta.resource_version.is_empty() {
            return;
        }
        let version = meta.resource_version.parse().unwrap_or_default();
        if self.from.is_some() {
            self.mirror.bookmarked(self.watch, version);
        } else if meta.ends_initial_events() {
            self.mirror.list_ended(self.watch, version);
            self.mirror.watching(self.watch);
            tracing::debug!(kind = self.mirror.kind().name(), version, "listed");
        } else {
            return;
        }
        self.from = Some(meta.resource_version);
    }

    /// Asks to watch from a version, or from the state of now and that first.
    fn watch_request(&self, version: Option<&str>) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        let kind = self.mirror.kind();
        let request = Request::new(kind.path(self.mirror.namespace(self.watch)));
        let params = WatchParams {
            label_selector: kind.selection.label_selector(),
            field_selector: kind.selection.field_selector(),
            timeout: (self.lists != Lists::InProcess).then_some(WATCH_DURATION.as_secs() as u32),
            bookmarks: self.lists != Lists::InProcess,
            send_initial_events: version.is_none(),
        };
        match kind.form {
            Form::Whole => request.watch(&params, version.unwrap_or_default()),
            Form::Metadata => request.watch_metadata(&params, version.unwrap_or_default()),
        }
    }

    /// Sends a request, and gives back the body of the answer as it arrives.
    async fn open(&self, request: http::Request<Vec<u8>>) -> Result<impl Stream<Item = Piece> + use<>, WatchError> {
        let response = with_timeout(RESPONSE_TIMEOUT, self.client.send(request.map(Body::from))).await??;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            let body = with_timeout(RESPONSE_TIMEOUT, body.collect_bytes()).await?.unwrap_or_default();
            return Err(event::refused(&head, &body));
        }
        Ok(http_body_util::BodyDataStream::new(body).map(|piece| piece.map_err(Into::into)))
    }
}

type Piece = Result<bytes::Bytes, Box<dyn std::error::Error + Send + Sync>>;

impl WatchError {
    /// HTTP 410 when a list is continued or a watch begins, or an ERROR event with that code while it runs.
    fn is_expired(&self) -> bool {
        matches!(self, WatchError::Expired | WatchError::Refused { code: StatusCode::GONE, .. })
    }

    /// HTTP 404: a collection that is served is there even if it is empty.
    fn is_not_served(&self) -> bool {
        matches!(self, WatchError::Refused { code: StatusCode::NOT_FOUND, .. })
    }

    /// Whether a watch from the same version would fail again: it is listed anew, as client-go's reflector does.
    fn lasts(&self) -> bool {
        const ANEW: [StatusCode; 3] = [
            StatusCode::BAD_REQUEST,
            StatusCode::NOT_FOUND,
            StatusCode::GATEWAY_TIMEOUT,
        ];
        match self {
            WatchError::Ended(_) | WatchError::Decode(_) => true,
            // The last is said of versions that the server has not reached, as after a restore of its store.
            WatchError::Refused { code, .. } => ANEW.contains(code),
            _ => false,
        }
    }

    /// As long as the server wants to be left alone.
    fn retry_after(&self) -> Duration {
        match self {
            WatchError::Refused { retry_after, .. } => *retry_after,
            _ => Duration::ZERO,
        }
    }
}

async fn with_timeout<T>(time: Duration, work: impl Future<Output = T>) -> Result<T, WatchError> {
    timeout(time, work).await.map_err(|_| WatchError::Silent(time))
}
