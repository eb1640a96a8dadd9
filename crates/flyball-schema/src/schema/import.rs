//! Brings types from one arena into another, such as ObjectMeta from the table of kinds into a custom resource.

use super::{Form, Schema, SchemaId, Schemas};
use std::collections::HashMap;
use std::sync::Arc;

impl Schemas {
    /// Copies a type of another arena and all that it refers to, and says where it is in this one.
    pub fn import(&mut self, from: &Schemas, id: SchemaId) -> SchemaId {
        let mut places = HashMap::new();
        let mut waiting = Vec::new();
        let mut place = |schemas: &mut Schemas, waiting: &mut Vec<_>, id| {
            *places.entry(id).or_insert_with(|| {
                let copy = schemas.add(Schema::default());
                waiting.push((id, copy));
                copy
            })
        };
        let root = place(self, &mut waiting, id);
        while let Some((id, copy)) = waiting.pop() {
            let mut schema = from.node(id).schema().clone();
            each_reference(&mut schema, |reference| *reference = place(self, &mut waiting, *reference));
            self.set(copy, schema);
        }
        root
    }
}

fn each_reference(schema: &mut Schema, mut change: impl FnMut(&mut SchemaId)) {
    match &mut schema.form {
        Form::List(list) => change(&mut list.items),
        Form::Map(map) => change(&mut map.values),
        Form::Object(object) => {
            for field in &mut Arc::make_mut(object).fields {
                change(&mut field.schema);
            }
        }
        _ => {}
    }
    if let Some(rules) = &mut schema.rules {
        let lists = [&mut rules.all_of, &mut rules.any_of, &mut rules.one_of];
        lists.into_iter().flatten().chain(&mut rules.not).for_each(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn an_imported_type_is_the_same_type() {
        let builtin = kinds::builtin();
        let id = builtin.schema_id("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap();
        let mut schemas = Schemas::default();
        let copy = schemas.import(&builtin.schemas, id);
        let (meta, original) = (schemas.node(copy), builtin.schemas.node(id));
        assert_eq!(meta.fields().len(), original.fields().len());
        let owner = meta.field("ownerReferences").and_then(|owners| owners.items()).unwrap();
        assert_eq!(owner.name.as_deref(), Some("io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"));
        assert!(schemas.len() < 40, "{}", schemas.len());
    }

    #[test]
    fn a_type_that_refers_to_itself_is_imported_once() {
        let builtin = kinds::builtin();
        let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
        let mut schemas = Schemas::default();
        let copy = schemas.import(&builtin.schemas, builtin.schema_id(name).unwrap());
        let not = schemas.node(copy).declared("not").unwrap().schema;
        assert_eq!(not, copy);
    }
}
