//! The short hash that tells pods of one template from those of another: `pod-template-hash`.

use k8s_openapi::api::core::v1::PodTemplateSpec;

/// The label that carries the hash, on ReplicaSets, their selectors and their pods.
pub(crate) const LABEL: &str = "pod-template-hash";

/// The hash of a template; `collisions` makes another one of it where a name is taken already.
///
/// It has the length and the letters of upstream's. Its value differs: that one is made from the memory of a Go program.
pub(crate) fn of(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let mut bytes = serde_json::to_vec(template).expect("a template is JSON");
    if let Some(collisions) = collisions {
        bytes.extend(collisions.to_le_bytes());
    }
    safe_text(fnv(&bytes))
}

/// A number in letters that form no words.
pub(crate) fn safe_text(number: u32) -> String {
    number.to_string().bytes().map(safe).collect()
}

/// FNV-1, 32 bits.
pub(crate) fn fnv1(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte))
}

/// FNV-1a, 32 bits.
fn fnv(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Letters that form no words, neither bad nor misread.
// apimachinery/pkg/util/rand/rand.go, SafeEncodeString
fn safe(byte: u8) -> char {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    char::from(LETTERS[usize::from(byte) % LETTERS.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(image: &str) -> PodTemplateSpec {
        serde_json::from_value(json!({ "spec": { "containers": [{ "name": "web", "image": image }] } })).unwrap()
    }

    #[test]
    fn equal_templates_have_equal_hashes_and_others_do_not() {
        assert_eq!(of(&template("web:1"), None), of(&template("web:1"), None));
        assert_ne!(of(&template("web:1"), None), of(&template("web:2"), None));
        assert_ne!(of(&template("web:1"), None), of(&template("web:1"), Some(1)));
    }

    #[test]
    fn a_hash_fits_into_a_name() {
        let hash = of(&template("web:1"), None);
        assert!(
            hash.len() <= 10 && hash.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
            "{hash}"
        );
    }

    #[test]
    fn numbers_are_encoded_as_upstream_encodes_them() {
        assert_eq!("0123456789".bytes().map(safe).collect::<String>(), "456789bcdf");
        assert_eq!(fnv(b"hello"), 0x4f9f_2cab);
    }
}
