//! How the API server learns of an operator's webhooks: their names and paths, the two configurations, and the conversion of
//! its definitions. All of it is derived from the same declarations.

use crate::Operator;
use crate::declare::operator::is_label;
use crate::webhook::admission::{AdmissionSpec, Purpose};
use crate::webhook::endpoint::{CONVERT, Endpoint};
use k8s_openapi::{
    ByteString,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceConversion, CustomResourceDefinition},
};
use serde_json::{Value, json};
use std::collections::HashSet;

const API_VERSION: &str = "admissionregistration.k8s.io/v1";

impl AdmissionSpec {
    fn verb(&self) -> &'static str {
        match self.purpose {
            Purpose::Validate => "validate",
            Purpose::Default => "mutate",
        }
    }

    /// What tells it from others with the same purpose.
    pub(crate) fn short_name(&self) -> String {
        match (&self.named, &self.kind) {
            (Some(name), _) => name.clone(),
            (None, Some(kind)) => kind.resource.plural.clone(),
            (None, None) => String::new(),
        }
    }

    /// Its name, which users see in a refusal: `validate-caches.example.dev`.
    pub(crate) fn name(&self, operator: &str) -> String {
        let group = self.kind.as_ref().map_or("", |kind| &*kind.resource.group);
        let (verb, name) = (self.verb(), self.short_name());
        match group.contains('.') {
            true => format!("{verb}-{name}.{group}"),
            false => format!("{verb}-{name}.{operator}.flyball.dev"),
        }
    }

    /// Its path, as controller-runtime has it: `/validate-example-dev-v1-cache`.
    pub(crate) fn path(&self) -> String {
        let verb = self.verb();
        let named = self.named.as_ref().map(|name| format!("-{name}")).unwrap_or_default();
        match &self.kind {
            Some(kind) => {
                let resource = &kind.resource;
                let group = resource.group.replace('.', "-");
                format!("/{verb}-{group}-{}-{}{named}", resource.version, resource.kind.to_lowercase())
            }
            None => format!("/{verb}{named}"),
        }
    }
}

/// Webhooks that the API server would refuse, or could not tell apart.
pub(crate) fn mistakes(operator: &Operator) -> Vec<String> {
    let mut mistakes = Vec::new();
    let mut names = HashSet::new();
    for spec in operator.admissions() {
        let name = spec.name(operator.name());
        mistakes.extend(spec.rule.mistakes().into_iter().map(|mistake| format!("webhook {name} {mistake}")));
        if spec.named.as_ref().is_some_and(|name| !is_label(name)) {
            mistakes.push(format!("webhook {name}: its name must be lower-case letters, digits and dashes"));
        }
        if !names.insert(name.clone()) || !names.insert(spec.path()) {
            mistakes.push(format!("two webhooks are called {name}: name one with `.named(…)`"));
        }
    }
    mistakes
}

/// Whether an operator has anything for the API server to call.
pub(crate) fn has_webhooks(operator: &Operator) -> bool {
    !operator.admissions().is_empty() || !operator.conversions().is_empty()
}

/// The kinds of configuration, each with its plural.
pub(crate) const CONFIGURATIONS: [(Purpose, &str, &str); 2] = [
    (Purpose::Default, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    (Purpose::Validate, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
];

/// The configuration of an operator's webhooks with a purpose, if it has any.
pub(crate) fn configuration(
    operator: &Operator,
    purpose: Purpose,
    endpoint: &Endpoint,
    ca_bundle: Option<&str>,
) -> Option<Value> {
    let bundle = ca_bundle.map(bundle_value);
    let webhooks: Vec<_> = operator
        .admissions()
        .iter()
        .filter(|spec| spec.purpose == purpose)
        .map(|spec| {
            let mut webhook = spec.rule.to_value(endpoint.own_namespace());
            webhook["name"] = spec.name(operator.name()).into();
            webhook["clientConfig"] = endpoint.client_config(&spec.path(), bundle.as_ref());
            if purpose == Purpose::Default {
                webhook["reinvocationPolicy"] = spec.rule.reinvocation_policy().into();
            }
            webhook
        })
        .collect();
    let (_, kind, _) = CONFIGURATIONS.iter().find(|(of, ..)| *of == purpose)?;
    let metadata = json!({ "name": operator.name(), "labels": { "app.kubernetes.io/name": operator.name() } });
    let configuration = json!({ "apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "webhooks": webhooks });
    (!webhooks.is_empty()).then_some(configuration)
}

/// Both configurations, without those that would be empty.
pub(crate) fn configurations(operator: &Operator, endpoint: &Endpoint, ca_bundle: Option<&str>) -> Vec<Value> {
    let configurations = CONFIGURATIONS.iter();
    configurations
        .filter_map(|(purpose, ..)| configuration(operator, *purpose, endpoint, ca_bundle))
        .collect()
}

/// Has a definition converted by the operator, if it converts its kind.
pub(crate) fn set_conversion(operator: &Operator, crd: &mut CustomResourceDefinition, endpoint: &Endpoint) {
    if operator.conversions().iter().any(|conversion| conversion.is_of(crd)) {
        let conversion = conversion(endpoint, None);
        crd.spec.conversion =
            Some(serde_json::from_value::<CustomResourceConversion>(conversion).expect("it is one, see below"));
    }
}

/// `spec.conversion` of a definition.
pub(crate) fn conversion(endpoint: &Endpoint, ca_bundle: Option<&str>) -> Value {
    let client = endpoint.client_config(CONVERT, ca_bundle.map(bundle_value).as_ref());
    json!({ "strategy": "Webhook", "webhook": { "conversionReviewVersions": ["v1"], "clientConfig": client } })
}

/// A bundle in PEM as a field of bytes.
fn bundle_value(pem: &str) -> Value {
    json!(ByteString(pem.as_bytes().to_vec()))
}
