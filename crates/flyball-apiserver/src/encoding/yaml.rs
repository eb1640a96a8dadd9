//! YAML as Kubernetes writes it: JSON in other clothes.

use serde_json::Value;

/// Writes one document.
pub fn write(value: &Value) -> String {
    serde_saphyr::to_string(value).expect("YAML has everything that JSON has")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_reads_back() {
        let value = json!({
            "a": "yes", "b": "1", "c": "x\ny\n", "d": [{"e": null}], "f": {}, "on": 1.5, "g": "2026-01-01", "h": "0x10"
        });

        assert_eq!(serde_saphyr::from_str::<Value>(&write(&value)).unwrap(), value);
    }
}
