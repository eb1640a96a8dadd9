//! The answers of the webhooks, by path.

use super::encode;
use serde_json::{Value, json};

/// The answer to a review.
pub fn to(path: &str, review: &Value) -> Value {
    match path.strip_prefix("/convert") {
        Some(how) => converted(how.trim_start_matches('/'), &review["request"]),
        None => admission(path, review),
    }
}

fn admission(path: &str, review: &Value) -> Value {
    let request = &review["request"];
    let mut answer = json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": {}});
    let mut response = response(path, request);
    response["uid"] = request["uid"].clone();
    match path {
        "/wrong/uid" => response["uid"] = "other".into(),
        "/wrong/absent" => response = Value::Null,
        "/wrong/kindless" => answer = json!({}),
        "/wrong/kind" => answer["kind"] = "Other".into(),
        "/wrong/version" => answer["apiVersion"] = "admission.k8s.io/v1beta1".into(),
        "/wrong/group" => answer["apiVersion"] = "example.dev/v1".into(),
        _ => {}
    }
    answer["response"] = response;
    answer
}

fn response(path: &str, request: &Value) -> Value {
    let denied = |status: Value| json!({"allowed": false, "status": status});
    match path {
        "/deny" => json!({"allowed": false}),
        "/deny/message" => denied(json!({"message": "not today"})),
        "/deny/reason" => denied(json!({"reason": "Tomorrow"})),
        "/deny/code" => denied(json!({"code": 403, "message": "not today", "reason": "Forbidden"})),
        "/deny/success" => denied(json!({"code": 200, "status": "Success", "message": "not today"})),
        "/deny/teapot" => denied(json!({"code": 418, "message": "short and stout"})),
        "/deny/details" => {
            let cause = json!({"reason": "FieldValueInvalid", "message": "no", "field": "data.a"});
            let details = json!({"name": "x", "group": "example.dev", "kind": "things", "causes": [cause]});
            denied(json!({"code": 422, "reason": "Invalid", "message": "not today", "details": details}))
        }
        "/deny/warn" => with(json!({"warnings": ["a warning with a refusal"]}), json!({"allowed": false})),
        "/warn" => json!({"allowed": true, "warnings": ["be careful", "be careful", "", "and quick"]}),
        "/warn/long" => json!({"allowed": true, "warnings": ["é".repeat(4000), "b".repeat(300), "short"]}),
        "/warn/many" => json!({"allowed": true, "warnings": many()}),
        "/echo" => denied(json!({"message": echo(request)})),
        path => match path.strip_prefix("/patch/") {
            Some(which) => patched(which, request),
            None => json!({"allowed": true}),
        },
    }
}

fn many() -> Vec<String> {
    (0..40).map(|number| format!("{number}{}", "x".repeat(300))).collect()
}

fn with(mut one: Value, other: Value) -> Value {
    for (key, value) in other.as_object().into_iter().flatten() {
        one[key] = value.clone();
    }
    one
}

/// What a webhook was sent, except for its uid and the user, who differs.
fn echo(request: &Value) -> String {
    let mut request = request.clone();
    if let Some(request) = request.as_object_mut() {
        request.remove("uid");
        request.remove("userInfo");
    }
    request.to_string()
}

fn patched(which: &str, request: &Value) -> Value {
    let add = |path: &str, value: Value| json!([{"op": "add", "path": path, "value": value}]);
    let order = request["object"]["data"]["order"].as_str().unwrap_or_default();
    let data = |text: &str| json!({"order": format!("{order}{text}")});
    let answer =
        |patch: &Value| json!({"allowed": true, "patchType": "JSONPatch", "patch": encode(&patch.to_string())});
    match which {
        "a" | "b" | "c" => answer(&add("/data", data(which))),
        "label" => answer(&add("/metadata/labels/patched", json!("yes"))),
        "unknown" => answer(&add("/unknown", json!({"a": 1}))),
        "invalid" => answer(&add("/data", json!({"not a key": "x"}))),
        "type" => answer(&add("/data", json!(1))),
        "test" => answer(&json!([{"op": "test", "path": "/metadata/name", "value": "other"}])),
        "missing" => answer(&json!([{"op": "remove", "path": "/data/none"}])),
        "empty" => answer(&json!([])),
        "nothing" => json!({"allowed": true}),
        "name" => answer(&json!([{"op": "replace", "path": "/metadata/name", "value": "renamed"}])),
        "managed" => answer(&add("/metadata/managedFields", json!([{"operation": "Other"}]))),
        "replicas" => answer(&json!([{"op": "replace", "path": "/spec/replicas", "value": 7}])),
        "utilization" => {
            let path = "/spec/metrics/0/resource/target/averageUtilization";
            answer(&json!([{"op": "replace", "path": path, "value": 55}]))
        }
        "untyped" => json!({"allowed": true, "patch": encode("[]")}),
        "typed" => json!({"allowed": true, "patchType": "JSONPatch"}),
        "merge" => json!({"allowed": true, "patchType": "MergePatch", "patch": encode(r#"[{"op": "add"}]"#)}),
        "undecodable" => json!({"allowed": true, "patchType": "JSONPatch", "patch": encode("{}")}),
        _ => json!({"allowed": true}),
    }
}

/// Converts `spec.one` of v1 to `spec.two` of v2, and back.
fn converted(how: &str, request: &Value) -> Value {
    let desired = &request["desiredAPIVersion"];
    let objects = request["objects"].as_array().into_iter().flatten();
    let mut objects: Vec<Value> = objects.map(|object| convert(object, desired)).collect();
    let mut response = json!({"uid": request["uid"], "result": {"status": "Success"}});
    for object in &mut objects {
        match how {
            "rename" => object["metadata"]["name"] = "renamed".into(),
            "kind" => object["kind"] = "Other".into(),
            "version" => object["apiVersion"] = "example.dev/v3".into(),
            "labels" => object["metadata"]["labels"] = json!({"converted": "yes"}),
            "badlabel" => object["metadata"]["labels"] = json!({"converted": "-"}),
            "number" => object["metadata"]["annotations"] = json!({"converted": 1}),
            "finalizers" => object["metadata"]["finalizers"] = json!(["example.dev/x"]),
            "bare" => drop(object.as_object_mut().and_then(|object| object.remove("metadata"))),
            _ => {}
        }
    }
    match how {
        "fail" => response["result"] = json!({"status": "Failure", "message": "cannot convert"}),
        "mute" => response["result"] = json!({"status": "Failure"}),
        "uid" => response["uid"] = "other".into(),
        "short" => drop(objects.pop()),
        _ => {}
    }
    response["convertedObjects"] = objects.into();
    let kind = if how == "review" { "Other" } else { "ConversionReview" };
    json!({"kind": kind, "apiVersion": "apiextensions.k8s.io/v1", "response": response})
}

fn convert(object: &Value, desired: &Value) -> Value {
    let mut object = object.clone();
    let is_second = desired.as_str().is_some_and(|version| version.ends_with("/v2"));
    let (from, to) = if is_second { ("one", "two") } else { ("two", "one") };
    if let Some(spec) = object["spec"].as_object_mut()
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to.to_owned(), value);
    }
    object["apiVersion"] = desired.clone();
    object
}
