//! JSON patch and merge patch.

use crate::{check_all, same};
use flyball_schema::merge_patch;

#[test]
fn merge_patches_merge() {
    check_all("merge_patch.yaml", |case| {
        let mut value = case["value"].clone();
        merge_patch::apply(&mut value, &case["patch"]);
        same(&value, &case["result"])
    });
}
