//! Create, replace and delete. Validation is the API server's, so that curl and kubectl are told the same.

use super::{applications, refusal::Refusal};
use axum::{
    Json,
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ObjectMeta, PostParams},
};
use serde_json::{Value, json};

/// How often a replacement without a resourceVersion is tried while others write too.
const ATTEMPTS: usize = 5;

/// Creates an Application, and its namespace where there is none yet.
pub async fn create(
    State(client): State<Client>,
    Path(namespace): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<DynamicObject>), Refusal> {
    let object = parse(&body)?;
    ensure_namespace(client.clone(), &namespace).await?;
    let created = applications(client, Some(&namespace)).create(&PostParams::default(), &object).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

/// Replaces an Application. With a resourceVersion only that version; without one whatever is there.
pub async fn replace(
    State(client): State<Client>,
    Path((namespace, name)): Path<(String, String)>,
    body: Bytes,
) -> Result<Json<DynamicObject>, Refusal> {
    let mut object = parse(&body)?;
    let api = applications(client, Some(&namespace));
    if object.resource_version().is_some() {
        return Ok(Json(api.replace(&name, &PostParams::default(), &object).await?));
    }
    let mut attempt = 1;
    loop {
        object.metadata.resource_version = api.get(&name).await?.resource_version();
        match api.replace(&name, &PostParams::default(), &object).await.map_err(Refusal::from) {
            Err(refusal) if refusal.is_conflict() && attempt < ATTEMPTS => attempt += 1,
            result => return Ok(Json(result?)),
        }
    }
}

/// Deletes an Application; its children follow.
pub async fn delete(
    State(client): State<Client>,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Json<Value>, Refusal> {
    let deleted = applications(client, Some(&namespace)).delete(&name, &DeleteParams::background()).await?;
    Ok(Json(deleted.either(|object| json!(object), |status| json!(status))))
}

fn parse(body: &[u8]) -> Result<DynamicObject, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::bad_request(&format!("the body is no Application: {error}")))
}

async fn ensure_namespace(client: Client, name: &str) -> Result<(), Refusal> {
    let namespaces: Api<Namespace> = Api::all(client);
    if namespaces.get_opt(name).await?.is_some() {
        return Ok(());
    }
    let metadata = ObjectMeta { name: Some(name.into()), ..Default::default() };
    match namespaces
        .create(&PostParams::default(), &Namespace { metadata, ..Default::default() })
        .await
    {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        result => result.map(drop).map_err(Refusal::from),
    }
}
