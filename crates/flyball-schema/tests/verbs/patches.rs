//! JSON patch, merge patch and strategic merge patch.

use crate::{check_all, same, text};
use flyball_schema::{json_patch, merge_patch};
use serde_json::json;

#[test]
fn merge_patches_merge() {
    check_all("merge_patch.yaml", |case| {
        let mut value = case["value"].clone();
        merge_patch::apply(&mut value, &case["patch"]);
        same(&value, &case["result"])
    });
}

#[test]
fn json_patches_apply_or_say_why_not() {
    check_all("json_patch.yaml", |case| {
        let mut value = case["value"].clone();
        match json_patch::apply(&mut value, text(case, "patch").as_bytes()) {
            Ok(()) => same(&value, &case["result"]),
            Err(error) => same(&json!({"error": error.to_string()}), &json!({"error": case["error"]})),
        }
    });
}

#[test]
fn a_patch_cannot_copy_without_end() {
    let mut value = json!({"a": {"b": "x".repeat(1000)}});
    let copy = |number: usize| json!({"op": "copy", "from": "/a", "path": format!("/a/c{number}")});
    let copies: Vec<_> = (0..30).map(copy).collect();
    let error = json_patch::apply(&mut value, json!(copies).to_string().as_bytes()).expect_err("each copy doubles");
    assert!(
        error
            .to_string()
            .starts_with("Unable to complete the copy, the accumulated size increase of copy is")
    );
}

#[test]
fn a_patch_cannot_nest_without_end() {
    let mut value = json!({"a": {}});
    let copy = |times: u32| json!({"op": "copy", "from": "/a", "path": "/a".repeat(2_usize.pow(times) + 1)});
    let copies: Vec<_> = (0..16).map(copy).collect();
    let error = json_patch::apply(&mut value, json!(copies).to_string().as_bytes()).expect_err("each copy doubles");
    assert_eq!(error.to_string(), "exceeded max depth");
}

#[test]
fn a_patch_has_at_most_ten_thousand_operations() {
    let tests = vec![json!({"op": "test", "path": "/a"}); 10_001];
    let error = json_patch::apply(&mut json!({}), json!(tests).to_string().as_bytes()).expect_err("one too many");
    assert_eq!(error.to_string(), "The allowed maximum operations in a JSON patch is 10000, got 10001");
}
