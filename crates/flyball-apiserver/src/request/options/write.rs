//! The options of a create, an update or a patch.

use crate::request::context::ResourceRequest;
use crate::request::info::Query;
use crate::request::options::{check_dry_run, refuse};
use crate::status::{Result, Status};
use flyball_schema::go_text;
use flyball_schema::metadata::validate_field_manager;
use flyball_schema::violation::Violation;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, USER_AGENT};
use serde_json::{Value, json};

/// The options of a write.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Whether everything but the commit is to be done.
    pub dry_run: bool,
    /// The treatment of unknown and duplicate fields.
    pub field_validation: FieldValidation,
    /// The field manager.
    pub manager: String,
    /// Whether an apply takes ownership of fields of other managers.
    pub force: bool,
    /// The query parameters `fieldManager` and `fieldValidation`, as they were given.
    given: [String; 2],
}

/// The treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped silently.
    Ignore,
    /// They are dropped, and a Warning header names each.
    Warn,
    /// They fail the request.
    Strict,
}

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Strategic merge; built-in kinds only.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// Reads the Content-Type of a PATCH.
    pub fn read(request: &ResourceRequest) -> Result<PatchType> {
        let header = request
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        match header.split(';').next().unwrap_or_default() {
            "application/json-patch+json" => Ok(PatchType::Json),
            "application/merge-patch+json" => Ok(PatchType::Merge),
            "application/apply-patch+yaml" => Ok(PatchType::Apply),
            "application/strategic-merge-patch+json" if request.kind.custom.is_none() => Ok(PatchType::Strategic),
            _ if request.kind.custom.is_some() => Err(unsupported()),
            _ => Err(Status::unrouted_media_type()),
        }
    }
}

fn unsupported() -> Status {
    Status::unsupported_media_type(&[
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ])
}

impl WriteOptions {
    /// The options of a POST.
    pub fn create(query: &Query, headers: &HeaderMap) -> Result<WriteOptions> {
        WriteOptions::read("CreateOptions", query, headers, Vec::new())
    }

    /// The options of a PUT.
    pub fn update(query: &Query, headers: &HeaderMap) -> Result<WriteOptions> {
        WriteOptions::read("UpdateOptions", query, headers, Vec::new())
    }

    /// The options of a PATCH.
    pub fn patch(query: &Query, headers: &HeaderMap, patch: PatchType) -> Result<WriteOptions> {
        let mut violations = Vec::new();
        if patch == PatchType::Apply && query.get("fieldManager").is_none() {
            violations.push(Violation::required("fieldManager", "is required for apply patch"));
        }
        if patch != PatchType::Apply && query.all("force").next().is_some() {
            violations.push(Violation::forbidden("force", "may not be specified for non-apply patch"));
        }
        WriteOptions::read("PatchOptions", query, headers, violations)
    }

    // apimachinery/pkg/apis/meta/v1/validation/validation.go
    fn read(kind: &str, query: &Query, headers: &HeaderMap, mut violations: Vec<Violation>) -> Result<WriteOptions> {
        let manager = query.get("fieldManager").unwrap_or_default();
        violations.extend(validate_field_manager(manager, "fieldManager"));
        let dry_run: Vec<String> = query.all("dryRun").map(str::to_owned).collect();
        violations.extend(check_dry_run(&dry_run));
        let field_validation = match query.get("fieldValidation") {
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some("Warn") | None => FieldValidation::Warn,
            Some(other) => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                violations.push(Violation::not_supported("fieldValidation", other, &supported));
                FieldValidation::Warn
            }
        };
        refuse(kind, violations)?;
        let manager = match manager {
            "" => manager_of(headers),
            _ => manager.to_owned(),
        };
        let force = query.flag("force");
        let given = ["fieldManager", "fieldValidation"].map(|name| query.get(name).unwrap_or_default().to_owned());
        Ok(WriteOptions {
            dry_run: !dry_run.is_empty(),
            field_validation,
            manager,
            force,
            given,
        })
    }

    /// The fields of the options that were given, as CreateOptions and UpdateOptions have them.
    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({});
        if self.dry_run {
            value["dryRun"] = json!(["All"]);
        }
        for (field, text) in ["fieldManager", "fieldValidation"].into_iter().zip(&self.given) {
            if !text.is_empty() {
                value[field] = text.as_str().into();
            }
        }
        value
    }
}

/// The default field manager: the User-Agent up to the first `/`, at most 128 bytes.
fn manager_of(headers: &HeaderMap) -> String {
    let agent = headers
        .get(USER_AGENT)
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .unwrap_or_default();
    let mut manager = String::new();
    let name = agent.split('/').next().unwrap_or_default();
    for character in name.chars().filter(|character| go_text::is_print(*character)) {
        if manager.len() + character.len_utf8() > 128 {
            break;
        }
        manager.push(character);
    }
    manager
}
