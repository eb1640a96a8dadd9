//! Stand-ins until the schema crate has these verbs.
use flyball_schema::schema::Node;
use flyball_schema::violation::Violation;
use serde_json::Value;
pub fn prune(_node: Node<'_>, _value: &mut Value) -> Vec<String> {
    Vec::new()
}
pub fn default(_node: Node<'_>, _value: &mut Value) {}
pub fn validate(_node: Node<'_>, _value: &Value) -> Vec<Violation> {
    Vec::new()
}
pub fn validate_update(_node: Node<'_>, _value: &Value, _old: &Value) -> Vec<Violation> {
    Vec::new()
}
