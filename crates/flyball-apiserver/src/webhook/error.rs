//! Failures of calls, in the words of Go's HTTP client and of client-go, which users search for.
// client-go/rest/request.go, apimachinery/pkg/api/errors/errors.go: NewGenericServerResponse

use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use rustls::CertificateError;
use serde_json::Value;
use std::error::Error;
use std::fmt;

/// Why a webhook has not answered, or not with an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CallError(pub String);

impl CallError {
    /// A failure before there was a response.
    pub(super) fn transport(url: &str, why: impl fmt::Display) -> CallError {
        CallError(format!("Post {url:?}: {why}"))
    }

    /// A successful response without a body.
    pub(super) fn empty(response: &Response<impl AsRef<[u8]>>) -> CallError {
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let (code, media_type) = (response.status().as_u16(), media_type.unwrap_or_default());
        CallError(format!("0-length response with status code: {code} and content type: {media_type}"))
    }

    /// A response that says that the webhook failed.
    pub(super) fn response(response: &Response<impl AsRef<[u8]>>) -> CallError {
        let body = response.body().as_ref();
        let status = serde_json::from_slice::<Value>(body).unwrap_or_default();
        if status["kind"] == "Status"
            && let Some(message) = status["message"].as_str()
        {
            return CallError(message.to_owned());
        }
        let kind = response.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes().starts_with(b"text/"));
        let said = match kind.unwrap_or(true) {
            true => String::from_utf8_lossy(body).trim().to_owned(),
            false => "unknown".to_owned(),
        };
        CallError(message(response.status(), said))
    }
}

fn message(code: StatusCode, said: String) -> String {
    let message = match code.as_u16() {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => return said,
        406 if said.is_empty() || said == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => return said,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => return format!("an error on the server ({said:?}) has prevented the request from succeeding"),
        code => return format!("the server responded with the status code {code} but did not return more information"),
    };
    message.to_owned()
}

/// Why a connection failed: the innermost cause that says something to a user.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<hyper::Error>()
        && (error.is_incomplete_message() || error.is_closed())
    {
        return "EOF".to_owned();
    }
    let closed = |error: &std::io::Error| error.kind() == std::io::ErrorKind::UnexpectedEof;
    match error.source() {
        Some(source) => cause(source),
        None if error.downcast_ref().is_some_and(closed) => "EOF".to_owned(),
        None => error.to_string(),
    }
}

/// Why a TLS handshake failed.
pub(super) fn handshake(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(error)) => {
            format!("tls: failed to verify certificate: x509: {}", certificate(error))
        }
        Some(error) => format!("tls: {error}"),
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => error.to_string(),
    }
}

fn certificate(error: &CertificateError) -> String {
    let date = |time: &rustls::pki_types::UnixTime| {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
    };
    let validity = "certificate has expired or is not yet valid";
    match error {
        CertificateError::ExpiredContext { time, not_after } => {
            format!("{validity}: current time {} is after {}", date(time), date(not_after))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("{validity}: current time {} is before {}", date(time), date(not_before))
        }
        CertificateError::Expired | CertificateError::NotValidYet => validity.to_owned(),
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            let names = presented.iter().map(|name| name.trim_start_matches("DnsName(\"").trim_end_matches("\")"));
            format!("certificate is valid for {}, not {expected}", names.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
