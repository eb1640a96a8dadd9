//! A scenario as data: what is created and changed, how pods fare, and what is compared in the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::normal;
use crate::scenario::World;

/// How long controllers may still write events after everything else has come true.
const SETTLE: Duration = Duration::from_secs(2);

/// One file of `conformance/controllers`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// The file's name without `.yaml`; also that of the namespace.
    #[serde(skip)]
    pub(super) name: String,
    #[serde(rename = "about")]
    _about: String,
    steps: Vec<Step>,
    /// The collections that are compared, as in `apps/v1/deployments`.
    compare: Vec<String>,
}

/// One step. Paths begin with group and version and leave the namespace out: `apps/v1/deployments/web`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Creates `object` in this collection.
    create: Option<String>,
    /// Merges `object` into this object.
    merge: Option<String>,
    /// Deletes this object.
    delete: Option<String>,
    /// Waits until this object or collection has everything in `object`.
    until: Option<String>,
    /// Waits until so many pods are there that have not ended, and gives them the status in `object`.
    pods: Option<usize>,
    #[serde(default)]
    object: Value,
}

pub(super) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("controllers")
}

impl Scenario {
    pub(super) fn read_all() -> Result<Vec<Scenario>, String> {
        let entries = fs::read_dir(directory()).map_err(|error| error.to_string())?;
        let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
        files.sort();
        files.iter().map(|file| Scenario::read(file)).collect()
    }

    fn read(file: &Path) -> Result<Scenario, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
        let mut scenario: Scenario = serde_saphyr::from_str(&text).map_err(|error| wrong(&error))?;
        scenario.name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(scenario)
    }

    /// Plays the scenario; what is left in the end.
    pub(super) async fn play(&self, world: &World) -> Result<Value, String> {
        world.create("/api/v1/namespaces", &json!({ "metadata": { "name": self.name } })).await?;
        for step in &self.steps {
            self.take(step, world).await?;
        }
        tokio::time::sleep(SETTLE).await;
        let mut left = Map::new();
        for path in &self.compare {
            let list = world.get(&self.url(path)).await?.unwrap_or_default();
            left.insert(path.replace('/', "."), list["items"].clone());
        }
        let events = world.get(&self.url("v1/events")).await?.unwrap_or_default();
        left.insert("events".into(), normal::events(&events["items"]));
        Ok(normal::of(Value::Object(left)))
    }

    async fn take(&self, step: &Step, world: &World) -> Result<(), String> {
        let object = &step.object;
        if let Some(path) = &step.create {
            world.create(&self.url(path), object).await?;
        }
        if let Some(path) = &step.merge {
            world.merge(&self.url(path), object).await?;
        }
        if let Some(path) = &step.delete {
            world.delete(&self.url(path)).await?;
        }
        if let Some(path) = &step.until {
            world.until(&self.url(path), |seen| includes(seen, object)).await?;
        }
        if let Some(count) = step.pods {
            let living = |pods: &Value| -> Vec<String> {
                let pods = pods["items"].as_array().cloned().unwrap_or_default();
                let lives = |pod: &&Value| {
                    let ended = ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase);
                    pod["metadata"]["deletionTimestamp"].is_null() && !ended
                };
                let living = pods.iter().filter(lives);
                living.filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned)).collect()
            };
            let pods = world.until(&self.url("v1/pods"), |pods| living(pods).len() == count).await?;
            for name in living(&pods) {
                world
                    .merge(&format!("{}/status", self.url(&format!("v1/pods/{name}"))), &json!({ "status": object }))
                    .await?;
            }
        }
        Ok(())
    }

    /// `apps/v1/deployments/web` in the scenario's namespace.
    fn url(&self, path: &str) -> String {
        let namespace = &self.name;
        match path.strip_prefix("v1/") {
            Some(rest) => format!("/api/v1/namespaces/{namespace}/{rest}"),
            None => {
                let mut parts = path.splitn(3, '/');
                let (group, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                let rest = parts.next().unwrap_or_default();
                format!("/apis/{group}/{version}/namespaces/{namespace}/{rest}")
            }
        }
    }
}

/// Whether everything wanted is there. A list is if each wanted item is included in some item.
fn includes(seen: &Value, wanted: &Value) -> bool {
    match (seen, wanted) {
        (Value::Object(seen), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| includes(seen.get(key).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(seen), Value::Array(wanted)) => {
            wanted.iter().all(|wanted| seen.iter().any(|seen| includes(seen, wanted)))
        }
        (seen, wanted) => seen == wanted,
    }
}
