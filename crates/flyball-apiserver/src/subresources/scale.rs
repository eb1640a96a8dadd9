//! GET, PUT and PATCH of `scale`: how many replicas there are to be, as an `autoscaling/v1` Scale.

use crate::endpoints::patch::Patch;
use crate::endpoints::{Subresource, apply, decode};
use crate::kinds::spec::{Selector, SubresourceEndpoint};
use crate::registry::generic::{Admission, SubresourceObject, Write};
use crate::registry::object::{self, metadata_mut};
use crate::registry::{Kind, Scale};
use crate::request::context::ResourceRequest;
use crate::request::info::Verb;
use crate::request::options::{PatchType, WriteOptions, causes};
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use flyball_schema::kinds;
use flyball_schema::managed_fields::{self, Request};
use flyball_schema::schema::Node;
use flyball_schema::selector::LabelSelector;
use flyball_schema::violation::Violation;
use http::StatusCode;
use serde_json::{Map, Value, json};

const API_VERSION: &str = "autoscaling/v1";

/// Does what a request to `scale` asks for.
pub(crate) async fn handle(request: &ResourceRequest) -> Result<ApiResponse> {
    match request.target.verb {
        Verb::Get => get(request).await,
        Verb::Update => {
            let options = WriteOptions::update(&request.info.query, &request.headers)?;
            let scale = decode::as_type(request, node(), "Scale", API_VERSION, options.field_validation)?;
            write(request, &options, |old, now| {
                let mut scale = scale.clone();
                managed_fields::update(&apply_request(old, &options, now), &mut scale);
                Ok(scale)
            })
            .await
        }
        _ => patch(request).await,
    }
}

async fn patch(request: &ResourceRequest) -> Result<ApiResponse> {
    let kind = PatchType::read(request)?;
    let options = WriteOptions::patch(&request.info.query, &request.headers, kind)?;
    if kind == PatchType::Apply {
        let (config, _) = decode::configuration(request)?;
        return write(request, &options, |old, now| {
            let applied = managed_fields::apply(&apply_request(old, &options, now), &config, options.force);
            Ok(applied.map_err(apply::refused)?.unwrap_or_else(|| old.clone()))
        })
        .await;
    }
    let patch = Patch::read(request, kind)?;
    write(request, &options, |old, now| {
        let mut scale = old.clone();
        patch.apply(&mut scale, Some(node()))?;
        managed_fields::update(&apply_request(old, &options, now), &mut scale);
        Ok(scale)
    })
    .await
}

fn node() -> Node<'static> {
    kinds::builtin().schema("io.k8s.api.autoscaling.v1.Scale").expect("Scale is in the table")
}

fn apply_request<'a>(old: &'a Value, options: &'a WriteOptions, now: &'a str) -> Request<'a> {
    Request {
        node: node(),
        live: Some(old),
        manager: &options.manager,
        api_version: API_VERSION,
        kind: "Scale",
        subresource: Some("scale"),
        reset: &["status"],
        versions: &[],
        now,
    }
}

async fn get(request: &ResourceRequest) -> Result<ApiResponse> {
    match request.store().get(request.key()).await {
        Ok(Some(entry)) => {
            let live = request.kind.decode_from_storage(&entry.value, entry.revision).await?;
            Ok(ApiResponse::Other {
                code: StatusCode::OK,
                object: scale_of(&request.kind, &live)?,
            })
        }
        Ok(None) => Err(request.not_found()),
        Err(error) => request.store_failed(error),
    }
}

/// Writes the number of replicas that `next` makes of the old Scale.
// pkg/registry/apps/deployment/storage/storage.go, scaleUpdatedObjectInfo
async fn write(
    request: &ResourceRequest,
    options: &WriteOptions,
    next: impl Fn(&Value, &str) -> Result<Value>,
) -> Result<ApiResponse> {
    let scaled = Scaled::new(request);
    let write = Write {
        admission: Admission::Subresource(&scaled),
        ..Write::new(request, Subresource::Scale, options)
    };
    let transform = |old: Option<&Value>| {
        let old = old.ok_or_else(|| request.not_found())?;
        let scale = next(old, &request.now())?;
        decode::check_name(request, &scale)?;
        Ok(Some(scale))
    };
    match write.update(transform).await? {
        ApiResponse::Object { code, object, .. } => Ok(ApiResponse::Other {
            code,
            object: scale_of(&request.kind, &object::decode(&object))?,
        }),
        other => Ok(other),
    }
}

