//! Reads the definitions and samples of a project out of its Go module.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// How many samples of one kind are taken.
const MAX_SAMPLES: usize = 40;
/// Where a project keeps the manifests of its earlier releases.
const EARLIER: &str = "releases";
/// Files that are larger are no samples.
const MAX_BYTES: u64 = 4 << 20;

/// What a project publishes.
#[derive(Debug)]
pub struct Project {
    /// The module with its version.
    pub module: String,
    /// Every definition that differs from the others, by `name` or, where several have it, `name (file)`.
    pub definitions: BTreeMap<String, Value>,
    /// The definition of each name that samples are created under.
    pub installed: BTreeMap<String, Value>,
    /// Objects of those kinds, by `file#number`.
    pub samples: Vec<(String, Value)>,
}

/// Downloads a module and reads every YAML file of it. Files that are templates are left out.
pub fn collect(module: &str) -> Result<Project, String> {
    let directory = downloaded(module)?;
    let mut files = Vec::new();
    walk(&directory, &mut files)?;
    files.sort();
    let mut documents = Vec::new();
    for file in &files {
        let name = file.strip_prefix(&directory).unwrap_or(file).display().to_string();
        for (number, document) in read(file).into_iter().enumerate() {
            documents.push((format!("{name}#{number}"), document));
        }
    }
    let mut project = Project {
        module: module.to_owned(),
        definitions: BTreeMap::new(),
        installed: BTreeMap::new(),
        samples: Vec::new(),
    };
    define(&mut project, &documents);
    sample(&mut project, &documents);
    eprintln!("{module}: {} definitions, {} samples", project.definitions.len(), project.samples.len());
    Ok(project)
}

fn downloaded(module: &str) -> Result<PathBuf, String> {
    let mut command = Command::new("go");
    command
        .current_dir(std::env::temp_dir())
        .env("GOWORK", "off")
        // A release may require a newer Go than the installed one, only to be downloaded.
        .env("GOTOOLCHAIN", "auto")
        .args(["mod", "download", "-json", module]);
    let output = command.output().map_err(|error| format!("start go, which this needs: {error}"))?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let directory = answer["Dir"].as_str().map(PathBuf::from);
    directory.ok_or_else(|| format!("go mod download {module}: {}", answer["Error"].as_str().unwrap_or("no answer")))
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let unreadable = |error| format!("read {}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() && !path.ends_with(EARLIER) {
            walk(&path, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
        {
            files.push(path);
        }
    }
    Ok(())
}

/// The documents of a file that are objects; what does not parse, such as a template, is none.
fn read(file: &Path) -> Vec<Value> {
    let small = file.metadata().is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
    let Some(text) = small.then(|| fs::read_to_string(file).ok()).flatten() else {
        return Vec::new();
    };
    let documents = text.split("\n---").map(|document| document.trim_start_matches(['-', ' ']));
    let objects = documents.filter_map(|document| serde_saphyr::from_str::<Value>(document).ok());
    objects
        .filter(|object| object["kind"].is_string() && object["apiVersion"].is_string())
        .collect()
}

fn define(project: &mut Project, documents: &[(String, Value)]) {
    let mut seen: Vec<&Value> = Vec::new();
    for (place, document) in documents {
        // without versions it is a patch of one
        let is_definition = document["kind"] == "CustomResourceDefinition"
            && document["apiVersion"] == "apiextensions.k8s.io/v1"
            && document["spec"]["versions"].is_array();
        let Some(name) = document["metadata"]["name"].as_str().filter(|_| is_definition) else {
            continue;
        };
        if seen.contains(&document) {
            continue;
        }
        seen.push(document);
        let definition = without_conversion(document.clone());
        let key = if project.definitions.contains_key(name) {
            format!("{name} ({place})")
        } else {
            name.to_owned()
        };
        project.installed.entry(name.to_owned()).or_insert_with(|| definition.clone());
        project.definitions.insert(key, definition);
    }
}

/// There is no webhook to convert anything here.
fn without_conversion(mut definition: Value) -> Value {
    if let Some(spec) = definition["spec"].as_object_mut() {
        spec.remove("conversion");
    }
    if let Some(definition) = definition.as_object_mut() {
        definition.remove("status");
    }
    definition
}

fn sample(project: &mut Project, documents: &[(String, Value)]) {
    let mut counts = BTreeMap::<String, usize>::new();
    for (place, document) in documents {
        let Some(path) = project.installed.values().find_map(|definition| path_of(definition, document)) else {
            continue;
        };
        let count = counts.entry(path).or_default();
        *count += 1;
        if *count <= MAX_SAMPLES && document["metadata"].is_object() {
            project.samples.push((place.clone(), detached(document.clone())));
        }
    }
}

/// Where an object is created, if the definition is that of its kind and serves its version.
pub fn path_of(definition: &Value, object: &Value) -> Option<String> {
    let spec = &definition["spec"];
    let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
    let served = spec["versions"]
        .as_array()?
        .iter()
        .any(|known| known["name"] == version && known["served"] == true);
    if spec["group"] != group || spec["names"]["kind"] != object["kind"] || !served {
        return None;
    }
    let plural = spec["names"]["plural"].as_str()?;
    let namespace = if spec["scope"] == "Namespaced" {
        "namespaces/corpus/"
    } else {
        ""
    };
    Some(format!("/apis/{group}/{version}/{namespace}{plural}"))
}

/// A sample without what ties it to another cluster.
fn detached(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in [
            "namespace",
            "finalizers",
            "ownerReferences",
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
        ] {
            metadata.remove(key);
        }
        if !metadata.contains_key("name") && !metadata.contains_key("generateName") {
            metadata.insert("name".into(), json!("sample"));
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_left_out_and_documents_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        fs::write(
            &file,
            "---\napiVersion: v1\nkind: A\n---\n{{ if .x }}\nkind: B\n{{ end }}\n---\nkind: C\napiVersion: v1\n",
        )
        .unwrap();
        let kinds: Vec<Value> = read(&file).iter().map(|object| object["kind"].clone()).collect();
        assert_eq!(kinds, ["A", "C"]);
    }

    #[test]
    fn an_object_is_created_where_its_definition_serves_it() {
        let definition = json!({"spec": {"group": "a.dev", "scope": "Namespaced", "names": {"kind": "A", "plural": "as"},
            "versions": [{"name": "v1", "served": true}, {"name": "v2", "served": false}]}});
        let object = |version: &str| json!({"apiVersion": format!("a.dev/{version}"), "kind": "A"});
        assert_eq!(path_of(&definition, &object("v1")).unwrap(), "/apis/a.dev/v1/namespaces/corpus/as");
        assert_eq!(path_of(&definition, &object("v2")), None);
    }
}
