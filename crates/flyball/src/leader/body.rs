//! Bodies of a leader's writes, for a client whose connections are its own: they end unfinished when the lease does, and a
//! server does nothing with a request that it was not sent to its end.

use crate::cache::client::as_client;
use crate::leader::Leadership;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::{Client, client::Body};
use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// A client whose requests are sent to their end only while this process leads; the same client where nobody is elected.
pub(crate) fn ending(client: Client, leadership: &Leadership) -> Client {
    if leadership.election().is_none() {
        return client;
    }
    let namespace = client.default_namespace().to_owned();
    let send = |this: Arc<Ending>, request| async move { this.send(request).await };
    as_client(Arc::new(Ending { client, wrap: wrap(leadership.clone()) }), &namespace, send)
}

struct Ending {
    client: Client,
    wrap: Client,
}

impl Ending {
    async fn send(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        let (head, body) = request.into_parts();
        let body = self.wrap.send(Request::new(body)).await?.into_body();
        self.client.send(Request::from_parts(head, body)).await
    }
}

/// Answers with the body that it is sent, as one that ends: kube makes its own type of a foreign body only in answers.
fn wrap(leadership: Leadership) -> Client {
    let answer = move |request: Request<Body>| {
        let leased = Leased { body: request.into_body(), leadership: leadership.clone() };
        async { Ok::<_, Infallible>(Response::new(leased)) }
    };
    Client::new(tower::service_fn(answer), "")
}

/// What is sent, for as long as this process leads. Whoever sends it asks for it immediately before.
struct Leased {
    body: Body,
    leadership: Leadership,
}

impl HttpBody for Leased {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !self.leadership.fence().is_open() {
            return Poll::Ready(Some(Err(io::Error::other("this process leads no more"))));
        }
        Pin::new(&mut self.body).poll_frame(cx).map_err(io::Error::other)
    }

    /// Never before it was asked for its end: so the fence is asked, too.
    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
