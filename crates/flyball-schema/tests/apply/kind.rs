//! The kind of a sequence, with its types: of the table of kinds, or of the CRD that comes with the sequence.

use flyball_schema::crd::{self, Structural};
use flyball_schema::decode::Document;
use flyball_schema::default::default;
use flyball_schema::kinds;
use flyball_schema::managed_fields::Version;
use flyball_schema::prune::prune;
use flyball_schema::schema::Node;
use serde_json::Value;

/// A kind with its type in each version.
pub struct Kind {
    /// The versions of a custom resource; none for a built-in kind.
    custom: Vec<(String, Structural)>,
}

impl Kind {
    /// The types of a CRD's `versions`.
    pub fn of(versions: &Value) -> Kind {
        let read = |version: &Value| {
            let schema = &version["schema"]["openAPIV3Schema"];
            let structural = crd::read(schema, "", crd::Status::Plain).expect("the schema is structural");
            (format!("ssa.flyball.test/{}", crate::text(version, "name")), structural)
        };
        Kind { custom: crate::items(versions).iter().map(read).collect() }
    }

    pub fn is_custom(&self) -> bool {
        !self.custom.is_empty()
    }

    /// The type of the object in a version.
    pub fn node(&self, api_version: &str, kind: &str) -> Node<'_> {
        if let Some((_, structural)) = self.custom.iter().find(|(version, _)| version == api_version) {
            return structural.node();
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = kinds::builtin().kind(group, version, kind).expect("a built-in kind");
        kinds::builtin().schemas.node(resource.schema.expect("a kind with a type"))
    }

    /// All versions with their types.
    pub fn versions(&self) -> Vec<(&str, Version<'_>)> {
        self.custom
            .iter()
            .map(|(version, structural)| (&**version, Version::Same(structural.node())))
            .collect()
    }

    /// What the server makes of the body of a request.
    pub fn decode(&self, object: &mut Value) -> Result<(), String> {
        let entries = object.pointer("/metadata/managedFields").cloned();
        match self.structural(object) {
            Some(structural) => {
                structural.coerce(object).map_err(|error| error.to_string())?;
                default(structural.node(), object);
            }
            None => {
                let node = self.node(crate::text(object, "apiVersion"), crate::text(object, "kind"));
                let document = Document::json(object.to_string().as_bytes()).map_err(|error| error.to_string())?;
                *object = document.typed(node).map_err(|error| error.to_string())?.value;
            }
        }
        if let Some(entries) = entries {
            object["metadata"]["managedFields"] = entries;
        }
        Ok(())
    }

    /// What the server makes of an object that was merged. Nulls stay in a custom resource.
    pub fn complete(&self, object: &mut Value) -> Result<(), String> {
        match self.structural(object) {
            Some(structural) => {
                prune(structural.node(), object);
                default(structural.node(), object);
                Ok(())
            }
            None => self.decode(object),
        }
    }

    fn structural(&self, object: &Value) -> Option<&Structural> {
        let api_version = crate::text(object, "apiVersion");
        self.custom
            .iter()
            .find(|(version, _)| version == api_version)
            .map(|(_, structural)| structural)
    }
}
