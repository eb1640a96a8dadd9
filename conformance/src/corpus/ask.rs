//! Asks one server every case of a family: a creation that is not persisted, or a creation and an update.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::family::{Case, Family, Tightened, change};
use crate::requests::normal::Normal;
use crate::requests::script::{Until, request};
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
        let name = |case: &Case| format!("{}/{}", family.name, case.name);
        let asked: Vec<&Case> = family.cases.iter().filter(|case| name(case).contains(text)).collect();
        if let Some(tightened) = family.tightened.as_ref().filter(|_| !asked.is_empty()) {
            let answers = ask_tightened(&mut session, family, tightened, &asked).await;
            let answers = answers.map_err(|error| format!("{}: {error}", family.name))?;
            outcomes.extend(asked.iter().zip(&answers).map(|(case, answer)| (name(case), shown(&normal, answer))));
            continue;
        }
        for case in asked {
            let answer = ask_case(&mut session, family, case).await;
            let answer = answer.map_err(|error| format!("{}: {error}", name(case)))?;
            outcomes.insert(name(case), shown(&normal, &answer));
        }
    }
    Ok(outcomes)
}

/// Creates every object, asks more of them all, and then updates them.
async fn ask_tightened(
    session: &mut Session,
    family: &Family,
    tightened: &Tightened,
    cases: &[&Case],
) -> Result<Vec<Answer>, String> {
    let mut objects = Vec::new();
    for case in cases {
        objects.push(create(session, family, case).await.map_err(|error| format!("{}: {error}", case.name))?);
    }
    tighten(session, family, tightened).await?;
    let mut answers = Vec::new();
    for (case, mut live) in cases.iter().zip(objects) {
        let changes = case.update.as_ref().ok_or_else(|| format!("{}: it updates nothing", case.name))?;
        change(&mut live, changes);
        answers.push(replace(session, family, case, live, "?dryRun=All").await?);
    }
    Ok(answers)
}

/// Changes a family's definition and waits until it refuses what it took before.
async fn tighten(session: &mut Session, family: &Family, tightened: &Tightened) -> Result<(), String> {
    let name = family.definition.as_ref().and_then(|definition| definition["metadata"]["name"].as_str());
    let path = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
        name.ok_or("there is no definition to change")?
    );
    let Content::Json(mut definition) = session.send(&request(format!("GET {path}"), None)).await?.content else {
        return Err("the definition cannot be read".into());
    };
    change(&mut definition, &tightened.set);
    let changed = session.send(&request(format!("PUT {path}"), Some(definition))).await?;
    if changed.status != 200 {
        return Err(format!("the definition was refused: {:?}", changed.content));
    }
    let mut object = family.object.clone();
    change(&mut object, &tightened.refuses);
    let mut refused = request(format!("POST {}?dryRun=All", family.path), Some(object));
    refused.until = Some(Until { status: Some(422), contains: None, lacks: None });
    session.send(&refused).await.map(drop)
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
pub(crate) async fn prepare(session: &mut Session) -> Result<(), String> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "corpus"}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}, "automountServiceAccountToken": false});
    session.send(&request("POST /api/v1/namespaces".into(), Some(namespace))).await?;
    session
        .send(&request("POST /api/v1/namespaces/corpus/serviceaccounts".into(), Some(account)))
        .await?;
    Ok(())
}

async fn ask_case(session: &mut Session, family: &Family, case: &Case) -> Result<Answer, String> {
    let Some(changes) = &case.update else {
        let line = format!("POST {}?dryRun=All", family.path);
        return session.send(&request(line, Some(case.object(family)))).await;
    };
    let mut live = create(session, family, case).await?;
    if let Some(first) = &case.first {
        change(&mut live, first);
        let written = replace(session, family, case, live, "").await?;
        live = match written.content {
            Content::Json(live) if written.status == 200 => live,
            other => return Err(format!("what comes first was refused: {other:?}")),
        };
    }
    change(&mut live, changes);
    replace(session, family, case, live, "?dryRun=All").await
}

/// Really creates a case's object.
async fn create(session: &mut Session, family: &Family, case: &Case) -> Result<Value, String> {
    let created = session.send(&request(format!("POST {}", family.path), Some(case.object(family)))).await?;
    match created.content {
        Content::Json(live) if created.status == 201 => Ok(live),
        other => Err(format!("the object was not created: {other:?}")),
    }
}

/// Puts a changed object in the place of the one that is there.
async fn replace(
    session: &mut Session,
    family: &Family,
    case: &Case,
    object: Value,
    query: &str,
) -> Result<Answer, String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let part = case.part.as_ref().map(|part| format!("/{part}")).unwrap_or_default();
    let line = format!("PUT {}/{name}{part}{query}", family.path);
    session.send(&request(line, Some(object))).await
}

/// `{code, warnings, body}` of an answer, without what belongs to the moment.
pub(crate) fn shown(normal: &Normal, answer: &Answer) -> Value {
    let normal = normal.of(answer);
    let mut shown = Map::new();
    shown.insert("code".into(), normal["status"].clone());
    if let Some(warning) = normal["header"].get("warning") {
        shown.insert("warning".into(), warning.clone());
    }
    shown.insert("body".into(), unmarked(normal["body"].clone()));
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
