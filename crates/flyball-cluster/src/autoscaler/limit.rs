//! How fast a workload may be scaled: stabilization windows and policies.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerSpec};

/// kube-controller-manager's `--horizontal-pod-autoscaler-tolerance`.
const TOLERANCE: f64 = 0.1;
/// `--horizontal-pod-autoscaler-downscale-stabilization`.
const DOWN_WINDOW: i32 = 300;

/// What an autoscaler has proposed and done lately.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    proposals: Vec<(Timestamp, i32)>,
    ups: Vec<(Timestamp, i32)>,
    downs: Vec<(Timestamp, i32)>,
}

/// A size, and why it is not the one that was proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limited {
    pub(super) replicas: i32,
    pub(super) stabilized: Option<(&'static str, &'static str)>,
    pub(super) limited: Option<(&'static str, &'static str)>,
}

/// How far below and above the target usage may be.
pub(super) fn tolerances(spec: &HorizontalPodAutoscalerSpec) -> (f64, f64) {
    let read = |rules: Option<&HPAScalingRules>| {
        let tolerance = rules.and_then(|rules| rules.tolerance.as_ref());
        tolerance.map_or(TOLERANCE, |tolerance| crate::resources::nanos(tolerance) as f64 / 1e9)
    };
    let behavior = spec.behavior.as_ref();
    (
        read(behavior.and_then(|it| it.scale_down.as_ref())),
        read(behavior.and_then(|it| it.scale_up.as_ref())),
    )
}

impl History {
    /// The size to scale to, of the current, the proposed and the least.
    // horizontal.go, normalizeDesiredReplicasWithBehaviors
    pub(super) fn limit(
        &mut self,
        spec: &HorizontalPodAutoscalerSpec,
        (current, proposed, least): (i32, i32, i32),
        now: Timestamp,
    ) -> Limited {
        let behavior = spec.behavior.clone().unwrap_or_default();
        let window = |rules: Option<&HPAScalingRules>, usual: i32| {
            let seconds = rules.and_then(|rules| rules.stabilization_window_seconds).unwrap_or(usual);
            now.checked_sub(SignedDuration::from_secs(seconds.into())).unwrap_or(Timestamp::MIN)
        };
        let (up_from, down_from) =
            (window(behavior.scale_up.as_ref(), 0), window(behavior.scale_down.as_ref(), DOWN_WINDOW));
        self.proposals.retain(|(at, _)| *at >= up_from.min(down_from));
        let since = |from: Timestamp| self.proposals.iter().filter(move |(at, _)| *at > from).map(|(_, it)| *it);
        let lowest = since(up_from).chain([proposed]).min().unwrap_or(proposed);
        let highest = since(down_from).chain([proposed]).max().unwrap_or(proposed);
        let stable = current.max(lowest).min(highest);
        self.proposals.push((now, proposed));
        let stabilized = (stable != proposed).then_some(match proposed > current {
            true => (
                "ScaleUpStabilized",
                "recent recommendations were lower than current one, applying the lowest recent recommendation",
            ),
            false => (
                "ScaleDownStabilized",
                "recent recommendations were higher than current one, applying the highest recent recommendation",
            ),
        });
        let (replicas, limited) = self.at_rate(spec, current, stable, least, now);
        Limited { replicas, stabilized, limited }
    }

    fn at_rate(
        &self,
        spec: &HorizontalPodAutoscalerSpec,
        current: i32,
        desired: i32,
        least: i32,
        now: Timestamp,
    ) -> (i32, Option<(&'static str, &'static str)>) {
        let behavior = spec.behavior.clone().unwrap_or_default();
        if desired > current {
            let fastest = match &behavior.scale_up {
                Some(rules) => self.fastest(rules, current, now, Direction::Up).max(current),
                None => (current * 2).max(4),
            };
            return match fastest < spec.max_replicas {
                true if desired > fastest => (
                    fastest,
                    Some((
                        "ScaleUpLimit",
                        "the desired replica count is increasing faster than the maximum scale rate",
                    )),
                ),
                false if desired > spec.max_replicas => (
                    spec.max_replicas,
                    Some(("TooManyReplicas", "the desired replica count is more than the maximum replica count")),
                ),
                _ => (desired, None),
            };
        }
        if desired < current || desired < least {
            let slowest = match &behavior.scale_down {
                Some(rules) => self.fastest(rules, current, now, Direction::Down).min(current),
                None => 0,
            };
            return match slowest > least {
                true if desired < slowest => (
                    slowest,
                    Some((
                        "ScaleDownLimit",
                        "the desired replica count is decreasing faster than the maximum scale rate",
                    )),
                ),
                false if desired < least => (
                    least,
                    Some(("TooFewReplicas", "the desired replica count is less than the minimum replica count")),
                ),
                _ => (desired, None),
            };
        }
        (desired, None)
    }

