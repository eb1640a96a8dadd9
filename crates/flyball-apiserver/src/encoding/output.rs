//! Encodes responses as the client asks for them: JSON, YAML or protobuf; as objects, Tables or metadata only.

use crate::Body;
use crate::clock::Clock;
use crate::encoding::negotiate::{Encoding, Endpoint, Format, OBJECTS, Shape};
use crate::encoding::{wire, yaml};
use crate::registry::Kind;
use crate::request::info::{Query, Verb};
use crate::response::{ApiResponse, Change, List, WatchEvent};
use crate::status::{Result, Status};
use crate::watch_cache::frame;
use bytes::Bytes;
use flyball_schema::print::{self, Printer};
use futures::StreamExt;
use futures::stream::BoxStream;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The encoding and the shape that a request's `Accept` asks for.
#[derive(Clone, Copy, Debug)]
pub struct ResponseEncoder {
    format: Format,
    of_status: Format,
}

impl ResponseEncoder {
    /// Negotiates the encoding, before the request is handled; 406 if there is none.
    pub fn choose(headers: &HeaderMap, query: &Query, kind: &Kind, verb: Verb) -> Result<ResponseEncoder> {
        let endpoint = match kind.custom {
            Some(_) => Endpoint::Custom,
            None => Endpoint::BuiltIn,
        };
        let format = match verb {
            Verb::Watch => Format::stream(headers, query, endpoint)?,
            Verb::List => Format::list(headers, query, endpoint)?,
            _ => Format::resource(headers, query, endpoint)?,
        };
        Ok(ResponseEncoder { format, of_status: Format::of_status(headers, query) })
    }

    /// Encodes the result of an endpoint.
    pub fn respond(&self, answer: Result<ApiResponse>, clock: &Clock) -> Response<Body> {
        match answer.and_then(|answer| self.answer(answer, clock)) {
            Ok(response) => response,
            Err(status) => encoded(&status, self.of_status),
        }
    }

    fn answer(&self, answer: ApiResponse, clock: &Clock) -> Result<Response<Body>> {
        match answer {
            ApiResponse::Object { code, kind, object } => self.object(code, &kind, object, clock),
            ApiResponse::List(list) => self.list(list, clock),
            ApiResponse::Watch { kind, events } => Ok(self.watch(kind, events, *clock)),
            ApiResponse::Other { code, object } => self.other(code, object),
            ApiResponse::Done(status) => Ok(encoded(&status, self.of_status)),
        }
    }

    fn object(&self, code: StatusCode, kind: &Kind, object: Bytes, clock: &Clock) -> Result<Response<Body>> {
        if self.format == Format::JSON {
            return Ok(whole(code, self.format, object));
        }
        let object = parsed(&object)?;
        let shaped = match self.format.shape {
            Shape::Object => object,
            Shape::Partial(meta) => print::partial(object, meta),
            Shape::PartialList(_) => return Err(not_a_list(kind)),
            Shape::Table(meta, include) => {
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                kind.printer().table(vec![object], metadata, (meta, include), clock.now())
            }
        };
        Ok(whole(code, self.format, write(self.format, &shaped)?))
    }

    fn list(&self, list: List, clock: &Clock) -> Result<Response<Body>> {
        if self.format == Format::JSON {
            return Ok(whole(StatusCode::OK, self.format, list_bytes(&list)));
        }
        if self.format.encoding == Encoding::Protobuf && self.format.shape == Shape::Object {
            return Ok(whole(StatusCode::OK, self.format, wire::list(&list, &list_metadata(&list))?));
        }
        let metadata = list_metadata(&list);
        let items = list.items.iter().map(|item| parsed(item)).collect::<Result<Vec<Value>>>()?;
        let shaped = match self.format.shape {
            Shape::Object => parsed(&list_bytes(&list))?,
            Shape::Partial(_) => return Err(a_list(&list.kind)),
            Shape::PartialList(meta) => {
                let items: Vec<Value> = items.into_iter().map(|item| print::partial(item, meta)).collect();
                let api_version = meta.api_version();
                json!({"kind": "PartialObjectMetadataList", "apiVersion": api_version, "metadata": metadata, "items": items})
            }
            Shape::Table(meta, include) => list.kind.printer().table(items, metadata, (meta, include), clock.now()),
        };
        Ok(whole(StatusCode::OK, self.format, write(self.format, &shaped)?))
    }

    fn other(&self, code: StatusCode, object: Value) -> Result<Response<Body>> {
        match self.format.shape {
            Shape::Object => Ok(whole(code, self.format, write(self.format, &object)?)),
            Shape::Partial(meta) => Ok(whole(code, self.format, write(self.format, &print::partial(object, meta))?)),
            _ => Err(Status::not_acceptable(&OBJECTS)),
        }
    }

