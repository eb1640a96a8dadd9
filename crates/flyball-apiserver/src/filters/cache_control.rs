//! Keeps caches between server and client from storing responses, unless an endpoint says otherwise.
// apiserver/pkg/endpoints/filters/cachecontrol.go

use crate::filters::{Next, Request, Response};
use http::HeaderValue;
use http::header::CACHE_CONTROL;

pub(super) async fn filter(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    response
}
