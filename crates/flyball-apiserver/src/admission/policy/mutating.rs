//! MutatingAdmissionPolicy: changes objects by the patches that policies make.
// apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go and generic/policy_dispatcher.go

use crate::admission::chain::Plugin;
use crate::admission::matching::Match;
use crate::admission::policy::index::{Binding, Hook, Policy};
use crate::admission::policy::input::{Surroundings, Versioned};
use crate::admission::policy::reinvocation::InvocationKey;
use crate::admission::policy::{is_excluded, params, shown_name};
use crate::admission::{Attributes, Operation};
use crate::endpoints::{Subresource, decode};
use crate::registry::{Kind, object, strategy};
use crate::status::{Cause, Reason, Result, Status};
use flyball_schema::json_patch::{JsonPatch, PatchError};
use flyball_schema::policy::{FailurePolicy, MutatingPolicy, PatchType};
use flyball_schema::schema::Node;
use flyball_schema::{go_text, kinds, managed_fields};
use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;
use std::sync::Arc;

/// The plugin.
pub(crate) struct MutatingAdmissionPolicy;

impl Plugin for MutatingAdmissionPolicy {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let loaded = attributes.request.server.policies().read_loaded();
        let has_policies = loaded.is_none_or(|policies| !policies.mutating.active().is_empty());
        has_policies && attributes.operation != Operation::Delete && !is_excluded(attributes)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let request = attributes.request;
            let hooks = request.server.policies().read(request.store()).await?.mutating.active();
            let mut errors = Vec::new();
            let mut invocations = Vec::new();
            for hook in hooks.iter() {
                invocations.extend(select(attributes, hook, &mut errors).await);
            }
            if !invocations.is_empty() {
                mutate(attributes, &invocations, &mut errors).await?;
            }
            report(attributes, errors)
        }
        .boxed()
    }
}

/// A policy with one of its bindings and one of its parameters.
struct Invocation<'a> {
    policy: &'a Policy<MutatingPolicy>,
    binding: &'a Binding,
    matched: Match,
    params: Value,
}

/// Why a policy did not decide about a write.
struct PolicyError {
    message: String,
    reason: Option<Reason>,
    failure_policy: FailurePolicy,
}

impl PolicyError {
    fn new(
        policy: &Policy<MutatingPolicy>,
        binding: Option<&Binding>,
        why: &str,
        reason: Option<Reason>,
    ) -> PolicyError {
        let name = &policy.name;
        let message = match binding {
            Some(binding) => format!("policy '{name}' with binding '{}' denied request: {why}", binding.name),
            None => format!("policy {} denied request: {why}", go_text::quote(name)),
        };
        PolicyError { message, reason, failure_policy: policy.failure_policy }
    }

    fn misconfigured(policy: &Policy<MutatingPolicy>, binding: Option<&Binding>, why: &str) -> PolicyError {
        let what = if binding.is_some() { "binding" } else { "policy" };
        PolicyError::new(policy, binding, &format!("failed to configure {what}: {why}"), None)
    }
}

/// The invocations of a policy for a write.
async fn select<'a>(
    attributes: &Attributes<'_>,
    hook: &'a Hook<MutatingPolicy>,
    errors: &mut Vec<PolicyError>,
) -> Vec<Invocation<'a>> {
    let policy = &*hook.policy;
    let resolved = match policy.criteria.matches(attributes).await {
        Ok(None) => return Vec::new(),
        Ok(Some(matched)) => params::resolve(attributes, policy.param_kind.as_ref()).map(|kind| (matched, kind)),
        Err(status) => Err(status.message),
    };
    let (matched, kind) = match resolved {
        Ok(resolved) => resolved,
        Err(why) => {
            errors.push(PolicyError::misconfigured(policy, None, &why));
            return Vec::new();
        }
    };
    let mut invocations = Vec::new();
    for binding in &hook.bindings {
        let applies = match &binding.criteria {
            Some(criteria) => criteria.matches(attributes).await.map(|found| found.is_some()),
            None => Ok(true),
        };
        let params = match applies {
            Ok(false) => continue,
            Ok(true) => params::collect(attributes, kind.as_deref(), binding.param_ref.as_ref()).await,
            Err(status) => Err(status.message),
        };
        match params {
            Ok(params) => invocations.extend(params.into_iter().map(|params| Invocation {
                policy,
                binding,
                matched: matched.clone(),
                params: untyped(kind.as_deref(), params),
            })),
            Err(why) => errors.push(PolicyError::misconfigured(policy, Some(binding), &why)),
        }
    }
    invocations
}

