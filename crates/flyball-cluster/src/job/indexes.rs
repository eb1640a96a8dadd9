//! The completion indexes of a Job: as sets, and as Kubernetes writes them, `1,3-5,7`.

use super::policy;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::ResourceExt;
use std::{collections::BTreeSet, fmt};

/// The annotation and label of a pod with its index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often the pods of an index have failed and were counted.
pub(super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// How often they have failed and were not.
pub(super) const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// Some of the indexes of a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(BTreeSet<i32>);

impl Indexes {
    /// Reads what is written, leaving out indexes that a Job does not have.
    pub(super) fn parse(text: &str, completions: i32) -> Indexes {
        let mut indexes = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
                indexes.extend(first.max(0)..=last.min(completions - 1));
            }
        }
        Indexes(indexes)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn contains(&self, index: i32) -> bool {
        self.0.contains(&index)
    }

    pub(super) fn extend(&mut self, indexes: impl IntoIterator<Item = i32>) {
        self.0.extend(indexes);
    }

    /// How many of these are also among others.
    pub(super) fn in_common(&self, others: &Indexes) -> usize {
        self.0.intersection(&others.0).count()
    }
}

impl fmt::Display for Indexes {
    // indexed_job_utils.go, orderedIntervals.String
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut intervals: Vec<(i32, i32)> = Vec::new();
        for index in &self.0 {
            match intervals.last_mut() {
                Some((_, last)) if *last + 1 == *index => *last = *index,
                _ => intervals.push((*index, *index)),
            }
        }
        let texts = intervals.iter().map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        });
        f.write_str(&texts.collect::<Vec<_>>().join(","))
    }
}

/// The index of a pod.
pub(super) fn of(pod: &Pod) -> Option<i32> {
    pod.annotations().get(INDEX)?.parse().ok().filter(|index| *index >= 0)
}

/// How often the index of a pod had failed before it.
pub(super) fn failures(pod: &Pod, annotation: &str) -> i32 {
    pod.annotations().get(annotation).and_then(|count| count.parse().ok()).unwrap_or_default()
}

/// Whether the index of a pod has failed for good with it.
// indexed_job_utils.go, isIndexFailed
pub(super) fn has_failed(pod: &Pod, job: &Job) -> bool {
    if !super::has_failed(pod, job) {
        return false;
    }
    let limit = job.spec.as_ref().and_then(|spec| spec.backoff_limit_per_index).unwrap_or(i32::MAX);
    match policy::matching(job, pod) {
        Some((_, "FailIndex", _)) => true,
        Some((_, "Ignore", _)) => false,
        _ => failures(pod, FAILURES) >= limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_intervals() {
        let text = "0,2-4,6,7,9";
        assert_eq!(Indexes::parse(text, 10).to_string(), text);
        assert_eq!(Indexes::parse("1-9,x,-3", 4).to_string(), "1-3");
        assert_eq!(Indexes::parse("", 4).len(), 0);
    }
}
