//! Sends a case's definition and objects to one server, and keeps what it answers.

use std::sync::LazyLock;

use futures::{StreamExt, TryStreamExt, stream};
use regex::Regex;
use serde_json::{Map, Value, json};

use super::rules::{Case, Document, PLURAL, Step, replaced};
use crate::corpus::ask::{Outcomes, prepare, shown};
use crate::requests::normal::Normal;
use crate::requests::script::{Request, Until, request};
use crate::requests::send::{Answer, Content, Session};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How many cases are asked at a time: a definition is served some time after it was accepted.
const CONCURRENT_CASES: usize = 16;

/// Asks `client` every case whose `file/case` contains `text`.
pub async fn decide(client: &kube::Client, documents: &[Document], text: &str) -> Result<Outcomes, String> {
    prepare(&mut Session::new(client.clone())).await?;
    let cases = documents
        .iter()
        .flat_map(|document| document.cases.iter().map(move |case| (document, case)));
    let named = cases.map(|(document, case)| (format!("{}/{}", document.name, case.name), document, case));
    let asked = named.filter(|(name, ..)| name.contains(text)).map(async |(name, document, case)| {
        let mut asked = Asked { session: Session::new(client.clone()), document, case };
        let outcome = asked.outcome().await.map_err(|error| format!("{name}: {error}"))?;
        Ok((name, outcome))
    });
    stream::iter(asked).buffer_unordered(CONCURRENT_CASES).try_collect().await
}

struct Asked<'a> {
    session: Session,
    document: &'a Document,
    case: &'a Case,
}