    /// How far the policies allow to go now.
    // horizontal.go, calculateScaleUpLimitWithScalingRules, calculateScaleDownLimitWithBehaviors
    fn fastest(&self, rules: &HPAScalingRules, current: i32, now: Timestamp, direction: Direction) -> i32 {
        let selects = rules.select_policy.as_deref().unwrap_or("Max");
        if selects == "Disabled" {
            return current;
        }
        let usual = [
            HPAScalingPolicy { type_: "Percent".into(), value: 100, period_seconds: 15 },
            HPAScalingPolicy { type_: "Pods".into(), value: 4, period_seconds: 15 },
        ];
        let usual = match direction {
            Direction::Up => &usual[..],
            Direction::Down => &usual[..1],
        };
        let policies = rules.policies.as_deref().filter(|policies| !policies.is_empty()).unwrap_or(usual);
        let limits = policies.iter().map(|policy| {
            let from = now
                .checked_sub(SignedDuration::from_secs(policy.period_seconds.into()))
                .unwrap_or(Timestamp::MIN);
            let sum = |changes: &[(Timestamp, i32)]| {
                changes.iter().filter(|(at, _)| *at > from).map(|(_, it)| it).sum::<i32>()
            };
            let begin = current - sum(&self.ups) + sum(&self.downs);
            let percent = f64::from(policy.value) / 100.0;
            match (direction, &*policy.type_) {
                (Direction::Up, "Pods") => begin + policy.value,
                (Direction::Up, _) => (f64::from(begin) * (1.0 + percent)).ceil() as i32,
                (Direction::Down, "Pods") => begin - policy.value,
                (Direction::Down, _) => (f64::from(begin) * (1.0 - percent)) as i32,
            }
        });
        let furthest = matches!((direction, selects), (Direction::Up, "Max") | (Direction::Down, "Min"));
        if furthest { limits.max() } else { limits.min() }.unwrap_or(current)
    }

    /// Remembers that a workload was scaled.
    pub(super) fn scaled(&mut self, from: i32, to: i32, now: Timestamp) {
        let hour = now.checked_sub(SignedDuration::from_hours(1)).unwrap_or(Timestamp::MIN);
        let changes = if to > from { &mut self.ups } else { &mut self.downs };
        changes.retain(|(at, _)| *at > hour);
        changes.push((now, (to - from).abs()));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn spec(behavior: Value) -> HorizontalPodAutoscalerSpec {
        let target = json!({ "kind": "Deployment", "name": "web" });
        let spec = json!({ "maxReplicas": 100, "minReplicas": 1, "scaleTargetRef": target, "behavior": behavior });
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn a_size_grows_at_most_twofold_and_shrinks_only_after_a_while() {
        let (spec, mut history) = (spec(json!(null)), History::default());
        let up = history.limit(&spec, (3, 50, 1), at(0));
        assert_eq!((up.replicas, up.limited.unwrap().0), (6, "ScaleUpLimit"));
        let down = history.limit(&spec, (6, 2, 1), at(15));
        assert_eq!((down.replicas, down.stabilized.unwrap().0), (6, "ScaleDownStabilized"));
        let later = history.limit(&spec, (6, 2, 1), at(400));
        assert_eq!((later.replicas, later.stabilized), (2, None));
    }

    #[test]
    fn policies_count_what_was_done_in_their_period() {
        let up = json!({ "policies": [{ "type": "Pods", "value": 2, "periodSeconds": 60 }] });
        let (spec, mut history) = (spec(json!({ "scaleUp": up })), History::default());
        assert_eq!(history.limit(&spec, (1, 10, 1), at(0)).replicas, 3);
        history.scaled(1, 3, at(0));
        assert_eq!(history.limit(&spec, (3, 10, 1), at(30)).replicas, 3);
        assert_eq!(history.limit(&spec, (3, 10, 1), at(61)).replicas, 5);
    }
}
