//! Conversion of custom resources by the webhook of their definition: ConversionReview, and the checks of its answer.
// apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go

use crate::registry::object;
use crate::status::{Result, Status};
use crate::webhook::{self, ClientConfig, WebhookClient};
use flyball_schema::metadata;
use http::StatusCode;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";
/// How long one call may take.
// apiserver/pkg/util/webhook/authentication.go
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most objects of one review; more are converted in several.
const MAX_OBJECTS: usize = 1_000;

/// The conversion webhook of a definition.
#[derive(Debug)]
pub(crate) struct ConversionWebhook {
    client: WebhookClient,
    /// The address, or why there is none.
    config: Result<ClientConfig, String>,
    review_versions: Vec<String>,
}

impl ConversionWebhook {
    /// The webhook of a definition; none if its strategy is another.
    pub fn read(client: &WebhookClient, definition: &Value) -> Option<ConversionWebhook> {
        let conversion = &definition["spec"]["conversion"];
        let versions = conversion["webhook"]["conversionReviewVersions"].as_array().into_iter().flatten();
        (conversion["strategy"] == "Webhook").then(|| ConversionWebhook {
            client: client.clone(),
            config: ClientConfig::read(&conversion["webhook"]["clientConfig"]),
            review_versions: versions.filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }

    /// Converts objects to a version. Those that have it already are not sent.
    pub async fn convert(&self, api_version: &str, mut objects: Vec<Value>) -> Result<Vec<Value>> {
        let is_other = |object: &Value| object["apiVersion"] != api_version;
        let others: Vec<usize> = (0..objects.len()).filter(|index| is_other(&objects[*index])).collect();
        for indexes in others.chunks(MAX_OBJECTS) {
            let originals: Vec<Value> = indexes.iter().map(|index| objects[*index].take()).collect();
            let converted = self.review(api_version, &originals).await;
            let converted = converted.map_err(|why| failed(&originals[0], &why))?;
            for (index, object) in indexes.iter().zip(converted) {
                objects[*index] = object;
            }
        }
        Ok(objects)
    }

    async fn review(&self, api_version: &str, originals: &[Value]) -> Result<Vec<Value>, String> {
        let version = self.review_versions.iter().find(|version| ["v1", "v1beta1"].contains(&version.as_str()));
        let version = version.ok_or("no supported conversion review versions")?;
        let config = self.config.as_ref().map_err(|why| format!("failed: {why}"))?;
        let uid = uuid::Uuid::new_v4().to_string();
        let request = json!({"uid": uid, "desiredAPIVersion": api_version, "objects": originals});
        let review = json!({"kind": KIND, "apiVersion": format!("{GROUP}/{version}"), "request": request});
        let body = self.client.post(config, review.to_string().into(), Instant::now() + TIMEOUT).await;
        let body = body.map_err(|error| format!("failed: {error}"))?;
        let answer = webhook::decode(&body, GROUP, version, KIND).map_err(|why| format!("failed: {why}"))?;
        let converted = converted_objects(version, &uid, answer).map_err(|why| format!("failed: {why}"))?;
        if converted.len() != originals.len() {
            return Err(format!("returned {} objects, expected {}", converted.len(), originals.len()));
        }
        let of_list = originals.len() > 1;
        let checked = converted.into_iter().zip(originals).enumerate().map(|(index, (object, original))| {
            check(api_version, original, object).map_err(|problem| problem.describe(of_list, index))
        });
        checked.collect()
    }
}

/// 500: an object could not be converted.
fn failed(object: &Value, why: &str) -> Status {
    let (version, kind) = (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str());
    let kind = kind.unwrap_or_default();
    let why = format!("conversion webhook for {version}, Kind={kind} {why}");
    Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why)
}

// getConvertedObjectsFromResponse
fn converted_objects(version: &str, uid: &str, mut review: Value) -> Result<Vec<Value>, String> {
    let mut response = review["response"].take();
    if version == "v1" {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, given) = (text(&review["kind"]), text(&review["apiVersion"]));
        if kind != KIND || given != "apiextensions.k8s.io/v1" {
            let (group, version) = given.split_once('/').unwrap_or_default();
            return Err(format!(
                "expected webhook response of {GROUP}/v1, Kind={KIND}, got {group}/{version}, Kind={kind}"
            ));
        }
        let given = text(&response["uid"]);
        if response.is_object() && given != uid {
            return Err(format!("expected response.uid={uid:?}, got {given:?}"));
        }
    }
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    let status = response["result"]["status"].as_str().unwrap_or_default();
    if status != "Success" {
        return Err(match response["result"]["message"].as_str() {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => format!("response.result.status was '{status}', not 'Success'"),
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// What is wrong with a converted object.
enum Problem {
    Object(String),
    Type(String),
    Metadata(String),
}

impl Problem {
    fn describe(self, of_list: bool, index: usize) -> String {
        match (self, of_list) {
            (Problem::Object(why), true) => format!("returned invalid converted object at index {index}: {why}"),
            (Problem::Object(why), false) => format!("returned invalid object: {why}"),
            (Problem::Type(why), true) => format!("returned invalid converted object at index {index}: {why}"),
            (Problem::Type(why), false) => format!("returned invalid object at index 0: {why}"),
            (Problem::Metadata(why), true) => format!("returned invalid metadata in object at index {index}: {why}"),
            (Problem::Metadata(why), false) => format!("returned invalid metadata: {why}"),
        }
    }
}

/// Checks a converted object, and restores its metadata except for labels and annotations.
// validateConvertedObject, restoreObjectMeta
fn check(api_version: &str, original: &Value, mut converted: Value) -> Result<Value, Problem> {
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let given = text(&converted, "apiVersion");
    if given != api_version {
        let why = format!("invalid groupVersion (expected {api_version}, received {given})");
        return Err(Problem::Type(why));
    }
    let (expected, given) = (text(original, "kind"), text(&converted, "kind"));
    if expected != given {
        return Err(Problem::Type(format!("invalid kind (expected {expected}, received {given})")));
    }
    for (field, label) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (expected, given) = (object::text(original, field), object::text(&converted, field));
        if expected != given {
            return Err(Problem::Object(format!("must have the same {label}: {expected} != {given}")));
        }
    }
    let metadata = restored(original, &converted).map_err(Problem::Metadata)?;
    converted["metadata"] = metadata.into();
    Ok(converted)
}

fn restored(original: &Value, converted: &Value) -> Result<Map<String, Value>, String> {
    let answered = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return Err(format!("invalid metadata of type {} in converted object", go_type(other))),
    };
    let mut metadata = object::metadata(original).clone();
    for field in ["labels", "annotations"] {
        let given = answered.get(field).unwrap_or(&Value::Null);
        let texts = match given {
            Value::Null => {
                metadata.remove(field);
                continue;
            }
            Value::Object(texts) => texts,
            other => return Err(format!("invalid metadata.{field} of type {} in converted object", go_type(other))),
        };
        if let Some((key, value)) = texts.iter().find(|(_, value)| !value.is_string()) {
            let found = go_type(value);
            return Err(format!("metadata.{field}[{key}] must be a string, but is {found} in converted object"));
        }
        if metadata.get(field).and_then(Value::as_object) != Some(texts) {
            let violations = match field {
                "labels" => metadata::validate_labels(given, "metadata.labels"),
                _ => metadata::validate_annotations(given, "metadata.annotation"),
            };
            if !violations.is_empty() {
                let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
                return Err(match &texts[..] {
                    [only] => only.clone(),
                    several => format!("[{}]", several.join(", ")),
                });
            }
        }
        metadata.insert(field.to_owned(), texts.clone().into());
    }
    Ok(metadata)
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
