//! How far a rollout may stray from the wanted number of pods.

use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::util::intstr::IntOrString};

/// The numbers that bound every step of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// `spec.replicas`.
    pub(crate) wanted: i32,
    /// How many pods there may be beyond it.
    pub(crate) surge: i32,
    /// How many may be unavailable below it.
    pub(crate) unavailable: i32,
}

impl Limits {
    /// Percentages of surge round up, of unavailability down; if both come to nothing, one pod may be unavailable.
    // pkg/controller/deployment/util/deployment_util.go, ResolveFenceposts, MaxSurge, MaxUnavailable
    pub(crate) fn of(deployment: &Deployment) -> Limits {
        let spec = deployment.spec.as_ref();
        let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
        if recreates(deployment) {
            return Limits { wanted, surge: 0, unavailable: 0 };
        }
        let strategy = spec.and_then(|spec| spec.strategy.as_ref());
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.clone()).unwrap_or_default();
        let surge = share(rolling.max_surge.as_ref(), wanted, f64::ceil);
        let unavailable = share(rolling.max_unavailable.as_ref(), wanted, f64::floor);
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Limits { wanted, surge, unavailable: unavailable.min(wanted) }
    }

    /// How many pods there may be at any time.
    pub(crate) fn most(self) -> i32 {
        self.wanted + self.surge
    }

    /// How many pods must be available at any time.
    pub(crate) fn least(self) -> i32 {
        self.wanted - self.unavailable
    }
}

/// Whether old pods go before new ones come.
pub(crate) fn recreates(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("Recreate"))
}

fn share(amount: Option<&IntOrString>, of: i32, round: fn(f64) -> f64) -> i32 {
    match amount {
        Some(IntOrString::Int(count)) => *count,
        Some(IntOrString::String(text)) => {
            let percent: f64 = text.trim_end_matches('%').parse().unwrap_or_default();
            round(percent * f64::from(of) / 100.0) as i32
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn limits(replicas: i32, strategy: Value) -> (i32, i32) {
        let spec = json!({ "replicas": replicas, "selector": {}, "template": {}, "strategy": strategy });
        let deployment = serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap();
        let limits = Limits::of(&deployment);
        (limits.surge, limits.unavailable)
    }

    fn rolling(surge: Value, unavailable: Value) -> Value {
        json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable } })
    }

    #[test]
    fn surge_rounds_up_and_unavailability_down() {
        assert_eq!(limits(10, rolling(json!("25%"), json!("25%"))), (3, 2));
        assert_eq!(limits(1, rolling(json!("25%"), json!("25%"))), (1, 0));
        assert_eq!(limits(10, rolling(json!(4), json!(5))), (4, 5));
    }

    #[test]
    fn a_rollout_that_could_do_nothing_may_make_one_pod_unavailable() {
        assert_eq!(limits(2, rolling(json!("0%"), json!("1%"))), (0, 1));
    }

    #[test]
    fn no_more_pods_are_unavailable_than_there_are() {
        assert_eq!(limits(2, rolling(json!(1), json!(7))), (1, 2));
        assert_eq!(limits(0, rolling(json!("25%"), json!("25%"))), (0, 0));
    }

    #[test]
    fn a_deployment_that_recreates_neither_surges_nor_counts_as_available_without_its_pods() {
        assert_eq!(limits(3, json!({ "type": "Recreate" })), (0, 0));
    }
}