/// A parameter as expressions of mutations see it: without `apiVersion` and `kind` if that is built in.
fn untyped(kind: Option<&Kind>, mut params: Value) -> Value {
    if kind.is_some_and(|kind| kind.custom.is_none())
        && let Some(members) = params.as_object_mut()
    {
        ["apiVersion", "kind"].iter().for_each(|field| drop(members.remove(*field)));
    }
    params
}

/// Runs the invocations in their order, each on what those before it have made.
async fn mutate(
    attributes: &mut Attributes<'_>,
    invocations: &[Invocation<'_>],
    errors: &mut Vec<PolicyError>,
) -> Result<()> {
    let surroundings = Surroundings::read(attributes).await?;
    let is_second_round = attributes.reinvocation.is_second_round;
    if is_second_round && attributes.reinvocation.policies.is_changed(&attributes.object) {
        attributes.reinvocation.policies.changed();
    }
    for invocation in invocations {
        let Some(mutated) = invoke(attributes, &surroundings, invocation, errors).await? else {
            continue;
        };
        let reinvocation = &mut attributes.reinvocation;
        if let Some(object) = mutated {
            reinvocation.policies.changed();
            reinvocation.is_required = true;
            attributes.object = object;
        }
        if invocation.policy.compiled().is_reinvocable() {
            attributes.reinvocation.policies.invoked(invocation.key());
        }
    }
    let output = std::mem::take(&mut attributes.object);
    attributes.reinvocation.policies.set_output(&output);
    attributes.object = output;
    Ok(())
}

/// Runs one invocation: none if it is not about the write, else the new object, if a mutation was applied.
async fn invoke(
    attributes: &Attributes<'_>,
    surroundings: &Surroundings,
    invocation: &Invocation<'_>,
    errors: &mut Vec<PolicyError>,
) -> Result<Option<Option<Value>>> {
    let Invocation { policy, binding, matched, params } = invocation;
    let compiled = policy.compiled();
    let mut failed = |why: &str| errors.push(PolicyError::new(policy, Some(binding), why, Some(Reason::Invalid)));
    let mut versioned = Versioned::new(attributes, &attributes.object, matched).await?;
    match compiled.match_input(&versioned.conditions(surroundings, params)) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(why) => {
            failed(&why);
            return Ok(None);
        }
    }
    let reinvocation = &attributes.reinvocation;
    if reinvocation.is_second_round && !reinvocation.policies.is_repeated(&invocation.key()) {
        return Ok(None);
    }
    let mut is_mutated = false;
    for index in 0..compiled.len() {
        let patch = compiled.patch(index, &versioned.input(surroundings, params));
        let patched = match patch {
            Ok((patch_type, patch)) => apply(attributes, matched, versioned.object(), patch_type, patch)?,
            Err(why) => Err(why),
        };
        match patched {
            Ok(object) => {
                is_mutated = true;
                versioned.set_object(object);
            }
            Err(why) => failed(&why),
        }
    }
    if !is_mutated {
        return Ok(Some(None));
    }
    let object = versioned.into_object();
    match Arc::ptr_eq(&attributes.request.kind, &matched.kind) || !attributes.has_own_object() {
        true => Ok(Some(Some(object))),
        false => Ok(Some(Some(matched.kind.convert_to(&attributes.request.kind, object).await?))),
    }
}

impl Invocation<'_> {
    fn key(&self) -> InvocationKey {
        let params = |field: &str| object::text(&self.params, field).to_owned();
        (self.policy.name.clone(), self.binding.name.clone(), params("namespace"), params("name"))
    }
}

