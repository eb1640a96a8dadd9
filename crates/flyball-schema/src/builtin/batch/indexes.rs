//! Indexes of a Job's pods, written as `1,3-5,7`.
// pkg/apis/batch/validation/validation.go, validateIndexesFormat and parseIndexInterval

use crate::go_text::quote;

/// The number of indexes, or why the text is invalid.
pub(super) fn count(indexes: &str, completions: i64) -> Result<i64, String> {
    let (mut last, mut total) = (None, 0);
    for part in parts(indexes) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(not_increasing(last, first));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index in both lists, if both are valid.
// validateFailedIndexesNotOverlapCompleted
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |indexes| parts(indexes).filter_map(|part| interval(part, completions).ok());
    let (mut completed, mut failed) = (read(completed).peekable(), read(failed).peekable());
    while let (Some(one), Some(other)) = (completed.peek(), failed.peek()) {
        if one.0 <= other.1 && other.0 <= one.1 {
            return Some(one.0.max(other.0));
        }
        if one.0 <= other.0 {
            completed.next();
        } else {
            failed.next();
        }
    }
    None
}

fn parts(indexes: &str) -> impl Iterator<Item = &str> {
    indexes.split(',').filter(move |_| !indexes.is_empty())
}

fn interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let mut ends = part.split('-');
    let (first, last, more) = (ends.next().unwrap_or_default(), ends.next(), ends.next());
    if more.is_some() {
        let what = "violates the requirement that an index interval can have at most two parts separated by '-'";
        return Err(format!("the fragment {} {what}", quote(part)));
    }
    let first = index(first, completions)?;
    match last.map(|last| index(last, completions)).transpose()? {
        Some(last) if first >= last => Err(not_increasing(first, last)),
        last => Ok((first, last.unwrap_or(first))),
    }
}

fn index(text: &str, completions: i64) -> Result<i64, String> {
    match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {}", quote(text))),
        Ok(index) if index >= completions => Err(format!("too large index: {}", quote(text))),
        Ok(index) => Ok(index),
    }
}

fn not_increasing(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}
