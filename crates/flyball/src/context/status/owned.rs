//! A status that several managers write: what of it is ours is read off `metadata.managedFields`, as server-side apply does.

use serde_json::{Map, Value};

/// The status that `live` shall have: `status`, and what others have set beside it.
pub(super) fn merged(live: &Value, manager: &str, status: &Value) -> Value {
    let entries = live["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (ours, others): (Vec<_>, Vec<_>) = entries
        .iter()
        .filter_map(|entry| Some((entry, entry["fieldsV1"].get("f:status")?)))
        .partition(|(entry, _)| entry["manager"] == manager);
    let fields = |entries: Vec<(&'_ Value, _)>| Fields(entries.into_iter().map(|(_, fields)| fields).collect());
    merge(&live["status"], Some(status), &fields(ours), &fields(others)).unwrap_or_default()
}

/// What some managers own below a place (`fieldsV1`: KEP-555, "Lists and maps").
struct Fields<'a>(Vec<&'a Value>);

impl<'a> Fields<'a> {
    fn at(&self, step: &str) -> Fields<'a> {
        Fields(self.0.iter().filter_map(|fields| fields.get(step)).collect())
    }

    fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether the place is owned as one thing, whatever it consists of.
    fn is_atomic(&self) -> bool {
        self.0.iter().any(|fields| fields.as_object().is_some_and(Map::is_empty))
    }

    /// What the steps below are that begin so.
    fn steps(&self, prefix: &'static str) -> impl Iterator<Item = &'a str> + use<'_, 'a> {
        let steps = self.0.iter().filter_map(|fields| fields.as_object()).flat_map(Map::keys);
        steps.filter_map(move |step| step.strip_prefix(prefix))
    }
}

/// What becomes of a live value if we set `new` there; none if it goes.
fn merge(live: &Value, new: Option<&Value>, ours: &Fields<'_>, others: &Fields<'_>) -> Option<Value> {
    let atomic = ours.is_atomic() || others.is_atomic();
    match (live, new) {
        (Value::Object(live), None) if !atomic => merge_fields(live, None, ours, others),
        (Value::Object(live), Some(Value::Object(new))) if !atomic => merge_fields(live, Some(new), ours, others),
        (Value::Array(live), None) if !atomic => merge_items(live, None, ours, others),
        (Value::Array(live), Some(Value::Array(new))) if !atomic => merge_items(live, Some(new), ours, others),
        (_, Some(new)) => Some(new.clone()),
        (_, None) if ours.is_any() && !others.is_any() => None,
        (live, None) => Some(live.clone()),
    }
}

fn merge_fields(
    live: &Map<String, Value>,
    new: Option<&Map<String, Value>>,
    ours: &Fields<'_>,
    others: &Fields<'_>,
) -> Option<Value> {
    let mut merged = new.cloned().unwrap_or_default();
    for (name, value) in live {
        let (step, new) = (format!("f:{name}"), new.and_then(|new| new.get(name)));
        if let Some(value) = merge(value, new, &ours.at(&step), &others.at(&step)) {
            merged.insert(name.clone(), value);
        }
    }
    let goes = merged.is_empty() && new.is_none() && ours.is_any();
    (!goes).then(|| merged.into())
}

/// The items of a list: by the fields that are its key, or as a set, or all at once.
fn merge_items(live: &[Value], new: Option<&Vec<Value>>, ours: &Fields<'_>, others: &Fields<'_>) -> Option<Value> {
    let key = ours.steps("k:").chain(others.steps("k:")).next();
    let key = key.and_then(|key| serde_json::from_str::<Map<String, Value>>(key).ok());
    let is_set = ours.steps("v:").chain(others.steps("v:")).next().is_some();
    let step = |item: &Value| match &key {
        Some(key) => {
            let own = key.keys().filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
            format!("k:{}", Value::from(own.collect::<Map<_, _>>()))
        }
        None => format!("v:{item}"),
    };
    if key.is_none() && !is_set {
        return match new {
            Some(new) => Some(new.clone().into()),
            None if ours.is_any() && !others.is_any() => None,
            None => Some(live.into()),
        };
    }
    let mut unseen: Vec<(String, &Value)> = new.into_iter().flatten().map(|item| (step(item), item)).collect();
    let mut merged = Vec::new();
    for item in live {
        let step = step(item);
        let new = unseen.iter().position(|(known, _)| *known == step).map(|index| unseen.remove(index).1);
        merged.extend(merge(item, new, &ours.at(&step), &others.at(&step)));
    }
    merged.extend(unseen.into_iter().map(|(_, item)| item.clone()));
    let goes = merged.is_empty() && new.is_none() && ours.is_any();
    (!goes).then(|| merged.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(status: Value, ours: Value, others: Value) -> Value {
        let entry = |manager, fields| json!({ "manager": manager, "fieldsV1": { "f:status": fields } });
        let spec = json!({ "manager": "greeter", "fieldsV1": { "f:spec": { "f:other": {} } } });
        let managed = [entry("greeter", ours), entry("somebody", others), spec];
        json!({ "metadata": { "managedFields": managed }, "status": status })
    }

    #[test]
    fn what_we_set_before_goes_and_what_others_set_stays() {
        let status =
            json!({ "ours": 1, "other": 2, "both": 3, "deep": { "ours": 4, "other": 5 }, "all": { "ours": 6 } });
        let deep = |name: &str| json!({ ".": {}, name: {} });
        let ours = json!({ "f:ours": {}, "f:both": {}, "f:deep": deep("f:ours"), "f:all": deep("f:ours") });
        let others = json!({ "f:other": {}, "f:both": {}, "f:deep": deep("f:other") });
        let live = live(status, ours, others);
        let after = json!({ "new": 7, "other": 2, "both": 3, "deep": { "other": 5 } });
        assert_eq!(merged(&live, "greeter", &json!({ "new": 7 })), after);
    }

    #[test]
    fn items_of_a_list_are_known_by_its_key() {
        let condition = |name: &str, status: &str| json!({ "type": name, "status": status });
        let owned = |name: &str| {
            let step = format!(r#"k:{{"type":"{name}"}}"#);
            json!({ step: { ".": {}, "f:type": {}, "f:status": {} } })
        };
        let mut ours = owned("Ready");
        ours.as_object_mut().unwrap().extend(owned("Gone").as_object().unwrap().clone());
        let there = json!([
            condition("Other", "True"),
            condition("Ready", "False"),
            condition("Gone", "True")
        ]);
        let live = live(
            json!({ "conditions": there }),
            json!({ "f:conditions": ours }),
            json!({ "f:conditions": owned("Other") }),
        );
        let status = json!({ "conditions": [condition("New", "True"), condition("Ready", "True")] });
        let after = json!([
            condition("Other", "True"),
            condition("Ready", "True"),
            condition("New", "True")
        ]);
        assert_eq!(merged(&live, "greeter", &status), json!({ "conditions": after }));
    }

    #[test]
    fn a_set_keeps_what_others_put_into_it_and_a_plain_list_is_one_thing() {
        let status = json!({ "set": ["a", "b", "c"], "list": [1, 2] });
        let ours = json!({ "f:set": { "v:\"a\"": {}, "v:\"b\"": {} }, "f:list": {} });
        let live = live(status, ours, json!({ "f:set": { "v:\"c\"": {} } }));
        let after = json!({ "set": ["b", "c", "d"], "list": [3] });
        assert_eq!(merged(&live, "greeter", &json!({ "set": ["d", "b"], "list": [3] })), after);
        assert_eq!(merged(&live, "greeter", &json!({})), json!({ "set": ["c"] }));
    }
}
