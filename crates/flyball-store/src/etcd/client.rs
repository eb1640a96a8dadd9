//! Calls to an etcd cluster. Any member will do; where one does not answer, the next is tried. Reads are retried; a write
//! is retried only where it was certainly not sent.

use super::{
    config::Etcd,
    wire::{AuthenticateRequest, AuthenticateResponse, StatusResponse, WatchRequest, WatchResponse},
};
use crate::{Error, Result};
use futures::Stream;
use http::uri::PathAndQuery;
use prost::Message;
use std::{
    io,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tonic::{
    Code, ConnectError, Request, Status, Streaming,
    client::Grpc,
    metadata::{Ascii, AsciiMetadataValue, MetadataValue},
    transport::Channel,
};
use tonic_prost::ProstCodec;

/// The most time that a call may take with all its retries.
const MAX_CALL_TIME: Duration = Duration::from_secs(20);

/// The most time that one attempt may take: longer than etcd itself waits for a leader election.
pub(super) const MAX_ATTEMPT_TIME: Duration = Duration::from_secs(10);

/// The pause after every member was tried.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// When a failed call is retried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Always,
    IfNotSent,
}

/// The members of a cluster, and the one that is used at the moment.
pub(crate) struct Client {
    pub name: String,
    members: Vec<Channel>,
    current: AtomicUsize,
    login: Option<AuthenticateRequest>,
    token: RwLock<Option<MetadataValue<Ascii>>>,
}

impl Client {
    pub fn new(config: &Etcd) -> Result<Client> {
        let login = config.login.clone();
        Ok(Client {
            name: config.name(),
            members: config.endpoints()?.iter().map(|endpoint| endpoint.connect_lazy()).collect(),
            current: AtomicUsize::new(0),
            login: login.map(|(name, password)| AuthenticateRequest { name, password }),
            token: RwLock::default(),
        })
    }

