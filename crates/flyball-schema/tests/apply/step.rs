//! One step of a sequence: a write, and what kube-apiserver made of it.

use crate::kind::Kind;
use crate::object::{at, difference, fill, remove, restore};
use crate::{items, text};
use flyball_schema::managed_fields::{self, ApplyError, Conflict, Request};
use flyball_schema::{merge_patch, validate};
use serde_json::{Value, json};

pub struct Step<'a> {
    document: &'a Value,
    sequence: &'a Value,
    step: &'a Value,
    now: String,
}

impl<'a> Step<'a> {
    pub fn new(document: &'a Value, sequence: &'a Value, step: &'a Value, number: usize) -> Step<'a> {
        Step { document, sequence, step, now: time(&json!(number)) }
    }

    /// Does the write and compares.
    pub fn check(&self, kind: &Kind, live: Option<&Value>) -> Result<(), String> {
        let mut live = live.cloned();
        if let Some(live) = &mut live {
            live["apiVersion"] = self.api_version().into();
        }
        let versions = kind.versions();
        let reset: Vec<&str> = items(&self.step["reset"]).iter().filter_map(Value::as_str).collect();
        let request = Request {
            node: kind.node(self.api_version(), text(self.sequence, "kind")),
            live: live.as_ref(),
            manager: text(self.step, "manager"),
            api_version: self.api_version(),
            kind: text(self.sequence, "kind"),
            subresource: self.step["subresource"].as_str(),
            reset: &reset,
            versions: &versions,
            now: &self.now,
        };
        match self.step.get("apply") {
            Some(config) => self.check_apply(&request, kind, &self.named(config)),
            None => self.check_update(&request, kind),
        }
    }

    fn check_apply(&self, request: &Request<'_>, kind: &Kind, config: &Value) -> Result<(), String> {
        let force = self.step["force"].as_bool().unwrap_or_default();
        match (managed_fields::apply(request, config, force), self.step.get("error")) {
            (Err(error), Some(expected)) => check_error(&error, expected),
            (Err(error), None) => Err(format!("unexpected {error:?}")),
            (Ok(Some(object)), Some(expected)) if expected["code"] == 422 => {
                check_invalid(request, kind, object, expected)
            }
            (Ok(_), Some(expected)) => Err(format!("expected {expected}")),
            (Ok(None), None) => self.check_written(request, None),
            (Ok(Some(mut object)), None) => {
                kind.complete(&mut object)?;
                self.check_object(request, kind, &object)?;
                self.check_written(request, Some(object))
            }
        }
    }

    fn check_update(&self, request: &Request<'_>, kind: &Kind) -> Result<(), String> {
        let Some(mut observed) = self.observed() else {
            return Ok(());
        };
        let mut new = match (&self.step["merge"], request.live) {
            (Value::Object(_), Some(live)) => {
                let mut new = live.clone();
                merge_patch::apply(&mut new, &self.step["merge"]);
                new
            }
            _ => self.named(self.step.get("create").unwrap_or(&self.step["update"])),
        };
        kind.decode(&mut new)?;
        remove(&mut observed, "metadata.managedFields");
        if kind.is_custom() {
            fill(&mut new["metadata"], &observed["metadata"]);
        } else {
            let unowned = [&self.document["unowned"], &self.sequence["unowned"]].into_iter().flat_map(items);
            unowned.filter_map(Value::as_str).for_each(|path| remove(&mut observed, path));
            fill(&mut new, &observed);
        }
        managed_fields::update(request, &mut new);
        self.check_written(request, Some(new))
    }

    /// Compares an applied object, but for its entries.
    fn check_object(&self, request: &Request<'_>, kind: &Kind, object: &Value) -> Result<(), String> {
        let mut object = object.clone();
        let observed = self.observed().ok_or("nothing was observed")?;
        request.reset.iter().for_each(|path| restore(&mut object, request.live, path));
        // A custom resource is defaulted already.
        let live = if kind.is_custom() {
            &observed
        } else {
            request.live.unwrap_or(&Value::Null)
        };
        if kind.is_custom() {
            fill(&mut object["metadata"], &observed["metadata"]);
        }
        difference("", &object, &observed, live).map_or(Ok(()), Err)
    }

    /// Compares entries, and whether there is anything to write.
    fn check_written(&self, request: &Request<'_>, object: Option<Value>) -> Result<(), String> {
        let observed = self.observed().ok_or("nothing was observed")?;
        let unchanged = match (object, request.live) {
            (None, _) => true,
            (Some(mut object), live) => {
                let mut others = observed.clone();
                remove(&mut others, "metadata.managedFields");
                fill(&mut object, &others);
                request
                    .reset
                    .iter()
                    .filter(|path| **path != "metadata")
                    .for_each(|path| restore(&mut object, live, path));
                let unchanged = live.is_some_and(|live| managed_fields::keep_timestamps(live, &mut object));
                let entries = |object: &Value| object["metadata"]["managedFields"].clone();
                if entries(&object) != entries(&observed) {
                    return Err(format!("entries\n  {}\nare not\n  {}", entries(&object), entries(&observed)));
                }
                unchanged
            }
        };
        let expected = self.step.get("unchanged").is_some();
        if unchanged == expected {
            Ok(())
        } else {
            Err(format!("unchanged is {unchanged}"))
        }
    }

    fn api_version(&self) -> &'a str {
        match self.step["version"].as_str() {
            Some(version) => version,
            None => text(self.sequence, "apiVersion"),
        }
    }

