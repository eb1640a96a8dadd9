//! Compresses large responses for clients that can read them.

use crate::Body;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue, VARY};
use http::{HeaderMap, Response};
use std::io::Write;

/// Bodies up to this size are sent as they are.
pub const THRESHOLD: usize = 128 * 1024;

/// Bodies larger than this are compressed on the blocking pool, so that they delay no other request.
const MAX_INLINE_BYTES: usize = 512 * 1024;

/// Compresses a response whose body is all there and larger than [`THRESHOLD`], if the request allows it.
pub async fn compress(request: &HeaderMap, response: Response<Body>) -> Response<Body> {
    if !accepted(request) || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let bytes = match body.into_whole() {
        Ok(bytes) if bytes.len() > THRESHOLD => bytes,
        Ok(bytes) => return Response::from_parts(head, Body::whole(bytes)),
        Err(body) => return Response::from_parts(head, body),
    };
    let compressed = match bytes.len() > MAX_INLINE_BYTES {
        false => deflate(&bytes),
        true => {
            let task = tokio::task::spawn_blocking({
                let bytes = bytes.clone();
                move || deflate(&bytes)
            });
            match task.await {
                Ok(compressed) => compressed,
                // The runtime is shutting down: the body is sent as it is.
                Err(_) => return Response::from_parts(head, Body::whole(bytes)),
            }
        }
    };
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Body::whole(compressed))
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    // The fastest level is within a third of the best one's ratio, at a fraction of its work.
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).expect("memory takes every byte");
    encoder.finish().expect("memory takes every byte")
}

fn accepted(request: &HeaderMap) -> bool {
    let header = request.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    header.split(',').any(|encoding| encoding.trim() == "gzip")
}
