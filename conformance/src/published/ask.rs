//! Sends every definition and every sample to one server, and keeps what it answers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::collect::{Project, path_of};
use crate::corpus::ask::{prepare, shown};
use crate::requests::normal::Normal;
use crate::requests::script::{Until, request};
use crate::requests::send::{Answer, Session};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What a server answers, by `module/definition/name` and `module/sample/file`.
pub type Outcomes = BTreeMap<String, Value>;

/// Creates each definition by a dry run, and each sample by a dry run under its definition.
pub async fn ask(client: &kube::Client, projects: &[Project]) -> Result<Outcomes, String> {
    let mut session = Session::new(client.clone());
    prepare(&mut session).await?;
    let mut outcomes = Outcomes::new();
    for project in projects {
        let Project { module, definitions, installed, samples } = project;
        for (name, definition) in definitions {
            let answer = create(&mut session, &format!("{DEFINITIONS}?dryRun=All"), definition).await?;
            outcomes.insert(format!("{module}/definition/{name}"), verdict(&answer));
        }
        for (name, definition) in installed {
            install(&mut session, definition).await.map_err(|error| format!("{name}: {error}"))?;
        }
        for (place, sample) in samples {
            let path = installed.values().find_map(|definition| path_of(definition, sample));
            let line = format!("{}?dryRun=All", path.unwrap_or_default());
            let sent = request(format!("POST {line}"), Some(sample.clone()));
            let answer = session.send(&sent).await.map_err(|error| format!("{place}: {error}"))?;
            let mut normal = Normal::default();
            normal.expect(&sent);
            outcomes.insert(format!("{module}/sample/{place}"), unordered(shown(&normal, &answer)));
        }
        for name in installed.keys() {
            session.send(&request(format!("DELETE {DEFINITIONS}/{name}"), None)).await?;
        }
    }
    Ok(outcomes)
}

async fn create(session: &mut Session, path: &str, object: &Value) -> Result<Answer, String> {
    session.send(&request(format!("POST {path}"), Some(object.clone()))).await
}

/// Creates a definition and, if it is accepted, waits until every version of it is served.
async fn install(session: &mut Session, definition: &Value) -> Result<(), String> {
    if create(session, DEFINITIONS, definition).await?.status != 201 {
        return Ok(());
    }
    let spec = &definition["spec"];
    for version in spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["served"] == true)
    {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, version) = (text(&spec["group"]), text(&version["name"]));
        let mut served = request(format!("GET /apis/{group}/{version}/{}", text(&spec["names"]["plural"])), None);
        served.until = Some(Until { status: Some(200), contains: None, lacks: None });
        session.send(&served).await?;
    }
    Ok(())
}

/// Of a definition that is accepted the code and the warnings, of another the refusal.
fn verdict(answer: &Answer) -> Value {
    let mut shown = shown(&Normal::default(), answer);
    if answer.status < 300 {
        shown["body"] = json!("accepted");
    }
    shown
}

/// Causes in order: the real server finds them in the order of a Go map. The message, which lists them too, is left out.
fn unordered(mut shown: Value) -> Value {
    let Some(causes) = shown.pointer_mut("/body/details/causes").and_then(Value::as_array_mut) else {
        return shown;
    };
    causes.sort_by_key(Value::to_string);
    if let Some(body) = shown["body"].as_object_mut() {
        body.remove("message");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_compared_in_any_order() {
        let shown = |first: &str, second: &str| {
            let causes = json!([{"field": first}, {"field": second}]);
            unordered(json!({"body": {"message": format!("{first}, {second}"), "details": {"causes": causes}}}))
        };
        assert_eq!(shown("a", "b"), shown("b", "a"));
        assert_ne!(shown("a", "b"), shown("a", "c"));
    }
}
