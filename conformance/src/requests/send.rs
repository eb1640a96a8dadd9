//! Sends a script's requests to one server and reads the answers whole, watches to their end.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use flyball_schema::protobuf;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use kube::client::Body;
use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::script::{Request, Until};

/// How long one answer, and how long waiting for the right one, may take.
const WITHIN: Duration = Duration::from_secs(60);

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// What a server said.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Every header.
    pub headers: HeaderMap,
    /// The body.
    pub content: Content,
}

/// A body, read as what it is.
#[derive(Clone, Debug)]
pub enum Content {
    /// One document.
    Json(Value),
    /// A watch's events.
    Events(Vec<Value>),
    /// Anything else.
    Text(String),
}

impl Content {
    fn of(media_type: &str, bytes: &[u8]) -> Self {
        match media_type {
            STREAM => Self::protobuf_events(bytes).unwrap_or_else(Self::Text),
            media_type if media_type.starts_with(PROTOBUF) => Self::protobuf(bytes).unwrap_or_else(Self::Text),
            _ => Self::read(bytes),
        }
    }

    /// Reads an object, and sees that it would be written with the same bytes.
    fn protobuf(bytes: &[u8]) -> Result<Self, String> {
        let object = protobuf::decode_object(bytes).map_err(|error| error.to_string())?;
        match protobuf::encode_object(&object) {
            Ok(again) if again == bytes => Ok(Self::Json(object)),
            Ok(again) => Err(format!("{object} was {} and would be {}", bytes.escape_ascii(), again.escape_ascii())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn protobuf_events(bytes: &[u8]) -> Result<Self, String> {
        let events = protobuf::decode_events(bytes).map_err(|error| error.to_string())?;
        let event = |(change, object): (String, &[u8])| match Self::protobuf(object)? {
            Self::Json(object) => Ok(json!({"type": change, "object": object})),
            other => Err(format!("{other:?} is no object")),
        };
        events.into_iter().map(event).collect::<Result<_, _>>().map(Self::Events)
    }

    fn read(bytes: &[u8]) -> Self {
        let documents: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(bytes).into_iter().collect();
        match documents {
            Ok(documents) if !documents.is_empty() && documents.iter().all(is_event) => Self::Events(documents),
            Ok(mut documents) if documents.len() == 1 => Self::Json(documents.swap_remove(0)),
            // how YAML quotes and wraps is the writer's own business
            _ => match serde_saphyr::from_slice(bytes) {
                Ok(document @ Value::Object(_)) => Self::Json(document),
                _ => Self::Text(String::from_utf8_lossy(bytes).into_owned()),
            },
        }
    }
}

fn is_event(document: &Value) -> bool {
    document.get("type").is_some() && document.get("object").is_some()
}

/// A server and what earlier answers left behind.
pub struct Session {
    client: kube::Client,
    kept: BTreeMap<String, String>,
}

impl Session {
    /// A session with nothing kept.
    pub fn new(client: kube::Client) -> Self {
        Self { client, kept: BTreeMap::new() }
    }

    /// A session that begins with some variables.
    pub fn with(client: kube::Client, kept: BTreeMap<String, String>) -> Self {
        Self { client, kept }
    }

    /// Sends `request`, again and again if it says `until`, and keeps what it says to keep.
    pub async fn send(&mut self, request: &Request) -> Result<Answer, String> {
        let answer = match tokio::time::timeout(WITHIN, self.ask_until(request)).await {
            Ok(answer) => answer?,
            Err(_) => return Err(format!("no such answer within {} s", WITHIN.as_secs())),
        };
        if let Content::Json(document) = &answer.content {
            for (name, pointer) in &request.keep {
                let kept = document.pointer(pointer).map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
                self.kept.insert(name.clone(), kept.unwrap_or_else(|| format!("no {pointer}")));
            }
        }
        Ok(answer)
    }

    async fn ask_until(&self, request: &Request) -> Result<Answer, String> {
        loop {
            let answer = self.ask(request).await?;
            if request.until.as_ref().is_none_or(|until| satisfied(until, &answer)) {
                return Ok(answer);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn ask(&self, request: &Request) -> Result<Answer, String> {
        let sent = self.http_request(request)?;
        let head = sent.method() == Method::HEAD;
        let response = self.client.send(sent).await.map_err(|error| crate::report::sentence(&error))?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(|error| crate::report::sentence(&error))?.to_bytes();
        // Over a connection the answer to a HEAD has no body, whatever the service said.
        let content = if head {
            Content::Text(String::new())
        } else {
            let media_type = parts.headers.get("content-type").and_then(|value| value.to_str().ok());
            Content::of(media_type.unwrap_or_default(), &bytes)
        };
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            content,
        })
    }

    fn http_request(&self, request: &Request) -> Result<http::Request<Body>, String> {
        let line = self.filled(&request.request);
        let (method, path) = line.split_once(' ').ok_or("no method and path")?;
        let mut sent = http::Request::builder().method(method).uri(path).header("User-Agent", "conformance/1");
        let body = match (&request.body, &request.text) {
            (Some(body), _) => Some(self.encoded(request, &self.filled(&body.to_string()))?),
            (None, Some(text)) => Some(self.filled(text).into_bytes()),
            (None, None) => None,
        };
        let typed = request.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"));
        if body.is_some() && !typed {
            sent = sent.header("Content-Type", "application/json");
        }
        for (name, value) in &request.headers {
            sent = sent.header(name, self.filled(value));
        }
        sent.body(Body::from(body.unwrap_or_default())).map_err(|error| error.to_string())
    }

    /// A body in JSON, or in protobuf where the request says that it is.
    fn encoded(&self, request: &Request, body: &str) -> Result<Vec<u8>, String> {
        if request.headers.get("Content-Type").is_none_or(|media_type| media_type != PROTOBUF) {
            return Ok(body.to_owned().into_bytes());
        }
        let body = serde_json::from_str(body).map_err(|error| error.to_string())?;
        protobuf::encode_object(&body).map_err(|error| error.to_string())
    }

    fn filled(&self, text: &str) -> String {
        static VARIABLE: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"\$\{([a-z]+)(?::(\d+))?\}").expect("a constant pattern"));
        let fill = |captures: &Captures<'_>| match (&captures[1], captures.get(2)) {
            ("pad", Some(count)) => "x".repeat(count.as_str().parse().unwrap_or(0)),
            (name, _) => self.kept.get(name).cloned().unwrap_or_else(|| captures[0].to_owned()),
        };
        VARIABLE.replace_all(text, fill).into_owned()
    }
}

fn satisfied(until: &Until, answer: &Answer) -> bool {
    let text = match &answer.content {
        Content::Json(document) => document.to_string(),
        Content::Events(events) => events.iter().map(Value::to_string).collect(),
        Content::Text(text) => text.clone(),
    };
    until.status.is_none_or(|status| status == answer.status)
        && until.contains.as_ref().is_none_or(|part| text.contains(part))
        && until.lacks.as_ref().is_none_or(|part| !text.contains(part))
}