    /// Calls a method and waits for its answer.
    pub async fn call<M, R>(&self, method: &'static str, message: M, retry: Retry) -> Result<R, Status>
    where
        M: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let started = Instant::now();
        let (mut logins, mut untrusted) = (0, 0);
        loop {
            let at = self.current();
            let status = match self.attempt(at, method, message.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            // A certificate does not become valid by waiting, but another member may have a valid one.
            untrusted += usize::from(is_untrusted(&status));
            let is_over = started.elapsed() > MAX_CALL_TIME || untrusted >= self.members.len();
            if is_token_refused(&status) && self.login.is_some() && logins < 2 {
                logins += 1;
                self.log_in(at).await?;
            } else if !is_over && (is_not_sent(&status) || (retry == Retry::Always && is_transient(&status))) {
                self.switch(at).await;
            } else {
                return Err(status);
            }
        }
    }

    /// The member that is used at the moment.
    pub fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    /// Whether a member answers a progress request only after every event up to its revision was sent.
    pub async fn has_exact_progress(&self, member: usize) -> bool {
        let status = self.attempt(member, "/etcdserverpb.Maintenance/Status", ()).await;
        status.is_ok_and(|status: StatusResponse| has_exact_progress(&status.version))
    }

    /// Opens a watch on a member; returns the stream of its answers.
    pub async fn watch(
        &self,
        member: usize,
        requests: impl Stream<Item = WatchRequest> + Send + 'static,
    ) -> Result<Streaming<WatchResponse>, Status> {
        let mut grpc = self.ready(member).await?;
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let request = self.request(requests);
        let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
        Ok(grpc.streaming(request, path, codec).await?.into_inner())
    }

    /// Switches to another member, or gets a new token where the old one was refused, before a watch is opened again.
    pub async fn recover(&self, status: &Status) {
        let at = self.current();
        if is_token_refused(status) && self.login.is_some() && self.log_in(at).await.is_ok() {
            return;
        }
        self.switch(at).await;
    }

    /// The store's error for a failed call.
    pub fn error(&self, status: Status) -> Error {
        let place = self.name.clone();
        if is_not_sent(&status) || is_transient(&status) {
            return Error::Unavailable { place, source: Arc::new(status) };
        }
        Error::Refused { place, reason: status.message().to_owned() }
    }

    async fn attempt<M, R>(&self, at: usize, method: &'static str, message: M) -> Result<R, Status>
    where
        M: Message + 'static,
        R: Message + Default + 'static,
    {
        let mut grpc = self.ready(at).await?;
        let codec = ProstCodec::<M, R>::default();
        let call = grpc.unary(self.request(message), PathAndQuery::from_static(method), codec);
        match timeout(MAX_ATTEMPT_TIME, call).await {
            Ok(answer) => answer.map(tonic::Response::into_inner),
            Err(_) => Err(Status::deadline_exceeded("no answer in time")),
        }
    }

    async fn ready(&self, at: usize) -> Result<Grpc<Channel>, Status> {
        let mut grpc = Grpc::new(self.members[at].clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        Ok(grpc)
    }

    fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        // A member without a leader refuses at once, and has done nothing.
        metadata.insert("hasleader", AsciiMetadataValue::from_static("true"));
        if let Some(token) = &*self.token.read().unwrap_or_else(PoisonError::into_inner) {
            metadata.insert("token", token.clone());
        }
        request
    }

    async fn log_in(&self, at: usize) -> Result<(), Status> {
        let login = self.login.clone().expect("only with a login is a token asked for");
        let answer: AuthenticateResponse = self.attempt(at, "/etcdserverpb.Auth/Authenticate", login).await?;
        let token = answer.token.parse().map_err(|_| Status::internal("the token is no text"))?;
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(())
    }

    /// Switches to the next member, unless another call did already; pauses after the last one.
    async fn switch(&self, at: usize) {
        let next = (at + 1) % self.members.len();
        if self.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() && next == 0 {
            sleep(RETRY_PAUSE).await;
        }
    }
}

/// Whether the request was certainly not sent.
fn is_not_sent(status: &Status) -> bool {
    let mut causes = std::iter::successors(Some(status as &dyn std::error::Error), |error| error.source());
    causes.any(|cause| cause.is::<ConnectError>()) || status.message() == "etcdserver: no leader"
}

/// Whether one side refuses the other's certificate.
fn is_untrusted(status: &Status) -> bool {
    let mut causes = std::iter::successors(Some(status as &dyn std::error::Error), |error| error.source());
    causes.any(|cause| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
    })
}

/// Whether a later attempt may succeed.
fn is_transient(status: &Status) -> bool {
    use Code::{Aborted, Cancelled, DeadlineExceeded, Internal, Unavailable, Unknown};
    matches!(status.code(), Unavailable | DeadlineExceeded | Cancelled | Aborted | Unknown | Internal)
}

// etcd, api/v3rpc/rpctypes/error.go: ErrGRPCInvalidAuthToken, ErrGRPCUserEmpty, ErrGRPCAuthOldRevision. A watch gets them in the
// middle of a sentence (server/etcdserver/api/v3rpc/watch.go, recvLoop).
fn is_token_refused(status: &Status) -> bool {
    let reasons = [
        "invalid auth token",
        "user name is empty",
        "revision of auth store is old",
    ];
    let is_reason = |reason| status.message().ends_with(&format!("etcdserver: {reason}"));
    status.code() == Code::Unauthenticated || reasons.into_iter().any(is_reason)
}

/// etcd-io/etcd#15220 and #17507, as kube-apiserver's `endpointSupportsRequestWatchProgress` decides it.
fn has_exact_progress(version: &str) -> bool {
    let number = |part: &str| part.split(|it: char| !it.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    let numbers: Option<Vec<u32>> = version.split('.').take(3).map(number).collect();
    match numbers.as_deref() {
        Some([3, 4, patch]) => *patch >= 31,
        Some([3, 5, patch]) => *patch >= 13,
        Some([major, minor, _]) => (*major, *minor) > (3, 5),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::has_exact_progress;

    #[test]
    fn progress_is_requested_only_from_versions_that_answer_it_exactly() {
        for version in [
            "3.4.31",
            "3.5.13",
            "3.5.21",
            "3.6.0",
            "3.6.8-rc.1",
            "3.7.0-alpha",
            "4.0.0",
        ] {
            assert!(has_exact_progress(version), "{version}");
        }
        for version in ["3.3.27", "3.4.30", "3.5.0", "3.5.12", "2.3.8", "", "3.5", "unknown"] {
            assert!(!has_exact_progress(version), "{version}");
        }
    }
}
