//! Requests to the API server from the same process, without a socket: each client makes them as one user.

use crate::authn::InProcessUser;
use crate::authn::user::User;
use crate::http::body::Body;
use crate::server::ApiServer;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use std::convert::Infallible;
use std::task::{Context, Poll};

/// A client in the server's process, as a tower service; made by [`ApiServer::as_user`].
#[derive(Clone)]
pub struct InProcessClient {
    server: ApiServer,
    user: User,
}

impl InProcessClient {
    pub(crate) fn new(server: ApiServer, user: User) -> InProcessClient {
        InProcessClient { server, user }
    }

    /// Makes a request.
    pub async fn respond<B>(&self, mut request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        request.extensions_mut().insert(InProcessUser(self.user.clone()));
        self.server.respond(request).await
    }
}

impl<B> tower::Service<Request<B>> for InProcessClient
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _ctx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let client = self.clone();
        Box::pin(async move { Ok(client.respond(request).await) })
    }
}
