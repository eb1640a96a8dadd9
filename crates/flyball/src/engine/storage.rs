//! Rewrites the stored objects of an operator's kinds in the version that is stored now, so that older ones can be dropped.

use crate::{Error, Operator, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{
        ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectList, PartialObjectMeta, Patch, PatchParams,
        PostParams,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The annotation of a definition with the progress of a migration, from which it goes on after an interruption.
const PROGRESS: &str = "flyball.dev/storage-migration";
/// How many objects are listed at a time. The progress is noted after each page.
const PAGE: u32 = 100;

/// How far a migration is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StorageMigration {
    /// The definition, as in `caches.example.dev`.
    pub definition: String,
    /// The version that objects are rewritten in.
    pub version: String,
    /// Objects that were rewritten, also by runs before this one.
    pub migrated: u64,
    /// Objects that are left, where the API server says.
    pub remaining: Option<u64>,
    /// Whether only this version is stored now.
    pub done: bool,
}

#[derive(Debug, Deserialize, Serialize)]
struct Progress {
    version: String,
    /// The last object that was rewritten, `namespace/name`: the API server lists in that order.
    after: String,
    migrated: u64,
}

/// Rewrites the stored objects of all kinds that an operator brings along, and reports the progress. The command
/// `migrate-storage` calls it.
///
/// An interrupted run is continued by the next one. Objects that are written meanwhile are stored in the new version anyway.
pub async fn migrate_storage(
    client: &Client,
    operator: &Operator,
    mut report: impl FnMut(&StorageMigration),
) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in operator.crds() {
        let name = crd.name_any();
        let crd = api.get(&name).await?;
        let Some(version) = crd
            .spec
            .versions
            .iter()
            .find(|version| version.storage)
            .map(|version| version.name.clone())
        else {
            continue;
        };
        let migration = StorageMigration {
            definition: name,
            version,
            migrated: 0,
            remaining: None,
            done: false,
        };
        migrate(client, &api, &crd, migration, &mut report).await?;
    }
    Ok(())
}

async fn migrate(
    client: &Client,
    api: &Api<CustomResourceDefinition>,
    crd: &CustomResourceDefinition,
    mut migration: StorageMigration,
    report: &mut impl FnMut(&StorageMigration),
) -> Result<()> {
    let stored = |crd: &CustomResourceDefinition| -> Vec<String> {
        crd.status.as_ref().and_then(|status| status.stored_versions.clone()).unwrap_or_default()
    };
    if stored(crd) != [migration.version.clone()] {
        let progress = crd.annotations().get(PROGRESS).and_then(|text| serde_json::from_str(text).ok());
        let progress = progress.filter(|progress: &Progress| progress.version == migration.version);
        let after = progress.map(|progress| {
            migration.migrated = progress.migrated;
            progress.after
        });
        rewrite(client, api, crd, after, &mut migration, report).await?;
        finish(api, &migration).await?;
    }
    migration.done = true;
    migration.remaining = Some(0);
    report(&migration);
    Ok(())
}

async fn rewrite(
    client: &Client,
    api: &Api<CustomResourceDefinition>,
    crd: &CustomResourceDefinition,
    mut after: Option<String>,
    migration: &mut StorageMigration,
    report: &mut impl FnMut(&StorageMigration),
) -> Result<()> {
    let kind = GroupVersionKind::gvk(&crd.spec.group, &migration.version, &crd.spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural);
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page: ObjectList<PartialObjectMeta<DynamicObject>> = match objects.list_metadata(&params).await {
            Ok(page) => page,
            // The list began too long ago. What is done is known by its name.
            Err(kube::Error::Api(status)) if status.code == 410 && params.continue_token.is_some() => {
                params.continue_token = None;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for object in &page.items {
            let key = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
            if after.as_ref().is_some_and(|after| key <= *after) {
                continue;
            }
            write(client, &resource, object).await?;
            migration.migrated += 1;
            after = Some(key);
        }
        let remaining = page.metadata.remaining_item_count;
        migration.remaining = remaining.and_then(|count| u64::try_from(count).ok());
        if let Some(after) = &after {
            let (version, migrated) = (migration.version.clone(), migration.migrated);
            note(api, &migration.definition, Some(&Progress { version, after: after.clone(), migrated })).await?;
        }
        report(migration);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(()),
        }
    }
}

/// Has the API server store an object again, as it is. One that was written since, or is gone, needs nothing.
async fn write(client: &Client, resource: &ApiResource, object: &PartialObjectMeta<DynamicObject>) -> Result<()> {
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let (uid, version) = (&object.metadata.uid, &object.metadata.resource_version);
    let patch = Patch::Merge(json!({ "metadata": { "uid": uid, "resourceVersion": version } }));
    match api.patch_metadata(&object.name_any(), &PatchParams::default(), &patch).await {
        Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(()),
        written => Ok(written.map(drop)?),
    }
}

/// Notes the progress at the definition, or that there is none any more.
async fn note(api: &Api<CustomResourceDefinition>, name: &str, progress: Option<&Progress>) -> Result<()> {
    let text = progress.map(serde_json::to_string).transpose()?.map_or(Value::Null, Value::from);
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { PROGRESS: text } } }));
    api.patch_metadata(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Says that no other version is stored, unless the stored version has changed meanwhile.
async fn finish(api: &Api<CustomResourceDefinition>, migration: &StorageMigration) -> Result<()> {
    let name = &migration.definition;
    let mut crd = api.get(name).await?;
    let stores = |crd: &CustomResourceDefinition| {
        crd.spec
            .versions
            .iter()
            .any(|version| version.storage && version.name == migration.version)
    };
    if !stores(&crd) {
        let message = format!(
            "CustomResourceDefinition {name} does not store {} any more: migrate again",
            migration.version
        );
        return Err(Error::permanent(message));
    }
    crd.status.get_or_insert_default().stored_versions = Some(vec![migration.version.clone()]);
    api.replace_status(name, &PostParams::default(), &crd).await?;
    note(api, name, None).await
}
