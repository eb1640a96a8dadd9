//! The same answer of a real server in JSON and in protobuf, as `flyball-schema` holds its codec to them. The objects are
//! made of what is written down of them: what a server gives by itself is taken away, and it gives it again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use http_body_util::BodyExt;
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};

/// One answer, in both encodings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What it shows.
    pub name: String,
    /// What was asked for.
    pub path: String,
    /// The answer in JSON.
    pub json: Value,
    /// The answer in protobuf, in base64.
    pub protobuf: String,
}

/// Where the answers are.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/flyball-schema/tests/data/protobuf/answers.yaml")
}

/// Reads what is written down.
pub fn read() -> Result<Vec<Answer>, String> {
    let path = path();
    let text = fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
    serde_saphyr::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes answers down.
pub fn write(answers: &[Answer]) -> Result<(), String> {
    let mut text = "# What a kube-apiserver v1.36.4 answered in JSON and in protobuf (base64) to the same GET, or POST of a review.\n"
        .to_owned();
    for Answer { name, path, json, protobuf } in answers {
        let (name, path_text) = (Value::from(name.as_str()), Value::from(path.as_str()));
        writeln!(text, "- name: {name}\n  path: {path_text}\n  json: {json}\n  protobuf: {protobuf}")
            .expect("a string can be written to");
    }
    fs::write(path(), text).map_err(|error| format!("write {}: {error}", path().display()))
}

/// Makes the objects on a server and asks for every answer anew.
pub async fn ask(client: &kube::Client, known: &[Answer]) -> Result<Vec<Answer>, String> {
    prepare(client).await?;
    for answer in known.iter().filter(|answer| is_object(answer)) {
        make(client, answer).await.map_err(|error| format!("{}: {error}", answer.name))?;
    }
    let mut answers = Vec::new();
    for answer in known {
        let asked = fetch(client, answer).await.map_err(|error| format!("{}: {error}", answer.name))?;
        answers.push(asked);
    }
    Ok(answers)
}

/// Whether an answer is an object that can be made.
fn is_object(answer: &Answer) -> bool {
    let name = answer.json["metadata"]["name"].as_str();
    let apart = matches!(answer.json["kind"].as_str(), Some("PartialObjectMetadata" | "Scale"));
    !apart && name.is_some_and(|name| answer.path.ends_with(&format!("/{name}")))
}

async fn prepare(client: &kube::Client) -> Result<(), String> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "protobuf"}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}, "automountServiceAccountToken": false});
    send(client, "POST", "/api/v1/namespaces", JSON, Some(&namespace)).await?;
    send(client, "POST", "/api/v1/namespaces/protobuf/serviceaccounts", JSON, Some(&account)).await?;
    Ok(())
}

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// So often an answer is asked for that is another one each time.
const MOST_MOMENTS: usize = 20;

async fn make(client: &kube::Client, answer: &Answer) -> Result<(), String> {
    let (collection, _) = answer.path.rsplit_once('/').ok_or("no collection")?;
    let mut object = answer.json.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "managedFields",
        ] {
            metadata.remove(field);
        }
    }
    if object["kind"] == "Job" {
        generated(&mut object);
    }
    let (code, bytes) = send(client, "POST", &format!("{collection}?fieldManager=conf"), JSON, Some(&object)).await?;
    if code != 201 {
        return Err(format!("{code} {}", String::from_utf8_lossy(&bytes)));
    }
    let wrote_status = answer.json["metadata"]["managedFields"].as_array().into_iter().flatten();
    if wrote_status
        .into_iter()
        .any(|entry| entry["subresource"] == "status" && entry["manager"] == "conf")
    {
        let path = format!("{}/status?fieldManager=conf", answer.path);
        let (code, bytes) = send(client, "PUT", &path, JSON, Some(&object)).await?;
        if code != 200 {
            return Err(format!("{code} {}", String::from_utf8_lossy(&bytes)));
        }
    }
    Ok(())
}

/// Takes away what is made of a Job's uid.
fn generated(job: &mut Value) {
    let is_generated = |name: &String| ["controller-uid", "job-name"].iter().any(|end| name.ends_with(end));
    for pointer in ["/metadata/labels", "/spec/template/metadata/labels"] {
        if let Some(labels) = job.pointer_mut(pointer).and_then(Value::as_object_mut) {
            labels.retain(|name, _| !is_generated(name));
        }
    }
    if let Some(spec) = job["spec"].as_object_mut() {
        spec.remove("selector");
    }
}

/// Asks in both encodings at one moment: a review tells the second of its answer, and a list the revision of the store, so
/// where the JSON before the protobuf is not the JSON after it both are asked for again.
async fn fetch(client: &kube::Client, answer: &Answer) -> Result<Answer, String> {
    let kind = answer.json["kind"].as_str().unwrap_or_default();
    let shape = match kind {
        "PartialObjectMetadata" | "PartialObjectMetadataList" => format!(";as={kind};g=meta.k8s.io;v=v1"),
        "APIGroupDiscoveryList" => format!(";as={kind};g=apidiscovery.k8s.io;v=v2"),
        _ => String::new(),
    };
    let mut review = answer.json.clone();
    if let Some(fields) = review.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "metadata" | "status"));
    }
    let (verb, body) = match kind.ends_with("Review") {
        true => ("POST", Some(&review)),
        false => ("GET", None),
    };
    let ask = async |encoding| {
        let answer = send(client, verb, &answer.path, &format!("{encoding}{shape}"), body).await;
        answer.map(|(_, bytes)| bytes)
    };
    let mut text = ask(JSON).await?;
    for _ in 0..MOST_MOMENTS {
        let bytes = ask(PROTOBUF).await?;
        let after = ask(JSON).await?;
        if text == after {
            let json = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
            return Ok(Answer {
                json,
                protobuf: BASE64_STANDARD.encode(bytes),
                ..answer.clone()
            });
        }
        text = after;
    }
    Err("every answer is another one".to_owned())
}

async fn send(
    client: &kube::Client,
    verb: &str,
    path: &str,
    accept: &str,
    body: Option<&Value>,
) -> Result<(u16, Vec<u8>), String> {
    let request = http::Request::builder().method(verb).uri(path).header("Accept", accept);
    let request = request.header("Content-Type", JSON).header("User-Agent", "conf/1");
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = request.body(Body::from(body)).map_err(|error| error.to_string())?;
    let response = client.send(request).await.map_err(|error| crate::report::sentence(&error))?;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.map_err(|error| crate::report::sentence(&error))?;
    Ok((code, bytes.to_bytes().to_vec()))
}