impl Asked<'_> {
    /// `{definition, answers}`: the answer to the definition, and the answers to all objects if it was accepted.
    async fn outcome(&mut self) -> Result<Value, String> {
        let definition = self.case.definition(self.document)?;
        let (defined, old) = match &self.case.ratchets {
            None => (self.define(definition).await?, None),
            Some(refused) => self.tighten(definition, refused).await?,
        };
        let mut outcome = json!({"definition": verdict(&defined)});
        if self.has_objects() && defined.status < 300 {
            let answers = self.answers(old).await?;
            if !answers.is_empty() {
                outcome["answers"] = answers.iter().map(verdict).collect();
            }
            let name = format!("{PLURAL}.{}", self.case.group(self.document));
            self.send(format!("DELETE {DEFINITIONS}/{name}"), None).await?;
        }
        Ok(outcome)
    }

    async fn send(&mut self, line: String, body: Option<Value>) -> Result<Answer, String> {
        self.session.send(&request(line, body)).await
    }

    fn has_objects(&self) -> bool {
        let Case { create, update, steps, .. } = self.case;
        !(create.is_empty() && update.is_empty() && steps.is_empty())
    }

    /// Creates the definition; where objects follow, waits until they are served.
    async fn define(&mut self, definition: Value) -> Result<Answer, String> {
        let query = if self.has_objects() { "" } else { "?dryRun=All" };
        let defined = self.send(format!("POST {DEFINITIONS}{query}"), Some(definition)).await?;
        if self.has_objects() && defined.status == 201 {
            let mut served = request(format!("GET {}", self.case.path(self.document)), None);
            served.until = until(200);
            self.session.send(&served).await?;
        }
        Ok(defined)
    }

    /// Creates the old objects, adds the rules to the definition, and waits until they are effective.
    async fn tighten(&mut self, definition: Value, refused: &Value) -> Result<(Answer, Option<Vec<Value>>), String> {
        let lenient = self.case.lenient(self.document)?;
        let defined = self.define(lenient).await?;
        if defined.status != 201 {
            return Err(format!("the definition without rules was refused: {:?}", defined.content));
        }
        let mut old = Vec::new();
        for (index, [spec, _]) in self.case.update.iter().enumerate() {
            let (created, live) = self.create(index, spec).await?;
            old.push(live.ok_or_else(|| format!("object {index} was refused: {:?}", created.content))?);
        }
        let path = format!("{DEFINITIONS}/{PLURAL}.{}", self.case.group(self.document));
        let patch = json!({"spec": {"versions": definition["spec"]["versions"]}});
        let mut tightened = request(format!("PATCH {path}"), Some(patch));
        tightened.headers.insert("Content-Type".into(), "application/merge-patch+json".into());
        let tightened = self.session.send(&tightened).await?;
        if tightened.status == 200 {
            let mut object = self.case.object(self.document, "probe");
            object["spec"] = refused.clone();
            let line = format!("POST {}?dryRun=All", self.case.path(self.document));
            let mut probe = request(line, Some(object));
            probe.until = until(422);
            self.session.send(&probe).await?;
        }
        Ok((tightened, Some(old)))
    }

    async fn create(&mut self, index: usize, spec: &Value) -> Result<(Answer, Option<Value>), String> {
        let mut object = self.case.object(self.document, &format!("u{index}"));
        object["spec"] = spec.clone();
        let answer = self.send(format!("POST {}", self.case.path(self.document)), Some(object)).await?;
        let live = live(&answer);
        Ok((answer, live))
    }

    async fn answers(&mut self, old: Option<Vec<Value>>) -> Result<Vec<Answer>, String> {
        let path = self.case.path(self.document);
        let mut answers = Vec::new();
        for spec in &self.case.create {
            let mut object = self.case.object(self.document, "a");
            object["spec"] = spec.clone();
            answers.push(self.send(format!("POST {path}?dryRun=All"), Some(object)).await?);
        }
        let mut old = old.map(Vec::into_iter);
        for (index, [before, after]) in self.case.update.iter().enumerate() {
            let object = match &mut old {
                Some(old) => old.next(),
                None => {
                    let (created, live) = self.create(index, before).await?;
                    if live.is_none() {
                        answers.push(created);
                        continue;
                    }
                    live
                }
            };
            let mut object = object.ok_or("an object is missing")?;
            object["spec"] = after.clone();
            answers.push(self.send(format!("PUT {path}/u{index}?dryRun=All"), Some(object)).await?);
        }
        answers.extend(self.steps(&path).await?);
        Ok(answers)
    }

    /// Sends the steps; each begins with the object as the last accepted one left it.
    async fn steps(&mut self, path: &str) -> Result<Vec<Answer>, String> {
        let mut answers = Vec::new();
        let mut object = self.case.object(self.document, "s");
        for step in &self.case.steps {
            let answer = self.session.send(&self.step(path, &object, step)).await?;
            if let Some(live) = live(&answer) {
                object = live;
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    fn step(&self, path: &str, object: &Value, step: &Step) -> Request {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let applied = |members| replaced(self.case.object(self.document, name), members);
        let (line, body, content_type) = match step {
            Step::Create(members) => (format!("POST {path}"), replaced(object.clone(), members), "json"),
            Step::Update(members) => (format!("PUT {path}/{name}"), replaced(object.clone(), members), "json"),
            Step::Status(members) => (format!("PUT {path}/{name}/status"), replaced(object.clone(), members), "json"),
            Step::Apply(members) => (
                format!("PATCH {path}/{name}?fieldManager=conformance"),
                applied(members),
                "apply-patch+yaml",
            ),
            Step::Merge(members) => {
                (format!("PATCH {path}/{name}"), Value::Object(members.clone()), "merge-patch+json")
            }
        };
        let mut request = request(line, Some(body));
        request.headers.insert("Content-Type".into(), format!("application/{content_type}"));
        request
    }
}

fn until(status: u16) -> Option<Until> {
    Some(Until { status: Some(status), contains: None, lacks: None })
}

fn live(answer: &Answer) -> Option<Value> {
    match &answer.content {
        Content::Json(object) if answer.status < 300 => Some(object.clone()),
        _ => None,
    }
}

/// What an answer says of rules: a refusal whole, of an accepted object its `spec` and `status`, of a definition the code.
fn verdict(answer: &Answer) -> Value {
    let mut shown = shown(&Normal::default(), answer);
    if answer.status >= 300 {
        return unnumbered(shown);
    }
    let body = shown.as_object_mut().and_then(|shown| shown.remove("body")).unwrap_or_default();
    if body["kind"] != "CustomResourceDefinition" {
        let kept: Map<String, Value> = ["spec", "status"]
            .into_iter()
            .filter_map(|key| body.get(key).map(|value| (key.to_owned(), value.clone())))
            .collect();
        shown["object"] = kept.into();
    }
    shown
}

/// The real server names the type of `self` after the nanosecond in which it compiled the rule.
fn unnumbered(value: Value) -> Value {
    static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"selfType\d+").expect("a constant pattern"));
    match value {
        Value::String(text) => NAME.replace_all(&text, "selfType").into(),
        Value::Array(items) => items.into_iter().map(unnumbered).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, unnumbered(value))).collect(),
        other => other,
    }
}
