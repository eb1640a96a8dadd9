//! Sends sequences to one server. Steps are a second apart, so that the time of an entry tells the step it was made in;
//! the sequences of a file go side by side, each in a namespace of its own.

use std::time::Duration;

use futures::future::try_join_all;
use serde_json::{Value, json};

use super::clock::now;
use super::outcome::{Moments, Outcome};
use super::{Document, body, items, text, version};
use crate::requests::script::{Request, Until, request};
use crate::requests::send::{Answer, Content, Session};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What came of each step of each sequence of a file.
pub type Outcomes = Vec<Vec<Outcome>>;

/// Sends a file's sequences to `client`.
pub async fn replay(client: &kube::Client, document: &Document) -> Result<Outcomes, String> {
    let mut session = Session::new(client.clone());
    define(&mut session, document).await?;
    let mut runs = Vec::new();
    for (index, sequence) in document.sequences().iter().enumerate() {
        let namespace = format!("apply-{}-{index}", document.name.replace('_', "-"));
        make_namespace(&mut session, &namespace).await?;
        runs.push(Run::new(client, document, sequence, namespace));
    }
    if document.redefines() {
        for run in &mut runs {
            redefine(&mut session, document, &document.value["crd"]["spec"]["versions"]).await?;
            side_by_side(std::slice::from_mut(run)).await?;
        }
    } else {
        side_by_side(&mut runs).await?;
    }
    Ok(runs.into_iter().map(|run| run.outcomes).collect())
}

/// One step of each, then the next.
async fn side_by_side(runs: &mut [Run<'_>]) -> Result<(), String> {
    while runs.iter().any(|run| !run.is_over()) {
        try_join_all(runs.iter_mut().map(Run::step)).await?;
        next_second().await;
    }
    Ok(())
}

/// Waits until no write can have the time of an earlier one.
async fn next_second() {
    let into = Duration::from_nanos(u64::from(now().subsec_nanos()));
    tokio::time::sleep(Duration::from_secs(1) - into + Duration::from_millis(5)).await;
}

/// A sequence under way.
struct Run<'a> {
    session: Session,
    document: &'a Document,
    sequence: &'a Value,
    namespace: String,
    outcomes: Vec<Outcome>,
    moments: Moments,
    /// The object as it was last written.
    live: Value,
}

impl<'a> Run<'a> {
    fn new(client: &kube::Client, document: &'a Document, sequence: &'a Value, namespace: String) -> Run<'a> {
        Run {
            session: Session::new(client.clone()),
            document,
            sequence,
            namespace,
            outcomes: Vec::new(),
            moments: Moments::default(),
            live: Value::Null,
        }
    }

    fn is_over(&self) -> bool {
        self.outcomes.len() == items(&self.sequence["steps"]).len()
    }

    async fn step(&mut self) -> Result<(), String> {
        let Some(step) = items(&self.sequence["steps"]).get(self.outcomes.len()) else {
            return Ok(());
        };
        if let Some(versions) = step.get("crd") {
            redefine(&mut self.session, self.document, versions).await?;
            self.outcomes.push(Outcome::Nothing);
            return Ok(());
        }
        let name = text(self.sequence, "name");
        let request = self.request(step).map_err(|error| format!("{name}: {error}"))?;
        let started = now().as_secs();
        let answer = self.session.send(&request).await.map_err(|error| format!("{name}: {error}"))?;
        self.moments.note(self.outcomes.len() + 1, started, now().as_secs());
        self.take(&answer)
    }

    fn request(&self, step: &Value) -> Result<Request, String> {
        let api_version = version(self.sequence, step);
        let collection = self.document.collection(api_version, text(self.sequence, "kind"), &self.namespace)?;
        let (verb, given) = ["apply", "create", "update", "merge"]
            .into_iter()
            .find_map(|verb| Some((verb, step.get(verb)?)))
            .ok_or("a step writes nothing")?;
        let mut whole = body(self.sequence, step, given);
        self.rename(&mut whole);
        let part = step["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
        let named = format!("{collection}/{}{part}", text(&whole["metadata"], "name"));
        let query = format!("?fieldManager={}", escaped(text(step, "manager")));
        let force = if step["force"] == true { "&force=true" } else { "" };
        let (line, media_type, body) = match verb {
            "apply" => (format!("PATCH {named}{query}{force}"), "application/apply-patch+yaml", whole),
            "create" => (format!("POST {collection}{query}"), "application/json", whole),
            "update" => {
                let known = &self.live["metadata"]["resourceVersion"];
                whole["metadata"]["resourceVersion"] = known.clone();
                (format!("PUT {named}{query}"), "application/json", whole)
            }
            _ => (format!("PATCH {named}{query}"), "application/merge-patch+json", given.clone()),
        };
        let mut request = request(line, Some(inside(&body, &self.namespace)));
        request.headers.insert("Content-Type".into(), media_type.into());
        Ok(request)
    }

    /// A definition is called after what it defines.
    fn rename(&self, object: &mut Value) {
        if object["kind"] == "CustomResourceDefinition" {
            let spec = &object["spec"];
            let name = format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group"));
            object["metadata"]["name"] = name.into();
        }
    }

    fn take(&mut self, answer: &Answer) -> Result<(), String> {
        let Content::Json(document) = &answer.content else {
            return Err(format!("{}: the answer is no document", text(self.sequence, "name")));
        };
        if answer.status >= 300 {
            self.outcomes.push(Outcome::refused(document));
            return Ok(());
        }
        let same = |pointer| document.pointer(pointer) == self.live.pointer(pointer);
        let unchanged = same("/metadata/resourceVersion") && same("/metadata/uid");
        self.outcomes.push(Outcome::written(document, unchanged, &self.moments, &self.namespace));
        self.live = document.clone();
        Ok(())
    }
}

