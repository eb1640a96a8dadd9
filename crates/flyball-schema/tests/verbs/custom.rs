//! Schemas of custom resources.

use crate::{check_all, lines, same};
use flyball_schema::crd::{self, Status, Structural};
use flyball_schema::decode::Document;
use flyball_schema::{default, definition, validate};
use serde_json::{Value, json};

const PATH: &str = "spec.validation.openAPIV3Schema";

#[test]
fn schemas_are_read_or_refused_with_kubernetes_words() {
    check_all("crd_schemas.yaml", |case| {
        let status = if case["status"] == true {
            Status::Subresource
        } else {
            Status::Plain
        };
        let wrong = crd::read(&case["schema"], PATH, status).err().unwrap_or_default();
        same(&lines(&wrong), &or_empty(&case["wrong"]))
    });
}

fn or_empty(value: &Value) -> Value {
    if value.is_null() { json!([]) } else { value.clone() }
}

#[test]
fn custom_resources_become_what_a_real_server_makes_of_them() {
    check_all("custom_resources.yaml", |group| {
        let structural = crd::read(&group["schema"], PATH, Status::Plain).expect("a structural schema");
        let objects = group["objects"].as_array().expect("objects");
        let failed = objects.iter().filter_map(|case| {
            let failure = check_object(&structural, case).err()?;
            Some(format!("{}: {failure}", case["case"]))
        });
        let failed: Vec<_> = failed.collect();
        if failed.is_empty() {
            Ok(())
        } else {
            Err(format!("\n{}", failed.join("\n")))
        }
    });
}

fn check_object(structural: &Structural, case: &Value) -> Result<(), String> {
    let document = Document::json(case["object"].to_string().as_bytes()).expect("JSON");
    let mut object = document.untyped().expect("an object").value;
    let warnings = match structural.coerce(&mut object) {
        Ok(warnings) => warnings,
        Err(error) => {
            let expected = case["error"].as_str().unwrap_or_default();
            let expected = expected
                .rsplit_once(" cannot be handled as a ")
                .and_then(|(_, rest)| rest.split_once(": "));
            return same(&json!(error.to_string()), &json!(expected.map(|(_, error)| error)));
        }
    };
    same(&json!(warnings), &or_empty(&case["warnings"]))?;
    default::default(structural.node(), &mut object);
    let mut again = object.clone();
    same(&json!(structural.coerce(&mut again).expect("it was coerced before")), &json!([]))?;
    default::default(structural.node(), &mut again);
    same(&again, &object)?;
    let wrong = validate::validate(structural.node(), &object);
    // Where Go walks a map its order is random.
    same(&sorted(&lines(&wrong)), &sorted(&or_empty(&case["wrong"])))?;
    if case["wrong"].is_null() {
        same(&object, &case["result"])
    } else {
        Ok(())
    }
}

fn sorted(lines: &Value) -> Value {
    let mut lines: Vec<_> = lines.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    lines.sort_unstable();
    json!(lines)
}

#[test]
fn definitions_are_refused_with_kubernetes_words() {
    check_all("definitions.yaml", |case| {
        let wrong = match case.get("old") {
            Some(old) => definition::validate_update(&case["definition"], old),
            None => definition::validate(&case["definition"]),
        };
        same(&lines(&wrong), &or_empty(&case["wrong"]))
    });
}

#[test]
fn updates_may_keep_what_was_wrong_before() {
    check_all("updates.yaml", |group| {
        let structural = crd::read(&group["schema"], PATH, Status::Plain).expect("a structural schema");
        for case in group["updates"].as_array().expect("updates") {
            let wrong = validate::validate_update(structural.node(), &case["new"], &case["old"]);
            let compared = same(&sorted(&lines(&wrong)), &sorted(&or_empty(&case["wrong"])));
            compared.map_err(|failure| format!("{}: {failure}", case["case"]))?;
        }
        Ok(())
    });
}
