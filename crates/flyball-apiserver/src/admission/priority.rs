//! Priority: a new pod gets the priority and the preemption policy of its PriorityClass, or of the default class; there
//! is one default class.
// plugin/pkg/admission/priority/admission.go

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::kinds::core::POD;
use crate::kinds::scheduling::PRIORITY_CLASS;
use crate::registry::object;
use crate::status::Result;
use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

const PREFIX: &str = "scheduling.k8s.io/priorityclasses/";

/// The plugin.
pub(super) struct Priority;

impl Plugin for Priority {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let is_measured = attributes.writes(&POD) || attributes.writes(&PRIORITY_CLASS);
        is_measured && attributes.operation != Operation::Delete
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            match (attributes.request.kind.is(&POD), attributes.old) {
                (false, _) => Ok(()),
                (true, Some(old)) => {
                    keep(&mut attributes.object["spec"], &old["spec"]);
                    Ok(())
                }
                (true, None) => assign(attributes).await,
            }
        }
        .boxed()
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            if !attributes.request.kind.is(&PRIORITY_CLASS) || attributes.object["globalDefault"] != true {
                return Ok(());
            }
            let Some(default) = default_class(attributes).await? else {
                return Ok(());
            };
            let default = object::name(&default);
            if attributes.operation == Operation::Create || default != object::name(&attributes.object) {
                let why = format!("PriorityClass {default} is already marked as default. Only one default can exist");
                return Err(attributes.forbidden(why));
            }
            Ok(())
        }
        .boxed()
    }
}

/// An update that leaves the priority out keeps it.
fn keep(spec: &mut Value, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        if spec[field].is_null() && !old[field].is_null() {
            spec[field] = old[field].clone();
        }
    }
}

// admitPod
async fn assign(attributes: &mut Attributes<'_>) -> Result<()> {
    let name = attributes.object["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let class = if name.is_empty() {
        let none = json!({"value": 0, "preemptionPolicy": "PreemptLowerPriority"});
        default_class(attributes).await?.unwrap_or(none)
    } else {
        match attributes.get(format!("{PREFIX}{name}")).await? {
            Some(entry) => object::decode(&entry.value),
            None => return Err(attributes.forbidden(format!("no PriorityClass with name {name} was found"))),
        }
    };
    let spec = &attributes.object["spec"];
    let (given, computed) = (&spec["priority"], class["value"].as_i64().unwrap_or(0));
    if let Some(given) = given.as_i64().filter(|given| *given != computed) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {computed} from the given PriorityClass name"
        );
        return Err(attributes.forbidden(why));
    }
    let policy = class["preemptionPolicy"].as_str();
    if let (Some(given), Some(policy)) = (spec["preemptionPolicy"].as_str(), policy)
        && given != policy
    {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return Err(attributes.forbidden(why));
    }
    let spec = &mut attributes.object["spec"];
    if !object::name(&class).is_empty() {
        spec["priorityClassName"] = object::name(&class).into();
    }
    spec["priority"] = computed.into();
    if let Some(policy) = policy {
        spec["preemptionPolicy"] = policy.into();
    }
    Ok(())
}

/// The default class; of several, which two concurrent creates can make, the one of the lowest value.
// getDefaultPriorityClass
async fn default_class(attributes: &Attributes<'_>) -> Result<Option<Value>> {
    let classes = attributes.list(PREFIX.into()).await?;
    let defaults = classes.into_iter().filter(|class| class["globalDefault"] == true);
    Ok(defaults.min_by_key(|class| class["value"].as_i64().unwrap_or(0)))
}