    /// The body of a request, with what all of them have.
    fn named(&self, body: &Value) -> Value {
        let mut named = json!({
            "apiVersion": self.api_version(), "kind": self.sequence["kind"], "metadata": {"name": "x"}
        });
        for (name, value) in body.as_object().into_iter().flatten() {
            match (name.as_str(), value.as_object()) {
                ("metadata", Some(fields)) => {
                    fields.iter().for_each(|(name, value)| named["metadata"][name] = value.clone());
                }
                _ => named[name] = value.clone(),
            }
        }
        named
    }

    /// The object that kube-apiserver stored, with its entries; none if it refused.
    pub fn observed(&self) -> Option<Value> {
        let mut object = self.step.get("object")?.clone();
        let mut entries = items(&self.step["managed"]).to_vec();
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            if let Some(step) = entry.get("time") {
                entry.insert("time".into(), time(step).into());
            }
            let fields = entry.remove("fields").unwrap_or_default();
            entry.insert("fieldsV1".into(), fields);
            entry.insert("fieldsType".into(), "FieldsV1".into());
        }
        if !entries.is_empty() {
            object["metadata"]["managedFields"] = Value::Array(entries);
        }
        Some(object)
    }
}

/// Steps are a second apart; entries that a request brought along have times of their own.
fn time(step: &Value) -> String {
    match step.as_u64() {
        Some(number) => format!("2026-01-01T00:00:{number:02}Z"),
        None => step.as_str().unwrap_or_default().to_owned(),
    }
}

fn check_error(error: &ApplyError, expected: &Value) -> Result<(), String> {
    let (code, causes) = match error {
        ApplyError::Conflicts(conflicts) => {
            let cause = |conflict: &Conflict| json!([conflict.message(), conflict.field]);
            (409, conflicts.0.iter().map(cause).collect())
        }
        ApplyError::BadRequest(_) => (400, Vec::new()),
        ApplyError::Untyped(_) => (500, Vec::new()),
    };
    let same = code == expected["code"]
        && error.to_string() == text(expected, "message")
        && causes == items(&expected["causes"]);
    if same {
        Ok(())
    } else {
        Err(format!("{code} {error} {causes:?}\nis not\n{expected}"))
    }
}

/// A custom resource that was merged well can be invalid still; of a built-in kind that is not known here.
fn check_invalid(request: &Request<'_>, kind: &Kind, mut object: Value, expected: &Value) -> Result<(), String> {
    if !kind.is_custom() {
        return Ok(());
    }
    kind.complete(&mut object)?;
    let violations = validate::validate(request.node, &object);
    let expected: Vec<&str> = items(&expected["causes"]).iter().filter_map(|cause| cause[1].as_str()).collect();
    let found = |field: &&str| violations.iter().any(|violation| violation.path == **field);
    let absent: Vec<_> = expected.into_iter().filter(|field| !found(field)).collect();
    let values: Vec<_> = absent.iter().map(|field| at(&object, field)).collect();
    if absent.is_empty() {
        Ok(())
    } else {
        Err(format!("{absent:?} should be invalid, but are {values:?}"))
    }
}
