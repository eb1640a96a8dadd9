//! How many pods each ReplicaSet of a Deployment should have next: pure arithmetic, one step at a time.

use super::limits::Limits;

/// What counts of a ReplicaSet in a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// `spec.replicas`.
    pub(crate) replicas: i32,
    /// `status.availableReplicas`.
    pub(crate) available: i32,
    /// `spec.replicas` of the Deployment when this one was last scaled.
    pub(crate) desired: Option<i32>,
    /// The most pods that the Deployment might have had then.
    pub(crate) most: Option<i32>,
}

/// The next size of the ReplicaSet with the new template: as many as the surge leaves room for.
// deployment_util.go, NewRSNewReplicas
pub(crate) fn grow_new(limits: Limits, new: i32, old: &[Size]) -> i32 {
    if new >= limits.wanted {
        return limits.wanted;
    }
    let room = limits.most() - new - total(old);
    new + room.clamp(0, limits.wanted - new)
}

/// The next sizes of the ReplicaSets with older templates, oldest first: pods that serve nobody go first, then as many as
/// availability leaves room for.
// rolling.go, reconcileOldReplicaSets
pub(crate) fn shrink_old(limits: Limits, new: Size, old: &[Size]) -> Vec<i32> {
    let mut sizes: Vec<i32> = old.iter().map(|size| size.replicas).collect();
    let not_yet = new.replicas - new.available;
    let mut spare = new.replicas + total(old) - limits.least() - not_yet;
    if spare <= 0 {
        return sizes;
    }
    for (size, set) in sizes.iter_mut().zip(old) {
        let gone = (set.replicas - set.available).clamp(0, spare);
        *size -= gone;
        spare -= gone;
    }
    let available = new.available + old.iter().map(|size| size.available).sum::<i32>();
    let mut spare = (available - limits.least()).max(0);
    for size in &mut sizes {
        let gone = spare.min(*size);
        *size -= gone;
        spare -= gone;
    }
    sizes
}

/// The sizes of all ReplicaSets that have pods, oldest first, after `spec.replicas` changed in the middle of a rollout:
/// each grows or shrinks in its proportion, the largest taking what rounding leaves.
///
/// `pods` is how many the Deployment last reported, for ReplicaSets that do not record it.
// sync.go, scale; deployment_util.go, GetReplicaSetProportion
pub(crate) fn in_proportion(limits: Limits, sets: &[Size], pods: i32) -> Vec<i32> {
    let allowed = if limits.wanted > 0 { limits.most() } else { 0 };
    let add = allowed - total(sets);
    let mut sizes: Vec<i32> = sets.iter().map(|set| set.replicas).collect();
    if add == 0 {
        return sizes;
    }
    let order = largest_first(&sizes, add);
    let mut left = add;
    for &index in &order {
        if left == 0 {
            break;
        }
        let share = fraction(limits, sets[index], pods);
        let share = if add > 0 { share.min(left) } else { share.max(left) };
        sizes[index] += share;
        left -= share;
    }
    if let Some(&largest) = order.first() {
        sizes[largest] = (sizes[largest] + left).max(0);
    }
    sizes
}

/// Among equals the newer grow first, and the older shrink first.
fn largest_first(sizes: &[i32], add: i32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    if add > 0 {
        order.reverse();
    }
    order.sort_by_key(|&index| std::cmp::Reverse(sizes[index]));
    order
}

fn fraction(limits: Limits, set: Size, pods: i32) -> i32 {
    if limits.wanted == 0 {
        return -set.replicas;
    }
    let before = set.most.filter(|most| *most != 0).unwrap_or(pods);
    if before == 0 {
        return 0;
    }
    let size = f64::from(set.replicas) * f64::from(limits.most()) / f64::from(before);
    size.round() as i32 - set.replicas
}

