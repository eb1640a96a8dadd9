//! Type checking of a policy's validations against the kinds that it matches, for `status.typeChecking`.
// apiserver/pkg/admission/plugin/policy/validating/typechecking.go

use super::declaration;
use crate::crd::cel::declaration::{Declaration, Kind};
use crate::crd::cel::escape::escape;
use crate::kinds;
use crate::schema::{Form, Node};
use flyball_cel::{Env, Type};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// A kind whose objects a policy looks at.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each is the part of its name")]
pub struct CheckedType<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
    /// The type of its objects.
    pub node: Node<'a>,
}

/// Checks the validations of a policy against each kind, and its parameters against their type, if that is known.
/// Returns the path of each expression that does not fit, and why.
///
/// ```
/// use flyball_schema::kinds;
/// use flyball_schema::policy::{CheckedType, type_check};
/// use serde_json::json;
///
/// let node = kinds::builtin().type_of("apps/v1", "Deployment").expect("a built-in kind");
/// let deployments = CheckedType { group: "apps", version: "v1", kind: "Deployment", node };
/// let policy = json!({"spec": {"validations": [{"expression": "object.replicas > 1"}]}});
/// let warnings = type_check(&policy, &[deployments], None);
/// assert_eq!(warnings[0].0, "spec.validations[0].expression");
/// assert!(warnings[0].1.starts_with("apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'"));
/// ```
pub fn type_check(policy: &Value, objects: &[CheckedType<'_>], params: Option<Node<'_>>) -> Vec<(String, String)> {
    let spec = &policy["spec"];
    let envs: Vec<(&CheckedType<'_>, Env)> =
        objects.iter().map(|object| (object, environment(spec, object, params))).collect();
    let mut warnings = Vec::new();
    for (index, validation) in spec["validations"].as_array().into_iter().flatten().enumerate() {
        for field in ["expression", "messageExpression"] {
            let text = validation[field].as_str().unwrap_or_default();
            if text.is_empty() && field == "messageExpression" {
                continue;
            }
            let found: Vec<String> = envs.iter().filter_map(|(object, env)| object.check(env, text)).collect();
            if !found.is_empty() {
                warnings.push((format!("spec.validations[{index}].{field}"), found.join("\n")));
            }
        }
    }
    warnings
}

impl CheckedType<'_> {
    fn check(&self, env: &Env, text: &str) -> Option<String> {
        let issues = env.check(text).err()?;
        let CheckedType { group, version, kind, .. } = self;
        Some(format!("{group}/{version}, Kind={kind}: {issues}\n"))
    }
}

/// The variables of a policy with the types of its objects. As upstream, it has no `authorizer.requestResource`.
fn environment(spec: &Value, object: &CheckedType<'_>, params: Option<Node<'_>>) -> Env {
    let env = declaration::declare(Env::kubernetes());
    let (env, kind) = declare_resource(env, object.node, object.kind);
    let mut env = env.variable("object", kind.clone()).variable("oldObject", kind);
    env = declaration::declare_authorizer_alone(env);
    if !spec["paramKind"].is_null() {
        let (with, kind) = match params {
            Some(node) => declare_resource(env, node, &format!("{}.params", object.kind)),
            None => (env, Type::Dyn),
        };
        env = with.variable("params", kind);
    }
    let mut fields: Vec<(String, Type)> = Vec::new();
    env = declaration::declare_variables(env, []);
    for variable in spec["variables"].as_array().into_iter().flatten() {
        let text = |field: &str| variable[field].as_str().unwrap_or_default();
        let checked = env.check(text("expression"));
        let kind = checked.map_or(Type::Dyn, |checked| declaration::field_type(checked.result_type()));
        fields.retain(|(name, _)| name != text("name"));
        fields.push((text("name").to_owned(), kind));
        env = declaration::declare_variables(env, fields.iter().map(|(name, kind)| (&**name, kind.clone())));
    }
    env
}

/// Declares a resource under the name of its kind and a number: upstream appends the nanosecond.
fn declare_resource(env: Env, node: Node<'_>, name: &str) -> (Env, Type) {
    match resource(node) {
        Some(declared) => declared.declare_in(env, &format!("{name}0")),
        None => (env, Type::Dyn),
    }
}

/// A resource: every one has `apiVersion`, `kind` and `metadata`.
fn resource(node: Node<'_>) -> Option<Arc<Declaration>> {
    let mut path = Vec::new();
    let declared = declare(node, &mut path)?;
    let Kind::Object(fields) = &declared.kind else {
        return Some(declared);
    };
    if node.type_name().is_some() {
        return Some(declared);
    }
    let mut fields = fields.clone();
    let metadata = kinds::builtin().schema(OBJECT_META).and_then(|node| declare(node, &mut path));
    fields.extend(metadata.map(|metadata| ("metadata".into(), metadata)));
    for name in ["apiVersion", "kind"] {
        fields.insert(name.into(), declaration_of(Kind::Scalar(Type::String)));
    }
    Some(declaration_of(Kind::Object(fields)))
}

/// Adds what expressions see of every resource within another.
fn embed(fields: &mut BTreeMap<Arc<str>, Arc<Declaration>>) {
    let text = || declaration_of(Kind::Scalar(Type::String));
    let names = ["name", "generateName"].map(|name| (Arc::from(name), text()));
    fields.insert("metadata".into(), declaration_of(Kind::Object(names.into())));
    for name in ["apiVersion", "kind"] {
        fields.insert(name.into(), text());
    }
}

fn declaration_of(kind: Kind) -> Arc<Declaration> {
    Arc::new(Declaration { kind, max_elements: 0, min_bytes: 0 })
}

/// What a type declares; none if expressions cannot see its values. `path` has the named types around it.
// apiserver/pkg/cel/common/schemas.go, SchemaDeclType; openapi/resolver/refs.go, PopulateRefs
fn declare<'a>(node: Node<'a>, path: &mut Vec<&'a str>) -> Option<Arc<Declaration>> {
    if let Some(name) = node.type_name() {
        if path.contains(&name) {
            return Some(declaration_of(Kind::Object(BTreeMap::new())));
        }
        path.push(name);
        let declared = declare_form(node, path);
        path.pop();
        return declared;
    }
    declare_form(node, path)
}

fn declare_form<'a>(node: Node<'a>, path: &mut Vec<&'a str>) -> Option<Arc<Declaration>> {
    let scalar = |kind: Type| Some(declaration_of(Kind::Scalar(kind)));
    match &node.schema().form {
        // Upstream's definitions give a quantity no single type.
        Form::Any | Form::Quantity => None,
        Form::Boolean => scalar(Type::Bool),
        Form::Integer => scalar(Type::Int),
        Form::Number => scalar(Type::Double),
        Form::IntOrString => scalar(Type::Dyn),
        Form::String => scalar(match node.format.as_deref() {
            Some("byte") => Type::Bytes,
            Some("duration") => Type::Duration,
            Some("date" | "date-time") => Type::Timestamp,
            _ => Type::String,
        }),
        Form::List(list) => Some(declaration_of(Kind::List(declare(node.at(list.items), path)?))),
        Form::Map(map) => Some(declaration_of(Kind::Map(declare(node.at(map.values), path)?))),
        Form::Object(object) => {
            let mut fields = BTreeMap::new();
            for field in &object.fields {
                if let (Some(name), Some(declared)) = (escape(&field.name), declare(node.at(field.schema), path)) {
                    fields.insert(Arc::from(&*name), declared);
                }
            }
            if node.embedded_resource {
                embed(&mut fields);
            }
            Some(declaration_of(Kind::Object(fields)))
        }
    }
}
