//! Validation of selectors and of the pod templates that they must match.
// pkg/apis/apps/validation/validation.go and pkg/apis/core/validation/validation.go, ValidatePodTemplateSpec

use crate::builtin::pod::{Whose, validate_spec};
use crate::builtin::rules::{annotations, labels, selector};
use crate::builtin::spot::{Found, Spot};
use crate::selector::LabelSelector;

/// Whether a selector is valid; an absent selector selects nothing.
pub(in crate::builtin) fn has_meaning(spot: &Spot<'_>) -> bool {
    let mut found = Found::new();
    selector(spot, &mut found);
    found.is_empty()
}

/// Requires a selector that is not empty; `what` is the word in upstream's message.
pub(super) fn required_selector(spec: &Spot<'_>, what: &str, found: &mut Found) {
    let spot = spec.field("selector");
    if !spot.is_set() {
        return spot.required(found, "");
    }
    selector(&spot, found);
    not_empty(&spot, what, found);
}

pub(super) fn not_empty(selector: &Spot<'_>, what: &str, found: &mut Found) {
    if selector.is_set() && selector.field("matchLabels").len() + selector.field("matchExpressions").len() == 0 {
        selector.invalid(found, &format!("empty selector is invalid for {what}"));
    }
}

/// The selector must match the labels of the template.
pub(in crate::builtin) fn selected(spec: &Spot<'_>, found: &mut Found) {
    let (spot, template) = (spec.field("selector"), spec.field("template"));
    let metadata = template.field("metadata");
    let its_labels = metadata.field("labels");
    let matches = spot.is_set()
        && LabelSelector::from_value(spot.value).is_none_or(|selector| selector.matches(its_labels.value.as_object()));
    if !matches {
        its_labels.invalid(found, "`selector` does not match template `labels`");
    }
}

/// The template itself. Upstream leaves `metadata` out of its paths.
pub(in crate::builtin) fn validate(template: &Spot<'_>, found: &mut Found) {
    validate_metadata(template, found);
    let spec = template.field("spec");
    validate_spec(&spec, Whose::Template, found);
    if spec.field("ephemeralContainers").len() > 0 {
        spec.field("ephemeralContainers")
            .forbidden(found, "ephemeral containers not allowed in pod template");
    }
}

/// Requires `restartPolicy: Always` and no active deadline; `kind` is the word in upstream's message.
pub(super) fn runs_forever(template: &Spot<'_>, kind: &str, found: &mut Found) {
    let spec = template.field("spec");
    if spec.field("restartPolicy").text() != "Always" {
        spec.field("restartPolicy").unsupported(found, &["Always"]);
    }
    if spec.field("activeDeadlineSeconds").is_set() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        spec.field("activeDeadlineSeconds").forbidden(found, &why);
    }
}

/// A template's labels and annotations.
pub(super) fn validate_metadata(template: &Spot<'_>, found: &mut Found) {
    let metadata = template.field("metadata");
    labels(&template.with("labels", metadata.field("labels").value), found);
    annotations(&template.with("annotations", metadata.field("annotations").value), found);
}
