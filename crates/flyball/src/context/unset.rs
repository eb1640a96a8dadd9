//! Keeps an apply from claiming what its author never said.

use crate::cache::kind::Kind;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Whether absent and zero are the same to this kind: built-in kinds only.
pub(super) fn may_be_dropped(kind: &Kind) -> bool {
    let group = &kind.resource.group;
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// `value`, which `C` wrote, without the empty fields that `C` cannot leave out.
///
/// Rust's types of the built-in kinds have no `Option` around required fields, so a Deployment that only sets `replicas` is
/// written as `selector: {}` and `template: {}` too; applied by force, that would take them from their manager. Such
/// fields are distinguished from those that an author set to an empty value (`emptyDir: {}`, `replicas: 0`, `data: {"key": ""}`) by the
/// type itself: a field is dropped if the type, read back without it, writes the same empty value again. To Kubernetes' own
/// types, which are Go structs, a required field that is absent and one that is zero are the same. To the schema of a custom
/// resource they are not, so its fields are always sent.
pub(super) fn drop_from<C: Serialize + DeserializeOwned>(value: Value) -> Value {
    let mut value = value;
    let mut meant: Vec<String> = Vec::new();
    loop {
        let mut empty = Vec::new();
        collect_empty(&value, "", &mut empty);
        empty.retain(|path| !meant.contains(path));
        if empty.is_empty() {
            return value;
        }
        let mut trial = value.clone();
        empty.iter().for_each(|path| drop_field(&mut trial, path));
        let Some(written) = round_trip::<C>(&trial) else {
            return value;
        };
        let written_again = |path: &String| written.pointer(path) == value.pointer(path);
        let (unset, set): (Vec<_>, Vec<_>) = empty.into_iter().partition(written_again);
        unset.iter().for_each(|path| drop_field(&mut value, path));
        meant.extend(set);
    }
}

fn round_trip<C: Serialize + DeserializeOwned>(value: &Value) -> Option<Value> {
    let typed: C = serde_json::from_value(value.clone()).ok()?;
    serde_json::to_value(typed).ok()
}

/// The JSON pointers of all fields with an empty value. Items of lists are no fields.
fn collect_empty(value: &Value, path: &str, empty: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                if is_empty(value) {
                    empty.push(path)
                } else {
                    collect_empty(value, &path, empty)
                }
            }
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| collect_empty(item, &format!("{path}/{index}"), empty));
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}

fn drop_field(value: &mut Value, path: &str) {
    let (parent, name) = path.rsplit_once('/').expect("a pointer begins with a slash");
    let name = name.replace("~1", "/").replace("~0", "~");
    if let Some(fields) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.remove(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::{
        apps::v1::{Deployment, DeploymentSpec, StatefulSet},
        core::v1::{ConfigMap, Container, EmptyDirVolumeSource, EnvVar, PodSpec, PodTemplateSpec, Volume},
    };
    use serde_json::json;

    fn sent<C: Serialize + DeserializeOwned>(object: C) -> Value {
        drop_from::<C>(serde_json::to_value(object).unwrap())
    }

    #[test]
    fn required_fields_that_are_unset_are_not_sent() {
        let spec = DeploymentSpec { replicas: Some(0), ..Default::default() };
        let spec = sent(Deployment { spec: Some(spec), ..Default::default() })["spec"].clone();
        assert_eq!(spec, json!({ "replicas": 0 }));
        let set: StatefulSet = serde_json::from_value(json!({ "spec": { "replicas": 1 } })).unwrap();
        assert_eq!(sent(set)["spec"], json!({ "replicas": 1 }));
    }

    #[test]
    fn empty_values_that_are_set_are_sent() {
        let container = Container {
            name: "web".into(),
            env: Some(vec![EnvVar {
                name: "EMPTY".into(),
                value: Some(String::new()),
                ..Default::default()
            }]),
            ..Default::default()
        };
        let scratch = Volume {
            name: "scratch".into(),
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..Default::default()
        };
        let pod = PodSpec {
            containers: vec![container],
            volumes: Some(vec![scratch]),
            ..Default::default()
        };
        let template = PodTemplateSpec { spec: Some(pod), ..Default::default() };
        let spec = DeploymentSpec { template, ..Default::default() };
        let spec = sent(Deployment { spec: Some(spec), ..Default::default() })["spec"].clone();
        let expected = json!({ "template": { "spec": {
            "containers": [{ "name": "web", "env": [{ "name": "EMPTY", "value": "" }] }],
            "volumes": [{ "name": "scratch", "emptyDir": {} }],
        } } });
        assert_eq!(spec, expected);
    }

    #[test]
    fn keys_of_maps_are_never_dropped() {
        let data = Some([("a/b~c".to_owned(), String::new())].into());
        assert_eq!(sent(ConfigMap { data, ..Default::default() })["data"], json!({ "a/b~c": "" }));
    }

    #[test]
    fn what_becomes_empty_by_dropping_is_dropped_too_unless_it_was_set() {
        let spec = DeploymentSpec {
            template: PodTemplateSpec { spec: Some(PodSpec::default()), ..Default::default() },
            ..Default::default()
        };
        let spec = sent(Deployment { spec: Some(spec), ..Default::default() })["spec"].clone();
        assert_eq!(spec, json!({ "template": { "spec": {} } }));
    }
}