/// Applies a patch; the inner error is one of the policy.
fn apply(
    attributes: &Attributes<'_>,
    matched: &Match,
    object: &Value,
    patch_type: PatchType,
    patch: Value,
) -> Result<Result<Value, String>> {
    match patch_type {
        PatchType::ApplyConfiguration => Ok(merge(attributes, matched, object, patch)),
        PatchType::JsonPatch => json_patch(attributes, matched, object, patch),
    }
}

fn merge(attributes: &Attributes<'_>, matched: &Match, object: &Value, mut patch: Value) -> Result<Value, String> {
    for field in ["apiVersion", "kind"] {
        patch[field] = object[field].clone();
    }
    let merged = match object_type(attributes, matched, object) {
        // As upstream: the document of its group and version does not describe the object of these subresources.
        Some(_) if matches!(attributes.subresource, Subresource::Scale | Subresource::Eviction) => None,
        None => None,
        Some(node) => Some(managed_fields::merge_configuration(node, object, &patch)),
    };
    let untyped = || {
        let name = ["apiVersion", "kind"].map(|field| go_text::plain(&object[field])).join(", Kind=");
        Err(format!(
            "failed to convert patch object to typed object: no corresponding type for {name}"
        ))
    };
    let merged = merged.unwrap_or_else(untyped).map_err(|why| format!("error applying patch: {why}"))?;
    restore(attributes, matched, merged).map(|(object, _)| object)
}

fn json_patch(
    attributes: &Attributes<'_>,
    matched: &Match,
    object: &Value,
    patch: Value,
) -> Result<Result<Value, String>> {
    let mut patched = object.clone();
    match JsonPatch::of(patch).and_then(|patch| patch.apply(&mut patched)) {
        Ok(()) => {}
        Err(PatchError::TestFailed(_)) => return Ok(Ok(object.clone())),
        Err(error) => return Ok(Err(format!("JSON Patch: {error}"))),
    }
    let (restored, unknown) = restore(attributes, matched, patched).map_err(Status::internal)?;
    match unknown.is_empty() || matched.kind.custom.is_some() {
        true => Ok(Ok(restored)),
        false => Err(Status::internal(format!("strict decoding error: {}", unknown.join(", ")))),
    }
}

/// The type of the object, which is a built-in one if it is that of a subresource.
fn object_type<'a>(attributes: &Attributes<'_>, matched: &'a Match, object: &Value) -> Option<Node<'a>> {
    if attributes.has_own_object() {
        return matched.kind.node();
    }
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    kinds::builtin().type_of(text("apiVersion"), text("kind"))
}

/// Makes a patched object one of its kind again: decoded and defaulted. Returns what is unknown in it, too.
fn restore(attributes: &Attributes<'_>, matched: &Match, mut object: Value) -> Result<(Value, Vec<String>), String> {
    if !attributes.has_own_object() {
        let Some(node) = object_type(attributes, matched, &object) else {
            return Err(format!("no kind is registered for {}", go_text::json(&object["kind"])));
        };
        let unknown = flyball_schema::decode::coerce(&mut object, node).map_err(|error| error.to_string())?;
        return Ok((object, unknown));
    }
    let (mut object, unknown) = decode::value(&matched.kind, object)?;
    strategy::default(&matched.kind, &mut object);
    Ok((object, unknown))
}

/// Refuses the write if a policy failed whose failures count.
fn report(attributes: &Attributes<'_>, errors: Vec<PolicyError>) -> Result<()> {
    let errors: Vec<PolicyError> =
        errors.into_iter().filter(|error| error.failure_policy == FailurePolicy::Fail).collect();
    let Some(first) = errors.first() else { return Ok(()) };
    let mut status = Status::forbidden(&attributes.request.kind.resource, shown_name(attributes), "");
    status.message.clone_from(&first.message);
    status.reason = first.reason.clone().or(status.reason);
    let causes = errors.into_iter().map(|error| Cause { message: error.message, ..Cause::default() });
    status.details.get_or_insert_default().causes.extend(causes);
    Err(status)
}
