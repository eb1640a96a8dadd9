//! The form of `corpus/cel/*.yaml`: a schema per file, and per case the rules added to it and the objects to decide on.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, iter};

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Cases that share a schema; its name is its file's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The file's name without `.yaml`.
    #[serde(skip)]
    pub name: String,
    /// Said to the reader of the file only.
    #[serde(rename = "about")]
    _about: String,
    /// The schema of `spec`.
    pub schema: Value,
    /// The schema of `status`, where the file has one.
    pub status: Option<Value>,
    /// One definition each.
    pub cases: Vec<Case>,
}

/// A definition with rules, and the objects that are sent to it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique in its file.
    pub name: String,
    /// Rules at `at`: an expression, or an `x-kubernetes-validations` entry.
    #[serde(default)]
    pub rule: Option<Rule>,
    /// Several of them.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// The path of the schema that the rules are added to, `spec` by default: `spec.list[].name`, `spec.map{}`, `` for the root.
    pub at: Option<String>,
    /// Schemas that replace others or are added, by their path.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// `spec` of objects that are created, each by itself, by a dry run.
    #[serde(default)]
    pub create: Vec<Value>,
    /// `spec` of an object that is created, and the `spec` that it is then updated to.
    #[serde(default)]
    pub update: Vec<[Value; 2]>,
    /// Requests that follow each other on one object.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// A `spec` that the rules refuse. Where it is given, the first objects of `update` are created before the rules are added.
    pub ratchets: Option<Value>,
}

/// A rule as the case writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Rule {
    /// The expression alone.
    Expression(String),
    /// All fields.
    Entry(Map<String, Value>),
}

/// One request on the case's object. Its members replace the object's of the same name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum Step {
    /// Creates the object.
    Create(Map<String, Value>),
    /// Replaces it.
    Update(Map<String, Value>),
    /// Replaces its status.
    Status(Map<String, Value>),
    /// Applies these members as a field manager.
    Apply(Map<String, Value>),
    /// Sends these members as a merge patch.
    Merge(Map<String, Value>),
}

/// The plural, the kind and the version of every definition; the group differs.
pub const PLURAL: &str = "things";
const KIND: &str = "Thing";
const VERSION: &str = "v1";

impl Case {
    /// Every rule, as an `x-kubernetes-validations` entry.
    pub fn validations(&self) -> Vec<Value> {
        let rules = self.rule.iter().chain(&self.rules);
        rules
            .map(|rule| match rule {
                Rule::Expression(expression) => json!({ "rule": expression }),
                Rule::Entry(entry) => Value::Object(entry.clone()),
            })
            .collect()
    }

    /// The API group of the case's definition.
    pub fn group(&self, document: &Document) -> String {
        format!("{}.{}.cel.dev", slug(&self.name), document.name)
    }

    /// The definition with the case's rules.
    pub fn definition(&self, document: &Document) -> Result<Value, String> {
        let mut schema = self.schema(document)?;
        let rules = self.validations();
        if !rules.is_empty() {
            place(&mut schema, self.at.as_deref().unwrap_or("spec"))?["x-kubernetes-validations"] = rules.into();
        }
        Ok(self.defined(document, &schema))
    }

    /// The definition without them.
    pub fn lenient(&self, document: &Document) -> Result<Value, String> {
        let schema = self.schema(document)?;
        Ok(self.defined(document, &schema))
    }

    fn schema(&self, document: &Document) -> Result<Value, String> {
        let mut schema = json!({"type": "object", "properties": {"spec": document.schema}});
        if let Some(status) = &document.status {
            schema["properties"]["status"] = status.clone();
        }
        for (path, value) in &self.set {
            *place(&mut schema, path)? = value.clone();
        }
        Ok(schema)
    }

    fn defined(&self, document: &Document, schema: &Value) -> Value {
        let group = self.group(document);
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{PLURAL}.{group}")},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": PLURAL, "singular": "thing", "kind": KIND, "listKind": "ThingList"},
                "versions": [{
                    "name": VERSION, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }],
            },
        })
    }

    /// An object of the definition's kind.
    pub fn object(&self, document: &Document, name: &str) -> Value {
        let version = format!("{}/{VERSION}", self.group(document));
        json!({"apiVersion": version, "kind": KIND, "metadata": {"name": name}})
    }

    /// Where the objects are served.
    pub fn path(&self, document: &Document) -> String {
        format!("/apis/{}/{VERSION}/namespaces/corpus/{PLURAL}", self.group(document))
    }
}

/// The letters and digits of a name, with dashes between them.
fn slug(name: &str) -> String {
    let parts = name.split(|character: char| !character.is_ascii_alphanumeric());
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).map(str::to_lowercase).collect();
    parts.join("-")
}

