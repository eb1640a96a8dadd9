//! What came of a step, in the words of the files: times are the numbers of steps, and what has to differ is taken out.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

/// What a server made of one step.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each is the field of its name in the files")]
pub enum Outcome {
    /// It wrote this; the entries apart.
    Written {
        object: Value,
        managed: Vec<Value>,
        unchanged: bool,
    },
    /// It refused: `{code, message, causes}`.
    Refused(Value),
    /// The step wrote no object.
    Nothing,
}

/// In which seconds each step was under way.
#[derive(Default)]
pub struct Moments(Vec<(usize, u64, u64)>);

impl Moments {
    /// Notes that a step began and ended in these seconds.
    pub fn note(&mut self, step: usize, began: u64, ended: u64) {
        self.0.push((step, began, ended));
    }

    fn step_at(&self, time: &str) -> Option<usize> {
        let second = u64::try_from(time.parse::<jiff::Timestamp>().ok()?.as_second()).ok()?;
        let found = self.0.iter().find(|(_, began, ended)| (*began..=*ended).contains(&second));
        found.map(|(step, ..)| *step)
    }
}

impl Outcome {
    /// What a Status says.
    pub fn refused(status: &Value) -> Outcome {
        let causes = status["details"]["causes"].as_array().into_iter().flatten();
        let mut causes: Vec<Value> = causes.map(|cause| json!([cause["message"], cause["field"]])).collect();
        let message = in_order(status["message"].as_str().unwrap_or_default());
        let mut error = json!({"code": status["code"], "message": message});
        if !causes.is_empty() {
            // Managers come in the order of a Go map, what is owned by one of them in its own.
            if status["code"] == 409 {
                causes.sort_by_key(|cause| cause[0].to_string());
            }
            error["causes"] = Value::Array(causes);
        }
        Outcome::Refused(error)
    }

    /// What an object has become.
    pub fn written(object: &Value, unchanged: bool, moments: &Moments, namespace: &str) -> Outcome {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let text = object.to_string().replace(&format!("\"{uid}\""), "\"1\"");
        let text = text.replace(&format!("\"{namespace}\""), "\"default\"");
        let mut object: Value = serde_json::from_str(&text).expect("a document without names of its own is one still");
        let Some(metadata) = object["metadata"].as_object_mut() else {
            return Outcome::Nothing;
        };
        let managed = metadata.remove("managedFields").unwrap_or_default();
        metadata.remove("resourceVersion");
        metadata.remove("creationTimestamp");
        let entries = managed.as_array().into_iter().flatten();
        let managed = entries.map(|entry| in_steps(entry, moments)).collect();
        Outcome::Written { object, managed, unchanged }
    }

    /// What is written down of a step.
    pub fn recorded(step: &Value) -> Option<Outcome> {
        if step.get("crd").is_some() {
            return Some(Outcome::Nothing);
        }
        if let Some(error) = step.get("error") {
            return Some(Outcome::Refused(error.clone()));
        }
        Some(Outcome::Written {
            object: step.get("object")?.clone(),
            managed: step["managed"].as_array().cloned().unwrap_or_default(),
            unchanged: step.get("unchanged").is_some(),
        })
    }

    /// How this differs from what another server made of the same step; nothing if it does not.
    pub fn difference(&self, recorded: &Outcome) -> Option<String> {
        let (found, expected) = (self.comparable(), recorded.comparable());
        (found != expected).then(|| format!("{found}\nis not\n{expected}"))
    }

    fn comparable(&self) -> Value {
        match self {
            Outcome::Written { object, managed, unchanged } => {
                json!({"object": masked(object), "managed": managed, "unchanged": unchanged})
            }
            Outcome::Refused(error) => unordered(error),
            Outcome::Nothing => Value::Null,
        }
    }
}

/// Where a message lists errors, it does so in the order of a Go map.
fn in_order(message: &str) -> String {
    const OPENING: &str = " errors:\n";
    let Some((before, errors)) = message.split_once(OPENING) else {
        return message.to_owned();
    };
    let mut errors: Vec<&str> = errors.lines().collect();
    errors.sort_unstable();
    format!("{before}{OPENING}{}", errors.join("\n"))
}

/// An entry as the files have it.
fn in_steps(entry: &Value, moments: &Moments) -> Value {
    let mut shown = Map::new();
    for (name, value) in entry.as_object().into_iter().flatten() {
        match name.as_str() {
            "fieldsType" => {}
            "fieldsV1" => drop(shown.insert("fields".into(), value.clone())),
            "time" => {
                let step = value.as_str().and_then(|time| moments.step_at(time));
                shown.insert("time".into(), step.map_or_else(|| value.clone(), Value::from));
            }
            _ => drop(shown.insert(name.clone(), value.clone())),
        }
    }
    Value::Object(shown)
}

/// Without what a server gives as it likes: addresses, ports, times, and a definition's name.
fn masked(value: &Value) -> Value {
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$").expect("a constant pattern"));
    match value {
        Value::Object(fields) => {
            let mask = |(name, value): (&String, &Value)| {
                let value = match name.as_str() {
                    "clusterIP" | "clusterIPs" | "nodePort" | "healthCheckNodePort" => json!("<given>"),
                    _ => masked(value),
                };
                (name.clone(), value)
            };
            let mut masked: Map<String, Value> = fields.iter().map(mask).collect();
            if fields.get("kind").is_some_and(|kind| kind == "CustomResourceDefinition") {
                masked["metadata"]["name"] = json!("<name>");
            }
            Value::Object(masked)
        }
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::String(text) if TIME.is_match(text) => json!("<time>"),
        other => other.clone(),
    }
}

/// A custom resource's violations come in the order of a Go map; the causes tell them all.
fn unordered(error: &Value) -> Value {
    let mut error = error.clone();
    let is_invalid = error["code"] == 422;
    if let Some(causes) = error.get_mut("causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(Value::to_string);
        if causes.len() > 1 && is_invalid {
            error["message"] = json!("<causes>");
        }
    }
    error
}
