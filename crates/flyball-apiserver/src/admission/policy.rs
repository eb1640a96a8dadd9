//! Admission policies in CEL: the plugins ValidatingAdmissionPolicy and MutatingAdmissionPolicy. The language and what an
//! expression evaluates to are left to `flyball_schema::policy`.
// apiserver/pkg/admission/plugin/policy

mod access;
mod authorizer;
mod index;
mod input;
mod mutating;
mod params;
mod reinvocation;
mod validating;

pub(crate) use access::PolicyAccess;
pub(crate) use authorizer::RequestAuthorizer;
pub(crate) use index::PolicyIndex;
pub(crate) use input::request_resource;
pub(crate) use mutating::MutatingAdmissionPolicy;
pub(crate) use reinvocation::PolicyReinvocation;
pub(crate) use validating::ValidatingAdmissionPolicy;

use crate::admission::Attributes;
use crate::admission::policy::index::GROUP;
use crate::registry::object;

/// Reviews of which no policy is asked, since denying them may break the cluster.
// pkg/kubeapiserver/admission/exclusion/resources.go
const EXCLUDED_GROUPS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];
/// The kinds of policies and bindings, of which no policy is asked.
// apiserver/pkg/admission/plugin/policy/generic/plugin.go, admissionResources
const POLICIES: [&str; 4] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];

/// Whether no policy is asked about a write.
fn is_excluded(attributes: &Attributes<'_>) -> bool {
    let resource = &attributes.request.kind.resource;
    let is_policy = *resource.group == *GROUP && POLICIES.contains(&&*resource.plural);
    is_policy || EXCLUDED_GROUPS.contains(&&*resource.group)
}

/// The name that a refusal shows: of an object whose name is still to be generated, what it begins with; of each object of a
/// collection that is deleted, none.
// apiserver/pkg/admission/errors.go, extractResourceName
fn shown_name<'a>(attributes: &'a Attributes<'_>) -> &'a str {
    let names = [
        attributes.request_name(),
        object::text(&attributes.object, "generateName"),
        "Unknown",
    ];
    names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
}