/// A manager's name in a query.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A body that names the namespace it is really in.
fn inside(body: &Value, namespace: &str) -> Value {
    let text = body
        .to_string()
        .replace(r#""namespace":"default""#, &format!(r#""namespace":"{namespace}""#));
    serde_json::from_str(&text).unwrap_or_else(|_| body.clone())
}

async fn make_namespace(session: &mut Session, name: &str) -> Result<(), String> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}, "automountServiceAccountToken": false});
    session.send(&request("POST /api/v1/namespaces".into(), Some(namespace))).await?;
    let line = format!("POST /api/v1/namespaces/{name}/serviceaccounts");
    session.send(&request(line, Some(account))).await.map(drop)
}

/// Creates a file's definition and waits until all its versions are served.
async fn define(session: &mut Session, document: &Document) -> Result<(), String> {
    let Some(definition) = document.value.get("crd") else {
        return Ok(());
    };
    let made = session.send(&request(format!("POST {DEFINITIONS}"), Some(definition.clone()))).await?;
    if made.status != 201 {
        return Err(format!("{}: the definition was refused: {:?}", document.name, made.content));
    }
    let spec = &definition["spec"];
    for version in items(&spec["versions"]) {
        let api_version = format!("{}/{}", text(spec, "group"), text(version, "name"));
        let path = document.collection(&api_version, text(&spec["names"], "kind"), "default")?;
        session.send(&until(format!("GET {path}"), 200, None)).await?;
    }
    Ok(())
}

/// Gives a definition other versions, and waits until they are what applies are held to: a mark among the properties
/// is unknown to the older ones.
async fn redefine(session: &mut Session, document: &Document, versions: &Value) -> Result<(), String> {
    let definition = &document.value["crd"];
    let mark = format!("mark{}", now().as_nanos());
    let mut versions = versions.clone();
    for version in versions.as_array_mut().into_iter().flatten() {
        version["schema"]["openAPIV3Schema"]["properties"][&mark] = json!({"type": "string"});
    }
    let path = format!("{DEFINITIONS}/{}", text(&definition["metadata"], "name"));
    let mut change = request(format!("PATCH {path}"), Some(json!({"spec": {"versions": versions}})));
    change.headers.insert("Content-Type".into(), "application/merge-patch+json".into());
    let changed = session.send(&change).await?;
    if changed.status != 200 {
        return Err(format!("{}: the definition was refused: {:?}", document.name, changed.content));
    }
    let (spec, names) = (&definition["spec"], &definition["spec"]["names"]);
    for version in versions.as_array().into_iter().flatten() {
        let api_version = format!("{}/{}", text(spec, "group"), text(version, "name"));
        let path = document.collection(&api_version, text(names, "kind"), "default")?;
        let object =
            json!({"apiVersion": api_version, "kind": names["kind"], "metadata": {"name": "mark"}, &mark: "a"});
        let line = format!("PATCH {path}/mark?fieldManager=mark&force=true&dryRun=All");
        let mut marked = until(line, 201, Some(object));
        marked.headers.insert("Content-Type".into(), "application/apply-patch+yaml".into());
        session.send(&marked).await?;
    }
    Ok(())
}

fn until(line: String, status: u16, body: Option<Value>) -> Request {
    let mut request = request(line, body);
    request.until = Some(Until { status: Some(status), contains: None, lacks: None });
    request
}