/// The schema at a path such as `spec.list[].name`; what is missing on the way is added.
fn place<'a>(schema: &'a mut Value, path: &str) -> Result<&'a mut Value, String> {
    let mut pointer = Vec::new();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let name = part.trim_end_matches(['[', ']', '{', '}']);
        pointer.extend(["properties", name]);
        let mut rest = &part[name.len()..];
        while !rest.is_empty() {
            let (keyword, length) = match rest.get(..2) {
                Some("[]") => ("items", 2),
                Some("{}") => ("additionalProperties", 2),
                _ => return Err(format!("`{path}` is no path of a schema")),
            };
            pointer.push(keyword);
            rest = &rest[length..];
        }
    }
    let mut schema = schema;
    for part in pointer {
        if !schema.is_object() {
            return Err(format!("`{path}` is no path of the schema"));
        }
        schema = &mut schema[part];
        if schema.is_null() {
            *schema = json!({});
        }
    }
    Ok(schema)
}

/// Reads every `*.yaml` of `directory`, by name.
pub fn read_all(directory: &Path) -> Result<Vec<Document>, String> {
    let unreadable = |error| format!("read {}: {error}", directory.display());
    let entries: Vec<_> = fs::read_dir(directory).and_then(Iterator::collect).map_err(unreadable)?;
    let mut paths: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Document, String> {
    let wrong = |error: String| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut document: Document = serde_saphyr::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    document.name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut groups = std::collections::BTreeSet::new();
    for case in &document.cases {
        if !groups.insert(case.group(&document)) {
            return Err(wrong(format!("two cases are called `{}`", case.name)));
        }
        if slug(&case.name).len() > 63 {
            return Err(wrong(format!("`{}`: a name has at most 63 letters", case.name)));
        }
        let problem = case.definition(&document).err();
        let problem = problem.or_else(|| misplaced(case).map(str::to_owned));
        if let Some(problem) = problem {
            return Err(wrong(format!("`{}`: {problem}", case.name)));
        }
    }
    Ok(document)
}

fn misplaced(case: &Case) -> Option<&'static str> {
    let ratchets = case.ratchets.is_some();
    let starts_with_create = case.steps.first().is_none_or(|step| matches!(step, Step::Create(_) | Step::Apply(_)));
    if ratchets && case.update.is_empty() {
        Some("it ratchets and updates nothing")
    } else if !starts_with_create {
        Some("its steps do not begin with an object")
    } else {
        None
    }
}

/// How many rules the documents hold.
pub fn count(documents: &[Document]) -> usize {
    let cases = documents.iter().flat_map(|document| &document.cases);
    cases.flat_map(|case| case.rule.iter().chain(&case.rules)).count()
}

/// The members of `changes` in the place of the object's.
pub fn replaced(mut object: Value, changes: &Map<String, Value>) -> Value {
    for (key, value) in changes {
        match (key.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                iter::zip(metadata.keys(), metadata.values()).for_each(|(key, value)| {
                    object["metadata"][key] = value.clone();
                });
            }
            _ => object[key] = value.clone(),
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_at_least_300_rules_and_each_is_well_formed() {
        let documents = read_all(&crate::cel::directory()).unwrap();
        let rules = count(&documents);
        assert!(rules >= 300, "{rules} rules");
    }

    #[test]
    fn every_case_has_a_recorded_answer_for_each_request() {
        let documents = read_all(&crate::cel::directory()).unwrap();
        let recorded = crate::corpus::recorded::read(&crate::cel::directory().join("recorded")).unwrap();
        let cases = documents
            .iter()
            .flat_map(|document| document.cases.iter().map(move |case| (document, case)));
        let mut names = Vec::new();
        for (document, case) in cases {
            let name = format!("{}/{}", document.name, case.name);
            let answers = &recorded.get(&name).unwrap_or_else(|| panic!("{name} is not recorded"))["answers"];
            let expected = case.create.len() + case.update.len() + case.steps.len();
            let refused = recorded[&name]["definition"]["code"] == 422;
            let found = answers.as_array().map_or(0, Vec::len);
            assert!(found == expected || refused, "{name}: {found} answers to {expected} requests");
            names.push(name);
        }
        let gone: Vec<_> = recorded.keys().filter(|name| !names.contains(name)).collect();
        assert!(gone.is_empty(), "recorded, and no case: {gone:?}");
    }

    #[test]
    fn a_path_names_properties_items_and_additional_properties() {
        let mut schema = json!({});
        place(&mut schema, "spec.a[].b{}").unwrap()["type"] = "string".into();
        let expected = json!({"properties": {"spec": {"properties": {"a": {"items": {"properties": {"b":
            {"additionalProperties": {"type": "string"}}}}}}}}});
        assert_eq!(schema, expected);
        assert!(place(&mut schema, "spec.a[").is_err());
    }
}