fn total(sets: &[Size]) -> i32 {
    sets.iter().map(|set| set.replicas).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Limits = Limits { wanted: 10, surge: 3, unavailable: 2 };

    fn healthy(replicas: i32) -> Size {
        Size { replicas, available: replicas, ..Size::default() }
    }

    fn starting(replicas: i32) -> Size {
        Size { replicas, ..Size::default() }
    }

    #[test]
    fn the_first_rollout_goes_to_the_wanted_size_at_once() {
        assert_eq!(grow_new(TEN, 0, &[]), 10);
    }

    #[test]
    fn a_new_set_grows_into_the_surge_only() {
        assert_eq!(grow_new(TEN, 0, &[healthy(10)]), 3);
        assert_eq!(grow_new(TEN, 3, &[healthy(10)]), 3);
        assert_eq!(grow_new(TEN, 3, &[healthy(8)]), 5);
        assert_eq!(grow_new(TEN, 12, &[]), 10);
        assert_eq!(grow_new(TEN, 0, &[healthy(20)]), 0);
    }

    #[test]
    fn an_old_set_shrinks_as_far_as_availability_allows() {
        assert_eq!(shrink_old(TEN, starting(3), &[healthy(10)]), [8]);
        assert_eq!(shrink_old(TEN, healthy(3), &[healthy(10)]), [5]);
        assert_eq!(shrink_old(TEN, healthy(10), &[healthy(2)]), [0]);
    }

    #[test]
    fn pods_that_serve_nobody_go_first() {
        assert_eq!(shrink_old(TEN, healthy(0), &[healthy(8), starting(4)]), [8, 0]);
    }

    #[test]
    fn a_rollout_that_hangs_does_not_take_down_what_works() {
        // The first example of upstream's comment: 5 new pods crash, one of 8 old pods fails.
        let old = Size { replicas: 8, available: 7, ..Size::default() };
        assert_eq!(shrink_old(TEN, starting(5), &[old]), [8]);
    }

    #[test]
    fn a_step_never_goes_below_what_must_be_available() {
        for (new, available) in [(3, 0), (3, 2), (5, 5), (10, 1)] {
            let new = Size { replicas: new, available, ..Size::default() };
            let sizes = shrink_old(TEN, new, &[healthy(6), healthy(4)]);
            assert!(available + sizes.iter().sum::<i32>() >= 8, "{new:?}: {sizes:?}");
        }
    }

    #[test]
    fn a_rollout_ends_with_the_new_set_alone() {
        let (mut new, mut old) = (healthy(0), healthy(10));
        for _ in 0..20 {
            new = healthy(grow_new(TEN, new.replicas, &[old]));
            old = healthy(shrink_old(TEN, new, &[old])[0]);
            assert!(new.replicas + old.replicas <= 13);
        }
        assert_eq!((new, old), (healthy(10), healthy(0)));
    }

    #[test]
    fn scaling_in_the_middle_keeps_proportions() {
        // Upstream's documentation: 10 replicas, surge 3; old 8, new 5, scaled to 15.
        let limits = Limits { wanted: 15, surge: 3, unavailable: 2 };
        let set = |replicas| Size {
            replicas,
            desired: Some(10),
            most: Some(13),
            ..Size::default()
        };
        assert_eq!(in_proportion(limits, &[set(8), set(5)], 13), [11, 7]);
        let limits = Limits { wanted: 5, surge: 1, unavailable: 1 };
        assert_eq!(in_proportion(limits, &[set(8), set(5)], 13), [4, 2]);
    }

    #[test]
    fn among_equals_the_newer_grow_and_the_older_shrink() {
        let set = |replicas| Size { replicas, most: Some(10), ..Size::default() };
        let eleven = Limits { wanted: 11, surge: 0, unavailable: 1 };
        assert_eq!(in_proportion(eleven, &[set(5), set(5)], 10), [5, 6]);
        let nine = Limits { wanted: 9, surge: 0, unavailable: 1 };
        assert_eq!(in_proportion(nine, &[set(5), set(5)], 10), [4, 5]);
    }

    #[test]
    fn scaling_to_nothing_leaves_nothing() {
        let none = Limits { wanted: 0, surge: 0, unavailable: 0 };
        assert_eq!(in_proportion(none, &[healthy(8), healthy(5)], 13), [0, 0]);
    }
}