    fn watch(&self, kind: Arc<Kind>, events: BoxStream<'static, WatchEvent>, clock: Clock) -> Response<Body> {
        let Format { shape, encoding, .. } = self.format;
        let printer = matches!(shape, Shape::Table(..)).then(|| kind.printer());
        let mut named = false;
        let chunks = events.map(move |event| {
            if let (Shape::Object, Encoding::Json, Some(frame)) = (shape, encoding, event.frame) {
                return frame;
            }
            let object = match event.change {
                Change::Error => event.object,
                _ => event_object(event.object, shape, printer.as_ref(), &mut named, &clock),
            };
            match encoding {
                Encoding::Protobuf => wire::frame(event.change, &object),
                _ => frame(event.change, &object),
            }
        });
        response(StatusCode::OK, self.format.stream_type(), Body::stream(chunks))
    }
}

/// The response to a request that fails before its encoding is negotiated.
pub fn refuse(headers: &HeaderMap, query: &Query, status: &Status) -> Response<Body> {
    encoded(status, Format::of_status(headers, query))
}

/// A response of one value.
pub(crate) fn value(format: Format, value: &impl Serialize) -> Response<Body> {
    match write(format, value) {
        Ok(bytes) => whole(StatusCode::OK, format, bytes),
        Err(status) => encoded(&status, Format::JSON),
    }
}

/// A response in plain text.
pub(crate) fn text(code: StatusCode, text: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Body::whole(text.into()));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

fn encoded(status: &Status, format: Format) -> Response<Body> {
    let (format, bytes) = match write(format, status) {
        Ok(bytes) => (format, bytes),
        Err(_) => (Format::JSON, status.to_value().to_string().into_bytes()),
    };
    let mut response = whole(status.http_code(), format, bytes);
    if let Some(seconds) = status.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn whole(code: StatusCode, format: Format, bytes: impl Into<Bytes>) -> Response<Body> {
    response(code, format.content_type(), Body::whole(bytes))
}

fn response(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn write(format: Format, value: &impl Serialize) -> Result<Vec<u8>> {
    let invariant = "answers have string keys only";
    Ok(match (format.encoding, format.pretty) {
        (Encoding::Json, false) => serde_json::to_vec(value).expect(invariant),
        (Encoding::Json, true) => serde_json::to_vec_pretty(value).expect(invariant),
        (Encoding::Yaml, _) => yaml::write(&serde_json::to_value(value).expect(invariant)).into_bytes(),
        (Encoding::Protobuf, _) => wire::object(&serde_json::to_value(value).expect(invariant))?,
    })
}

fn parsed(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|error| Status::internal(format!("read a stored object: {error}")))
}

/// The list as JSON, made of the bytes of its items.
fn list_bytes(list: &List) -> Vec<u8> {
    let resource = &list.kind.resource;
    let api_version = resource.api_version();
    let mut metadata = list_metadata(list);
    // A list of custom resources always has the field.
    if list.kind.custom.is_some() && list.continue_.is_none() {
        metadata["continue"] = json!("");
    }
    let head = format!(
        r#"{{"kind":"{}","apiVersion":"{api_version}","metadata":{metadata},"items":["#,
        resource.list_kind
    );
    // The items of a typed list have neither `apiVersion` nor `kind`.
    let typed = format!(r#"{{"apiVersion":"{api_version}","kind":"{}","#, resource.kind);
    let typed = if list.kind.custom.is_none() {
        typed.as_bytes()
    } else {
        b""
    };
    let length: usize = list.items.iter().map(|item| item.len() + 1).sum();
    let mut bytes = Vec::with_capacity(head.len() + length + 2);
    bytes.extend_from_slice(head.as_bytes());
    for (index, item) in list.items.iter().enumerate() {
        if index > 0 {
            bytes.push(b',');
        }
        match item.strip_prefix(typed) {
            Some(rest) if !typed.is_empty() => {
                bytes.push(b'{');
                bytes.extend_from_slice(rest);
            }
            _ => bytes.extend_from_slice(item),
        }
    }
    bytes.extend_from_slice(b"]}");
    bytes
}

fn list_metadata(list: &List) -> Value {
    let mut metadata = json!({"resourceVersion": list.resource_version.to_string()});
    if let Some(token) = &list.continue_ {
        metadata["continue"] = json!(token);
    }
    if let Some(count) = list.remaining_item_count {
        metadata["remainingItemCount"] = json!(count);
    }
    metadata
}

fn event_object(object: Bytes, shape: Shape, printer: Option<&Printer>, named: &mut bool, clock: &Clock) -> Bytes {
    if shape == Shape::Object {
        return object;
    }
    let Ok(object) = serde_json::from_slice::<Value>(&object) else {
        return object;
    };
    let shaped = match (shape, printer) {
        (Shape::Partial(meta) | Shape::PartialList(meta), _) => print::partial(object, meta),
        (Shape::Table(meta, include), Some(printer)) => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            let columns = !std::mem::replace(named, true);
            match columns {
                true => printer.table(vec![object], metadata, (meta, include), clock.now()),
                false => printer.rows(vec![object], metadata, (meta, include), clock.now()),
            }
        }
        _ => object,
    };
    shaped.to_string().into()
}

fn not_a_list(kind: &Kind) -> Status {
    Status::wrong_shape("PartialObjectMetadataList", format!("not a list ({})", kind.resource.kind))
}

fn a_list(kind: &Kind) -> Status {
    Status::wrong_shape("PartialObjectMetadata", format!("a list ({})", kind.resource.list_kind))
}