/// The Scale of an object that is written.
struct Scaled<'a> {
    request: &'a ResourceRequest,
    api_version: String,
    replicas_path: String,
}

impl Scaled<'_> {
    fn new(request: &ResourceRequest) -> Scaled<'_> {
        Scaled {
            request,
            api_version: request.kind.resource.api_version(),
            replicas_path: paths(&request.kind).spec_replicas_path,
        }
    }

    /// The field of the object that the Scale owns, by the version of the object.
    fn owned(&self) -> [(&str, &str); 1] {
        [(&self.api_version, self.replicas_path.trim_start_matches('.'))]
    }
}

impl SubresourceObject for Scaled<'_> {
    fn show(&self, stored: &Value) -> Value {
        shown(&self.request.kind, stored)
    }

    fn show_managed(&self, stored: &Value) -> Value {
        let mut scale = self.show(stored);
        let entries = managed_fields::scale_entries(stored, &self.owned());
        metadata_mut(&mut scale).insert("managedFields".into(), entries.into());
        scale
    }

    fn merge(&self, stored: &Value, scale: Value) -> Result<Value> {
        check(self.request, &scale)?;
        let mut object = stored.clone();
        *at_mut(&mut object, &self.replicas_path) = scale["spec"]["replicas"].as_i64().unwrap_or(0).into();
        let metadata = metadata_mut(&mut object);
        metadata.insert("resourceVersion".into(), object::text(&scale, "resourceVersion").into());
        let entries = managed_fields::scaled_entries(stored, &scale, &self.owned(), &self.api_version);
        metadata.insert("managedFields".into(), entries.into());
        Ok(object)
    }
}

// pkg/apis/autoscaling/validation/validation.go, ValidateScale
fn check(request: &ResourceRequest, scale: &Value) -> Result<()> {
    match scale["spec"]["replicas"].as_i64() {
        Some(replicas) if replicas < 0 => {
            let violation = Violation::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
            Err(Status::invalid("autoscaling", "Scale", request.name(), causes(vec![violation])))
        }
        _ => Ok(()),
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
    Ok(shown(kind, object))
}

fn shown(kind: &Kind, object: &Value) -> Value {
    let paths = paths(kind);
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object::metadata(object).get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut scale = json!({"kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata, "spec": {},
        "status": {"replicas": at(object, &paths.status_replicas_path).as_i64().unwrap_or(0)}});
    if let Some(replicas) = at(object, &paths.spec_replicas_path).as_i64().filter(|replicas| *replicas != 0) {
        scale["spec"]["replicas"] = replicas.into();
    }
    let selector = match (selector_of(kind), &paths.label_selector_path) {
        (Selector::Path, Some(path)) => at(object, path).as_str().map(str::to_owned),
        (Selector::Path, None) => None,
        (Selector::Labels, _) => equalities(&object["spec"]["selector"]),
        (Selector::LabelSelector, _) => {
            LabelSelector::from_value(&object["spec"]["selector"]).map(|selector| selector.to_string())
        }
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

fn selector_of(kind: &Kind) -> Selector {
    let endpoints = kind.spec.subresources.iter();
    let mut selectors = endpoints.filter_map(|(_, endpoint)| match endpoint {
        SubresourceEndpoint::Scale(selector) => Some(*selector),
        _ => None,
    });
    selectors.next().unwrap_or(Selector::LabelSelector)
}

fn equalities(labels: &Value) -> Option<String> {
    let equality = |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
    Some(labels.as_object()?.iter().map(equality).collect::<Vec<_>>().join(","))
}

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').skip(1).fold(object, |value, name| &value[name])
}

fn at_mut<'a>(object: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('.').skip(1).fold(object, |value, name| &mut value[name])
}
