//! Create, replace and delete. The API server validates objects, so that curl and kubectl get the same messages.

use super::{
    applications,
    input::{JsonBody, NamespacePath, ObjectPath},
    refusal::Refusal,
};
use axum::{Json, extract::State, http::StatusCode};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ObjectMeta, PostParams},
};
use serde_json::{Value, json};

/// How often a replacement without a resourceVersion is tried when it conflicts with other writes.
const MAX_ATTEMPTS: usize = 5;

/// Creates an Application, and its namespace if it does not exist.
pub async fn create(
    State(client): State<Client>,
    NamespacePath { namespace }: NamespacePath,
    JsonBody(object): JsonBody,
) -> Result<(StatusCode, Json<DynamicObject>), Refusal> {
    let api = applications(client.clone(), Some(&namespace));
    let created = match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            create_namespace(client, &namespace).await?;
            api.create(&PostParams::default(), &object).await?
        }
        created => created?,
    };
    Ok((StatusCode::CREATED, Json(created)))
}

/// Replaces an Application: the named resourceVersion only, or without one the latest.
pub async fn replace(
    State(client): State<Client>,
    ObjectPath { namespace, name }: ObjectPath,
    JsonBody(mut object): JsonBody,
) -> Result<Json<DynamicObject>, Refusal> {
    let api = applications(client, Some(&namespace));
    if object.resource_version().is_some() {
        return Ok(Json(api.replace(&name, &PostParams::default(), &object).await?));
    }
    let mut attempt = 1;
    loop {
        object.metadata.resource_version = api.get(&name).await?.resource_version();
        match api.replace(&name, &PostParams::default(), &object).await.map_err(Refusal::from) {
            Err(refusal) if refusal.is_conflict() && attempt < MAX_ATTEMPTS => attempt += 1,
            result => return Ok(Json(result?)),
        }
    }
}

/// Deletes an Application; the garbage collector deletes its children.
pub async fn delete(
    State(client): State<Client>,
    ObjectPath { namespace, name }: ObjectPath,
) -> Result<Json<Value>, Refusal> {
    let deleted = applications(client, Some(&namespace)).delete(&name, &DeleteParams::background()).await?;
    Ok(Json(deleted.either(|object| json!(object), |status| json!(status))))
}

/// Creates a namespace, unless another request has.
async fn create_namespace(client: Client, name: &str) -> Result<(), Refusal> {
    let metadata = ObjectMeta { name: Some(name.into()), ..Default::default() };
    let namespace = Namespace { metadata, ..Default::default() };
    match Api::all(client).create(&PostParams::default(), &namespace).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        result => result.map(drop).map_err(Refusal::from),
    }
}
