//! The types of admission's variables, as kube-apiserver declares them.
// apiserver/pkg/admission/plugin/cel/compile.go: BuildRequestType, BuildNamespaceType

use flyball_cel::{Env, Type};

/// The type of `variables`.
pub(super) const VARIABLES: &str = "kubernetes.variables";

/// Declares the variables that every expression has.
pub(super) fn declare(env: Env) -> Env {
    declare_namespace(declare_request(env))
        .variable("object", Type::Dyn)
        .variable("oldObject", Type::Dyn)
        .variable("request", Type::object("kubernetes.AdmissionRequest"))
        .variable("namespaceObject", Type::object("kubernetes.Namespace"))
}

pub(super) fn declare_authorizer(env: Env) -> Env {
    let resource_check = Type::object("kubernetes.authorization.ResourceCheck");
    declare_authorizer_alone(env).variable("authorizer.requestResource", resource_check)
}

/// Declares `authorizer` without `authorizer.requestResource`.
pub(super) fn declare_authorizer_alone(env: Env) -> Env {
    env.variable("authorizer", Type::object("kubernetes.authorization.Authorizer"))
}

pub(super) fn declare_variables<'n>(env: Env, fields: impl IntoIterator<Item = (&'n str, Type)>) -> Env {
    env.object(VARIABLES, fields).variable("variables", Type::object(VARIABLES))
}

/// The type that a variable of this type has for its readers (convertCelTypeToDeclType): what is neither a scalar nor a list
/// or map of such is dynamic.
pub(super) fn field_type(kind: &Type) -> Type {
    match kind {
        Type::List(element) => Type::list(field_type(element)),
        Type::Map(key, value) => Type::map(field_type(key), field_type(value)),
        Type::Null
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Duration
        | Type::Timestamp => kind.clone(),
        _ => Type::Dyn,
    }
}

/// A type as cel-go's `Type.String` writes it.
pub(super) fn type_name(kind: &Type) -> String {
    match kind {
        Type::List(element) => format!("list({})", type_name(element)),
        Type::Map(key, value) => format!("map({}, {})", type_name(key), type_name(value)),
        Type::Type(Some(inner)) => format!("type({})", type_name(inner)),
        Type::Nullable(inner) => format!("wrapper({})", type_name(inner)),
        Type::Opaque(name, parameters) if !parameters.is_empty() => {
            let parameters: Vec<String> = parameters.iter().map(type_name).collect();
            format!("{name}({})", parameters.join(", "))
        }
        other => other.runtime_name().to_owned(),
    }
}

fn declare_request(env: Env) -> Env {
    let text = |name| (name, Type::String);
    let texts = || Type::list(Type::String);
    let kind = || Type::object("kubernetes.GroupVersionKind");
    let resource = || Type::object("kubernetes.GroupVersionResource");
    env.object("kubernetes.GroupVersionKind", ["group", "version", "kind"].map(text))
        .object("kubernetes.GroupVersionResource", ["group", "version", "resource"].map(text))
        .object(
            "kubernetes.UserInfo",
            [
                text("username"),
                text("uid"),
                ("groups", texts()),
                ("extra", Type::map(Type::String, texts())),
            ],
        )
        .object(
            "kubernetes.AdmissionRequest",
            [
                ("kind", kind()),
                ("resource", resource()),
                text("subResource"),
                ("requestKind", kind()),
                ("requestResource", resource()),
                text("requestSubResource"),
                text("name"),
                text("namespace"),
                text("operation"),
                ("userInfo", Type::object("kubernetes.UserInfo")),
                ("dryRun", Type::Bool),
                ("options", Type::Dyn),
            ],
        )
}

fn declare_namespace(env: Env) -> Env {
    let text = |name| (name, Type::String);
    let texts = || Type::list(Type::String);
    let labels = || Type::map(Type::String, Type::String);
    env.object("kubernetes.NamespaceSpec", [("finalizers", texts())])
        .object(
            "kubernetes.NamespaceCondition",
            [
                text("status"),
                text("type"),
                ("lastTransitionTime", Type::Timestamp),
                text("message"),
                text("reason"),
            ],
        )
        .object(
            "kubernetes.NamespaceStatus",
            [
                ("conditions", Type::list(Type::object("kubernetes.NamespaceCondition"))),
                text("phase"),
            ],
        )
        .object(
            "kubernetes.NamespaceMetadata",
            [
                text("name"),
                text("generateName"),
                text("namespace"),
                ("labels", labels()),
                ("annotations", labels()),
                // Upstream spells it in capitals, so that no object has it.
                text("UID"),
                ("creationTimestamp", Type::Timestamp),
                ("deletionGracePeriodSeconds", Type::Int),
                ("deletionTimestamp", Type::Timestamp),
                ("generation", Type::Int),
                text("resourceVersion"),
                ("finalizers", texts()),
            ],
        )
        .object(
            "kubernetes.Namespace",
            [
                ("metadata", Type::object("kubernetes.NamespaceMetadata")),
                ("spec", Type::object("kubernetes.NamespaceSpec")),
                ("status", Type::object("kubernetes.NamespaceStatus")),
            ],
        )
}
