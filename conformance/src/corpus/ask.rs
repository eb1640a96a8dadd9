//! Asks one server every case of a family: a creation that is not persisted, or a creation and an update.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::family::{Case, Family, change};
use crate::requests::normal::Normal;
use crate::requests::script::{Request, Until};
use crate::requests::send::{Answer, Content, Session};

/// What a server makes of each case, by `family/case`, with everything taken out that has to differ.
pub type Outcomes = BTreeMap<String, Value>;

/// Asks `client` everything whose `family/case` contains `text`.
pub async fn ask(client: &kube::Client, families: &[Family], text: &str) -> Result<Outcomes, String> {
    let mut session = Session::new(client.clone());
    prepare(&mut session).await?;
    let (mut outcomes, normal) = (Outcomes::new(), Normal::default());
    for family in families {
        if let Some(definition) = family.definition.as_ref().filter(|_| is_asked(family, text)) {
            define(&mut session, family, definition).await?;
        }
        for case in &family.cases {
            let name = format!("{}/{}", family.name, case.name);
            if name.contains(text) {
                let answer = ask_case(&mut session, family, case).await.map_err(|error| format!("{name}: {error}"))?;
                outcomes.insert(name, shown(&normal, &answer));
            }
        }
    }
    Ok(outcomes)
}

fn is_asked(family: &Family, text: &str) -> bool {
    family.cases.iter().any(|case| format!("{}/{}", family.name, case.name).contains(text))
}

/// Creates a family's definition and waits until its objects are served.
async fn define(session: &mut Session, family: &Family, definition: &Value) -> Result<(), String> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = session.send(&request(format!("POST {path}"), Some(definition.clone()))).await?;
    if made.status != 201 {
        return Err(format!("{}: the definition was refused: {:?}", family.name, made.content));
    }
    let mut served = request(format!("GET {}", family.path), None);
    served.until = Some(Until { status: Some(200), contains: None, lacks: None });
    session.send(&served).await.map(drop)
}

/// Where the cases live: a namespace, and the account that its pods run as.
async fn prepare(session: &mut Session) -> Result<(), String> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "corpus"}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}, "automountServiceAccountToken": false});
    session.send(&request("POST /api/v1/namespaces".into(), Some(namespace))).await?;
    session
        .send(&request("POST /api/v1/namespaces/corpus/serviceaccounts".into(), Some(account)))
        .await?;
    Ok(())
}

fn request(line: String, body: Option<Value>) -> Request {
    let mut request: Request =
        serde_json::from_value(json!({"name": "", "request": line, "status": 0})).expect("a request's form");
    request.body = body;
    request
}

async fn ask_case(session: &mut Session, family: &Family, case: &Case) -> Result<Answer, String> {
    let (path, object) = (&family.path, case.object(family));
    let Some(changes) = &case.update else {
        return session.send(&request(format!("POST {path}?dryRun=All"), Some(object))).await;
    };
    let created = session.send(&request(format!("POST {path}"), Some(object))).await?;
    let Content::Json(mut live) = created.content else {
        return Err("the object was not created".into());
    };
    if created.status != 201 {
        return Err(format!("the object was not created: {live}"));
    }
    let name = live["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    change(&mut live, changes);
    let part = case.part.as_ref().map(|part| format!("/{part}")).unwrap_or_default();
    session.send(&request(format!("PUT {path}/{name}{part}?dryRun=All"), Some(live))).await
}

/// `{code, warnings, body}` of an answer, without what belongs to the moment.
fn shown(normal: &Normal, answer: &Answer) -> Value {
    let normal = normal.of(answer);
    let mut shown = Map::new();
    shown.insert("code".into(), normal["status"].clone());
    if let Some(warning) = normal["header"].get("warning") {
        shown.insert("warning".into(), warning.clone());
    }
    let mut body = normal["body"].clone();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    shown.insert("body".into(), unmarked(body));
    Value::Object(shown)
}

/// Marks without their values: a recorded uid is nobody's pair. Objects that a message shows are put in order.
fn unmarked(value: Value) -> Value {
    match value {
        Value::String(text) => {
            static MARK: LazyLock<Regex> =
                LazyLock::new(|| Regex::new("<(uid|version|address|generated):[^>]*>").expect("a constant pattern"));
            static GIVEN: LazyLock<Regex> =
                LazyLock::new(|| Regex::new(r#""10\.\d+\.\d+\.\d+": expected"#).expect("a constant pattern"));
            let text = GIVEN.replace_all(&text, r#""<address>": expected"#);
            Value::String(sorted(&MARK.replace_all(&text, "<$1>")))
        }
        Value::Array(items) => items.into_iter().map(unmarked).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, unmarked(value))).collect(),
        other => other,
    }
}

/// Go writes an object's fields as they are declared; here they come by name.
fn sorted(text: &str) -> String {
    const OPENING: &str = "Invalid value: ";
    let Some((before, rest)) = text.split_once(OPENING) else {
        return text.to_owned();
    };
    let mut documents = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    match documents.next() {
        Some(Ok(document @ (Value::Object(_) | Value::Array(_)))) => {
            format!("{before}{OPENING}{document}{}", sorted(&rest[documents.byte_offset()..]))
        }
        _ => format!("{before}{OPENING}{}", sorted(rest)),
    }
}
