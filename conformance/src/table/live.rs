//! Asks a running kube-apiserver for the documents that the table is made from.

use super::{Documents, GenerateError, Result, Served};
use serde_json::Value;

/// The documents of everything that a server serves.
pub(super) async fn documents(client: &kube::Client) -> Result<Documents> {
    let version = ask(client, "/version").await?;
    let mut api_versions = vec!["v1".to_string()];
    for group in ask(client, "/apis").await?["groups"].as_array().into_iter().flatten() {
        let versions = group["versions"].as_array().into_iter().flatten();
        api_versions.extend(versions.filter_map(|version| version["groupVersion"].as_str()).map(str::to_string));
    }
    let mut served = Vec::new();
    for api_version in api_versions {
        let path = if api_version.contains('/') {
            format!("apis/{api_version}")
        } else {
            format!("api/{api_version}")
        };
        let resource_list = ask(client, &format!("/{path}")).await?;
        let openapi = ask(client, &format!("/openapi/v3/{path}")).await?;
        served.push(Served { api_version, resource_list, openapi });
    }
    Ok(Documents {
        version: version["gitVersion"].as_str().unwrap_or_default().to_string(),
        served,
    })
}

async fn ask(client: &kube::Client, path: &str) -> Result<Value> {
    let request = http::Request::get(path).body(Vec::new()).expect("a path of the API is a valid path");
    client
        .request(request)
        .await
        .map_err(|source| GenerateError::Ask { path: path.to_string(), source: Box::new(source) })
}
