//! GET, PUT and PATCH of `scale`: how many replicas there are to be, as an `autoscaling/v1` Scale.

use super::own::{Writer, other_versions};
use super::patch::Patch;
use super::{Part, decode, update};
use crate::answer::Answer;
use crate::call::Call;
use crate::object;
use crate::options::{PatchType, WriteOptions};
use crate::registry::{Kind, Scale};
use crate::request::Verb;
use crate::status::{Result, Status};
use flyball_schema::selector::LabelSelector;
use http::StatusCode;
use serde_json::{Map, Value, json};

/// Does what a request to `scale` asks for.
pub(super) async fn handle(call: &Call) -> Result<Answer> {
    match call.target.verb {
        Verb::Get => get(call).await,
        Verb::Update => {
            let options = WriteOptions::update(&call.query, &call.headers)?;
            let (scale, _) = decode::untyped(&call.body, options.field_validation)?;
            write(call, &options, |_| Ok(scale.clone())).await
        }
        _ => {
            let kind = PatchType::read(&call.headers)?;
            let options = WriteOptions::patch(&call.query, &call.headers, kind)?;
            if kind == PatchType::Apply {
                return Err(Status::unsupported_media_type(&[
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ]));
            }
            let patch = Patch::read(call, kind, options.field_validation)?;
            write(call, &options, |mut scale| patch.apply(&mut scale).map(|()| scale)).await
        }
    }
}

async fn get(call: &Call) -> Result<Answer> {
    match call.store().get(call.key()).await {
        Ok(Some(entry)) => {
            let live = call.kind.present_value(&entry.value, entry.revision);
            Ok(Answer::Other { code: StatusCode::OK, object: scale_of(&call.kind, &live)? })
        }
        Ok(None) => Err(call.not_found()),
        Err(error) => call.store_failed(error),
    }
}

/// Writes the number of replicas that `next` says.
async fn write(call: &Call, options: &WriteOptions, next: impl Fn(Value) -> Result<Value>) -> Result<Answer> {
    let others = other_versions(call);
    let written = update::write(call, Part::Scale, options.dry_run, |live| {
        let live = live.ok_or_else(|| call.not_found())?;
        let scale = next(scale_of(&call.kind, live).or_else(|_| scale_without_replicas(&call.kind, live))?)?;
        decode::check_name(call, &scale)?;
        let mut object = live.clone();
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        set(&mut object, &paths(&call.kind).spec_replicas_path, replicas);
        let version = object::text(&scale, "resourceVersion");
        object::metadata_mut(&mut object).insert("resourceVersion".into(), version.into());
        let now = call.now();
        let manager = &options.manager;
        let writer = Writer {
            kind: &call.kind,
            others: &others,
            part: Part::Scale,
            manager,
            now: &now,
        };
        writer.update(Some(live), &mut object);
        Ok(Some(object))
    })
    .await?;
    match written {
        Answer::Object { code, object, .. } => Ok(Answer::Other {
            code,
            object: scale_of(&call.kind, &object::decode(&object))?,
        }),
        other => Ok(other),
    }
}

/// Where a kind keeps what Scale shows.
fn paths(kind: &Kind) -> Scale {
    let custom = kind.custom.as_ref().and_then(|custom| custom.scale.clone());
    custom.unwrap_or_else(|| Scale {
        spec_replicas_path: ".spec.replicas".into(),
        status_replicas_path: ".status.replicas".into(),
        label_selector_path: None,
    })
}

fn scale_of(kind: &Kind, object: &Value) -> Result<Value> {
    let path = paths(kind).spec_replicas_path;
    if kind.custom.is_some() && at(object, &path).is_null() {
        return Err(Status::internal(format!("the spec replicas field {path:?} does not exist")));
    }
    scale_without_replicas(kind, object)
}

fn scale_without_replicas(kind: &Kind, object: &Value) -> Result<Value> {
    let paths = paths(kind);
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object::metadata(object).get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": {},
        "status": {"replicas": at(object, &paths.status_replicas_path).as_i64().unwrap_or(0)}});
    if let Some(replicas) = at(object, &paths.spec_replicas_path).as_i64().filter(|replicas| *replicas != 0) {
        scale["spec"]["replicas"] = replicas.into();
    }
    let selector = match (&kind.custom, &paths.label_selector_path) {
        (Some(_), Some(path)) => at(object, path).as_str().map(str::to_owned),
        (Some(_), None) => None,
        (None, _) => LabelSelector::from_value(&object["spec"]["selector"]).map(|selector| selector.to_string()),
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        scale["status"]["selector"] = selector.into();
    }
    Ok(scale)
}

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').skip(1).fold(object, |value, name| &value[name])
}

fn set(object: &mut Value, path: &str, number: i64) {
    let slot = path.split('.').skip(1).fold(object, |value, name| &mut value[name]);
    *slot = number.into();
}
