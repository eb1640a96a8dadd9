//! The options of a delete, from its body or, if there is none, from the query.

use crate::encoding::negotiate::{self, Encoding};
use crate::request::context::ResourceRequest;
use crate::request::info::Query;
use crate::request::options::{check_dry_run, integer, refuse};
use crate::status::{Result, Status};
use flyball_schema::decode::Document;
use flyball_schema::kinds;
use flyball_schema::protobuf::{self, Envelope};
use flyball_schema::violation::Violation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The options of a delete.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteOptions {
    /// The grace period of a pod, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i64>,
    /// The conditions on the object without which it is not deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Preconditions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    orphan_dependents: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    propagation_policy: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dry_run: Vec<String>,
}

/// The conditions on an object without which it is not deleted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preconditions {
    /// The object's uid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The object's resource version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}

/// The deletion of an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are kept, and their owner references removed.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

impl DeleteOptions {
    /// Reads the options: from the body if there is one, else from the query.
    pub(crate) fn read(request: &ResourceRequest) -> Result<DeleteOptions> {
        let options = match request.body.is_empty() {
            true => DeleteOptions::of_query(&request.info.query)?,
            false => {
                let encoding = negotiate::body(&request.headers)?;
                DeleteOptions::of_body(encoding, &request.body)?
            }
        };
        refuse("DeleteOptions", options.check())?;
        Ok(options)
    }

    fn of_body(encoding: Encoding, body: &[u8]) -> Result<DeleteOptions> {
        let refused = |error: &dyn std::fmt::Display| Status::bad_request(error.to_string());
        let node = kinds::builtin().schema("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
        let node = node.expect("DeleteOptions are in the table");
        let value = match encoding {
            Encoding::Protobuf => {
                let envelope = Envelope::read(body).map_err(|error| refused(&error))?;
                check_kind(&envelope.kind, &envelope.api_version)?;
                protobuf::decode(envelope.raw, node).map_err(|error| refused(&error))?
            }
            Encoding::Json | Encoding::Yaml => {
                let document = match encoding {
                    Encoding::Yaml => Document::yaml(body),
                    _ => Document::json(body),
                };
                let document = document.map_err(|error| refused(&error))?;
                let meta = document.type_meta().map_err(|error| refused(&error))?;
                check_kind(&meta.kind, &meta.api_version)?;
                document.typed(node).map_err(|error| refused(&error))?.value
            }
        };
        serde_json::from_value(value).map_err(|error| refused(&error))
    }

    /// The options within an eviction.
    pub fn of_value(value: &Value, dry_run: bool) -> Result<DeleteOptions> {
        let mut options: DeleteOptions = match value {
            Value::Null => DeleteOptions::default(),
            value => serde_json::from_value(value.clone()).map_err(|error| Status::bad_request(error.to_string()))?,
        };
        if dry_run {
            options.dry_run = vec!["All".to_owned()];
        }
        refuse("DeleteOptions", options.check())?;
        Ok(options)
    }

    fn of_query(query: &Query) -> Result<DeleteOptions> {
        Ok(DeleteOptions {
            grace_period_seconds: integer(query, "gracePeriodSeconds")?,
            orphan_dependents: query.all("orphanDependents").next().map(|_| query.flag("orphanDependents")),
            propagation_policy: query.get("propagationPolicy").map(str::to_owned),
            dry_run: query.all("dryRun").map(str::to_owned).collect(),
            ..DeleteOptions::default()
        })
    }

    // apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidateDeleteOptions
    fn check(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        if let Some(policy) = self.propagation_policy.as_deref() {
            if self.orphan_dependents.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                violations.push(Violation::invalid("propagationPolicy", policy, why));
            }
            if self.propagation().is_none() {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                violations.push(Violation::not_supported("propagationPolicy", policy, &supported));
            }
        }
        violations.extend(check_dry_run(&self.dry_run));
        violations
    }

    /// The options as audit events show them.
    pub(crate) fn audited(&self) -> Value {
        let mut options = self.to_value();
        options["kind"] = "DeleteOptions".into();
        options["apiVersion"] = "meta.k8s.io/v1".into();
        options
    }

    /// The fields of the options that were given.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Whether the object has to be of a certain resource version.
    pub fn expects_version(&self) -> bool {
        self.preconditions.as_ref().is_some_and(|it| it.resource_version.is_some())
    }

    /// The same options for a later state of the object that the server itself has written.
    pub fn expecting(&self, revision: u64) -> DeleteOptions {
        let mut options = self.clone();
        if let Some(version) = options.preconditions.as_mut().and_then(|it| it.resource_version.as_mut()) {
            *version = revision.to_string();
        }
        options
    }

    /// Whether everything but the deletion is to be done.
    pub fn dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    /// The deletion of dependents; none if the kind's default applies.
    pub fn propagation(&self) -> Option<Propagation> {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            _ => None,
        }
    }

    /// Whether `orphanDependents=false` is set: a deletion that is not finished is then answered with 202.
    pub fn says_accepted(&self) -> bool {
        self.orphan_dependents == Some(false)
    }
}

fn check_kind(kind: &str, api_version: &str) -> Result<()> {
    match kind {
        "" | "DeleteOptions" => Ok(()),
        _ => Err(Status::bad_request(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ))),
    }
}
