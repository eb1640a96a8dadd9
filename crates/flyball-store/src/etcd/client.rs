//! Calls to an etcd cluster: any member will do, another one is tried where one does not answer, and a read is repeated.
//! A write is repeated only where it is certain that etcd never saw it.

use super::{
    config::Etcd,
    wire::{AuthenticateRequest, AuthenticateResponse, WatchRequest, WatchResponse},
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

/// How long all members together may leave a call unanswered.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long one member may: longer than etcd itself waits for a leader to be elected.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How long to wait before everybody is tried again.
const PAUSE: Duration = Duration::from_millis(50);

/// Whether a call may reach etcd twice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Freely,
    Unseen,
}

/// The members of a cluster, one of which is talked to.
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
    pub async fn call<M, R>(&self, method: &'static str, message: M, repeat: Repeat) -> Result<R, Status>
    where
        M: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let started = Instant::now();
        let (mut logins, mut untrusted) = (0, 0);
        loop {
            let at = self.current.load(Ordering::Relaxed);
            let status = match self.attempt(at, method, message.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            // A certificate does not become right by waiting, but another member may have a right one.
            untrusted += usize::from(is_untrusted(&status));
            let is_over = started.elapsed() > PATIENCE || untrusted >= self.members.len();
            if is_token_refused(&status) && self.login.is_some() && logins < 2 {
                logins += 1;
                self.log_in(at).await?;
            } else if !is_over && (is_unseen(&status) || (repeat == Repeat::Freely && is_passing(&status))) {
                self.leave(at).await;
            } else {
                return Err(status);
            }
        }
    }

    /// Opens a watch; returns what the member sends.
    pub async fn watch(
        &self,
        requests: impl Stream<Item = WatchRequest> + Send + 'static,
    ) -> Result<Streaming<WatchResponse>, Status> {
        let at = self.current.load(Ordering::Relaxed);
        let mut grpc = self.ready(at).await?;
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let request = self.request(requests);
        let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
        Ok(grpc.streaming(request, path, codec).await?.into_inner())
    }

    /// Turns to another member, and gets a new token where the old one was refused, before a watch is opened again.
    pub async fn recover(&self, status: &Status) {
        let at = self.current.load(Ordering::Relaxed);
        if is_token_refused(status) && self.login.is_some() && self.log_in(at).await.is_ok() {
            return;
        }
        self.leave(at).await;
    }

    /// What a failure means to a caller of the store.
    pub fn error(&self, status: Status) -> Error {
        let place = self.name.clone();
        if is_unseen(&status) || is_passing(&status) {
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
        match timeout(ANSWER_WITHIN, call).await {
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
        // A member that knows of no leader says so at once, and has done nothing.
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

    /// Turns to the next member, unless somebody did already; pauses where there is no other.
    async fn leave(&self, at: usize) {
        let next = (at + 1) % self.members.len();
        if self.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() && next == 0 {
            sleep(PAUSE).await;
        }
    }
}

/// Whether etcd never saw the request.
fn is_unseen(status: &Status) -> bool {
    let mut causes = std::iter::successors(Some(status as &dyn std::error::Error), |error| error.source());
    causes.any(|cause| cause.is::<ConnectError>()) || status.message() == "etcdserver: no leader"
}

/// Whether one side does not accept the other's certificate.
fn is_untrusted(status: &Status) -> bool {
    let mut causes = std::iter::successors(Some(status as &dyn std::error::Error), |error| error.source());
    causes.any(|cause| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
    })
}

/// Whether another attempt may succeed although nothing but time has changed.
fn is_passing(status: &Status) -> bool {
    use Code::{Aborted, Cancelled, DeadlineExceeded, Internal, Unavailable, Unknown};
    matches!(status.code(), Unavailable | DeadlineExceeded | Cancelled | Aborted | Unknown | Internal)
}

// etcd, api/v3rpc/rpctypes/error.go: ErrGRPCInvalidAuthToken, ErrGRPCUserEmpty, ErrGRPCAuthOldRevision. A watch is told in the
// middle of a sentence (server/etcdserver/api/v3rpc/watch.go, recvLoop).
fn is_token_refused(status: &Status) -> bool {
    let reasons = [
        "invalid auth token",
        "user name is empty",
        "revision of auth store is old",
    ];
    let is_told = |reason| status.message().ends_with(&format!("etcdserver: {reason}"));
    status.code() == Code::Unauthenticated || reasons.into_iter().any(is_told)
}
