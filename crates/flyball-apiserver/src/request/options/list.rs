//! The options of a list, a watch or a deletecollection.

use crate::request::info::Query;
use crate::request::options::{integer, parse_error, refuse};
use crate::status::{Result, Status};
use flyball_schema::violation::Violation;

/// The options of a list or a watch.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// The most objects of a page; 0 means all.
    pub limit: usize,
    /// The token of the previous page.
    pub continue_: Option<String>,
    /// The resource version as given; none if absent or empty.
    pub resource_version: Option<String>,
    /// How the resource version is to be matched.
    pub resource_version_match: Option<ResourceVersionMatch>,
    /// The seconds after which a watch ends.
    pub timeout_seconds: Option<i64>,
    /// Whether a watch may send bookmarks.
    pub allow_watch_bookmarks: bool,
    /// Whether a watch begins with the objects that are stored.
    pub send_initial_events: Option<bool>,
    /// The label selector as given.
    pub label_selector: Option<String>,
    /// The field selector as given.
    pub field_selector: Option<String>,
}

/// How a resource version is to be matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceVersionMatch {
    /// Exactly that version.
    Exact,
    /// That version or a later one.
    NotOlderThan,
}

impl ListOptions {
    /// Reads the options of a list or a deletecollection.
    pub fn list(query: &Query) -> Result<ListOptions> {
        let options = ListOptions::read(query)?;
        refuse("ListOptions", options.check_list(query.get("resourceVersionMatch")))?;
        Ok(options)
    }

    /// Reads the options of a watch.
    pub fn watch(query: &Query) -> Result<ListOptions> {
        let options = ListOptions::read(query)?;
        refuse("ListOptions", options.check_watch(query.get("resourceVersionMatch")))?;
        Ok(options)
    }

    fn read(query: &Query) -> Result<ListOptions> {
        let owned = |key: &str| query.get(key).map(str::to_owned);
        Ok(ListOptions {
            limit: usize::try_from(integer(query, "limit")?.unwrap_or(0)).unwrap_or(0),
            continue_: owned("continue"),
            resource_version: owned("resourceVersion"),
            resource_version_match: match query.get("resourceVersionMatch") {
                Some("Exact") => Some(ResourceVersionMatch::Exact),
                Some("NotOlderThan") => Some(ResourceVersionMatch::NotOlderThan),
                _ => None,
            },
            timeout_seconds: integer(query, "timeoutSeconds")?,
            allow_watch_bookmarks: query.flag("allowWatchBookmarks"),
            send_initial_events: query.all("sendInitialEvents").next().map(|_| query.flag("sendInitialEvents")),
            label_selector: owned("labelSelector"),
            field_selector: owned("fieldSelector"),
        })
    }

    // apimachinery/pkg/apis/meta/internalversion/validation/validation.go
    fn check_list(&self, given: Option<&str>) -> Vec<Violation> {
        const FIELD: &str = "resourceVersionMatch";
        let mut violations = Vec::new();
        if let Some(given) = given {
            if self.resource_version.is_none() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                violations.push(Violation::forbidden(FIELD, why));
            }
            if self.continue_.is_some() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                violations.push(Violation::forbidden(FIELD, why));
            }
            if self.resource_version_match.is_none() {
                violations.push(Violation::not_supported(FIELD, given, &["Exact", "NotOlderThan", ""]));
            }
            if given == "Exact" && self.resource_version.as_deref() == Some("0") {
                let why = r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#;
                violations.push(Violation::forbidden(FIELD, why));
            }
        }
        if self.send_initial_events.is_some() {
            let why = "sendInitialEvents is forbidden for list";
            violations.push(Violation::forbidden("sendInitialEvents", why));
        }
        violations
    }

    fn check_watch(&self, given: Option<&str>) -> Vec<Violation> {
        const FIELD: &str = "resourceVersionMatch";
        let mut violations = Vec::new();
        let not_older = self.resource_version_match == Some(ResourceVersionMatch::NotOlderThan);
        if self.send_initial_events.is_some() && !not_older {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            violations.push(Violation::forbidden(FIELD, why));
        }
        let from_now = matches!(self.resource_version.as_deref(), None | Some("0"));
        let given = match given {
            Some(given) => given,
            None if self.continue_.is_some() && from_now && self.send_initial_events.is_none() => {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                return vec![Violation::forbidden(FIELD, why)];
            }
            None => return violations,
        };
        if self.send_initial_events.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            violations.push(Violation::forbidden(FIELD, why));
        }
        if !not_older {
            violations.push(Violation::not_supported(FIELD, given, &["NotOlderThan"]));
        }
        if self.continue_.is_some() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            violations.push(Violation::forbidden(FIELD, why));
        }
        violations
    }
}

/// A resource version as a number, or Go's error message.
pub fn parse_resource_version(text: &str) -> Result<u64, String> {
    text.parse().map_err(|error| {
        let why = parse_error("ParseUint", text, &error);
        format!("resourceVersion: Invalid value: {text:?}: {why}")
    })
}

/// The resource version of a list or a get.
pub fn resource_version(text: Option<&str>) -> Result<Option<u64>> {
    let parse = |text| parse_resource_version(text);
    let number = text.map(parse).transpose();
    number.map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))
}
