//! ValidatingAdmissionPolicy: refuses writes, or warns of them, by the validations of policies.
// apiserver/pkg/admission/plugin/policy/validating/dispatcher.go

use crate::admission::Attributes;
use crate::admission::chain::Plugin;
use crate::admission::matching::Match;
use crate::admission::policy::index::{Binding, Hook, Policy};
use crate::admission::policy::input::{Surroundings, Versioned};
use crate::admission::policy::{is_excluded, params, shown_name};
use crate::status::{Cause, Reason, Result, Status};
use flyball_schema::policy::{FailurePolicy, Outcome, ValidatingPolicy};
use futures::future::{BoxFuture, FutureExt};
use http::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;

/// The audit annotation of validations that fail under the action `Audit`.
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";

/// The plugin.
pub(crate) struct ValidatingAdmissionPolicy;

impl Plugin for ValidatingAdmissionPolicy {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let loaded = attributes.request.server.policies().read_loaded();
        loaded.is_none_or(|policies| !policies.validating.active().is_empty()) && !is_excluded(attributes)
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let request = attributes.request;
            let hooks = request.server.policies().read(request.store()).await?.validating.active();
            let mut findings = Findings::default();
            for hook in hooks.iter() {
                validate(attributes, hook, &mut findings).await?;
            }
            findings.report(attributes)
        }
        .boxed()
    }
}

/// What policies have found so far.
#[derive(Default)]
struct Findings {
    /// The first refusal: its text, and its reason, if the validation names one.
    refusal: Option<(String, Option<String>)>,
    annotations: BTreeMap<String, String>,
}

async fn validate(attributes: &Attributes<'_>, hook: &Hook<ValidatingPolicy>, findings: &mut Findings) -> Result<()> {
    let policy = &hook.policy;
    let matched = match policy.criteria.matches(attributes).await {
        Ok(None) => return Ok(()),
        Ok(Some(matched)) => matched,
        Err(status) => {
            findings.misconfigured(policy, None, &status.message);
            return Ok(());
        }
    };
    let kind = match params::resolve(attributes, policy.param_kind.as_ref()) {
        Ok(kind) => kind,
        Err(why) => {
            findings.misconfigured(policy, None, &why);
            return Ok(());
        }
    };
    let mut collected = BTreeMap::new();
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
            Ok(params) => {
                let outcomes = evaluate(attributes, policy, &matched, &params).await?;
                findings.take(attributes, policy, binding, outcomes, &mut collected);
            }
            Err(why) => findings.misconfigured(policy, Some(binding), &why),
        }
    }
    for (key, values) in collected {
        findings.annotations.insert(format!("{}/{key}", policy.name), values.join(", "));
    }
    Ok(())
}

async fn evaluate(
    attributes: &Attributes<'_>,
    policy: &Policy<ValidatingPolicy>,
    matched: &Match,
    params: &[serde_json::Value],
) -> Result<Vec<Outcome>> {
    let surroundings = Surroundings::read(attributes).await?;
    let versioned = Versioned::new(attributes, &attributes.object, matched).await?;
    let outcome = |params| {
        let conditions = versioned.conditions(&surroundings, params);
        policy.compiled().evaluate(&conditions, &versioned.input(&surroundings, params))
    };
    Ok(params.iter().map(outcome).collect())
}

impl Findings {
    fn refuse(&mut self, policy: &str, binding: Option<&Binding>, why: &str, reason: Option<String>) {
        self.refusal.get_or_insert_with(|| {
            let message = match binding {
                Some(binding) => format!(
                    "ValidatingAdmissionPolicy '{policy}' with binding '{}' denied request: {why}",
                    binding.name
                ),
                None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {why}"),
            };
            (message, reason)
        });
    }

    fn misconfigured(&mut self, policy: &Policy<ValidatingPolicy>, binding: Option<&Binding>, why: &str) {
        if policy.failure_policy == FailurePolicy::Fail {
            let what = if binding.is_some() { "binding" } else { "policy" };
            self.refuse(&policy.name, binding, &format!("failed to configure {what}: {why}"), None);
        }
    }

    /// Does what a binding asks for with the outcomes of a policy, one for each parameter.
    fn take(
        &mut self,
        attributes: &Attributes<'_>,
        policy: &Policy<ValidatingPolicy>,
        binding: &Binding,
        outcomes: Vec<Outcome>,
        collected: &mut BTreeMap<String, Vec<String>>,
    ) {
        for outcome in outcomes {
            for denial in outcome.denials {
                for action in &binding.actions {
                    match action.as_str() {
                        "Deny" => self.refuse(&policy.name, Some(binding), &denial.message, denial.reason.clone()),
                        "Audit" => {
                            let failure = Failure::of(policy, binding, denial.index, &denial.message);
                            self.annotations.insert(FAILURE_ANNOTATION.to_owned(), failure);
                        }
                        _ => attributes.request.warn(format!(
                            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                            policy.name, binding.name, denial.message
                        )),
                    }
                }
            }
            for (key, value) in outcome.annotations {
                let values = collected.entry(key).or_default();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            outcome
                .errors
                .iter()
                .for_each(|error| self.refuse(&policy.name, Some(binding), error, None));
        }
    }

    fn report(self, attributes: &Attributes<'_>) -> Result<()> {
        for (key, value) in self.annotations {
            attributes.request.annotate(key, value);
        }
        let Some((message, reason)) = self.refusal else {
            return Ok(());
        };
        let mut status = Status::forbidden(&attributes.request.kind.resource, shown_name(attributes), &message);
        let (reason, code) = match reason.as_deref() {
            Some("Forbidden") => (Reason::Forbidden, StatusCode::FORBIDDEN),
            Some("RequestEntityTooLarge") => (Reason::RequestEntityTooLarge, StatusCode::PAYLOAD_TOO_LARGE),
            _ => (Reason::Invalid, StatusCode::UNPROCESSABLE_ENTITY),
        };
        status.reason = Some(reason);
        status.code = code.as_u16();
        let cause = Cause { message, ..Cause::default() };
        status.details.get_or_insert_default().causes.push(cause);
        Err(status)
    }
}

/// The value of the audit annotation.
// ValidationFailureValue
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    message: &'a str,
    policy: &'a str,
    binding: &'a str,
    expression_index: usize,
    validation_actions: &'a [String],
}

impl Failure<'_> {
    fn of(policy: &Policy<ValidatingPolicy>, binding: &Binding, expression_index: usize, message: &str) -> String {
        let failure = Failure {
            message,
            policy: &policy.name,
            binding: &binding.name,
            expression_index,
            validation_actions: &binding.actions,
        };
        serde_json::to_string(&[failure]).expect("texts and numbers are JSON")
    }
}
