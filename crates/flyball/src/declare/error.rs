//! Why a reconcile failed, and what follows from it: retry with backoff, retry after a time, or wait for a change.

use crate::Action;
use std::{error::Error as StdError, fmt, time::Duration};

/// What a reconcile, or anything that an operator does, ends with.
pub type Result<T = Action, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn StdError + Send + Sync>;

/// A failure, and when to try again.
///
/// Every error turns into one with `?`, and is then retried with the object's own exponential backoff. Like
/// `anyhow::Error` it is no [`std::error::Error`] itself; [`Error::source`] is.
pub struct Error {
    outcome: Outcome,
    source: Source,
}

/// What follows from an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The object is retried; the delay grows with each failure in a row.
    Retry,
    /// The object is retried after this time.
    RetryAfter(Duration),
    /// Nothing failed: something else has to be ready first. The object is reconciled again when it, or something its
    /// controller owns or watches, changes, and after 30 seconds at the latest.
    Waiting,
    /// The object is left alone until it, or something its controller owns or watches, changes.
    Permanent,
}

impl Error {
    /// Retries with the object's backoff; what `?` does to any error.
    pub fn retry(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error { outcome: Outcome::Retry, source: source.into() }
    }

    /// Retries after `delay`, however often it failed before.
    pub fn retry_after(delay: Duration, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error { outcome: Outcome::RetryAfter(delay), source: source.into() }
    }

    /// Does not retry: only a change can help, to the object or to something that its controller owns or watches.
    pub fn permanent(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error { outcome: Outcome::Permanent, source: source.into() }
    }

    /// Ends a reconcile that has to wait for something else, which is no failure: see
    /// [`Context::ready`](crate::Context::ready). The text says what it waits for.
    pub fn waiting(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error { outcome: Outcome::Waiting, source: source.into() }
    }

    /// Says what follows from this error.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The error that was given or converted.
    pub fn source(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }

    /// The first error of type `E` among this error's source and the sources behind it.
    pub fn find<E: StdError + 'static>(&self) -> Option<&E> {
        let first: &(dyn StdError + 'static) = &*self.source;
        std::iter::successors(Some(first), |error| (*error).source()).find_map(|error| error.downcast_ref())
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Error {
    fn from(source: E) -> Error {
        Error::retry(source)
    }
}

/// The error and everything behind it, in one line.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut next: Option<&(dyn StdError + 'static)> = Some(&*self.source);
        let mut between = "";
        while let Some(error) = next {
            f.write_str(between)?;
            between = ": ";
            match error.downcast_ref() {
                // What the API server said, without kube's account of how it said it.
                Some(kube::Error::Api(status)) => return f.write_str(&status.message),
                _ => write!(f, "{error}")?,
            }
            next = error.source();
        }
        Ok(())
    }
}

/// As `Display`: it is what a `main` that returns this error prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] std::num::ParseIntError);

    fn parse(text: &str) -> Result<i32> {
        Ok(text.parse()?)
    }

    #[test]
    fn any_error_becomes_a_retry() {
        assert_eq!(parse("x").unwrap_err().outcome(), Outcome::Retry);
        assert_eq!(Error::from("a plain sentence").to_string(), "a plain sentence");
    }

    #[test]
    fn an_outcome_survives_the_question_mark() {
        let permanent = || -> Result { Err(Error::permanent("no such region"))? };
        assert_eq!(permanent().unwrap_err().outcome(), Outcome::Permanent);
    }

    #[test]
    fn the_whole_chain_is_told_once_and_can_be_searched() {
        let error = Error::from(Outer("x".parse::<i32>().unwrap_err()));
        assert_eq!(format!("{error:?}"), "outer: invalid digit found in string");
        assert!(error.find::<std::num::ParseIntError>().is_some());
        assert!(error.find::<fmt::Error>().is_none());
    }

    #[test]
    fn what_the_api_server_said_is_told_in_its_words() {
        let status = kube::core::Status::failure("pods \"ada\" is forbidden", "Forbidden");
        let error = Error::from(kube::Error::Api(Box::new(status)));
        assert_eq!(error.to_string(), "pods \"ada\" is forbidden");
    }
}
