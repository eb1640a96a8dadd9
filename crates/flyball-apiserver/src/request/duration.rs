//! `timeout` in the query: a duration as Go writes it.

use crate::request::context::ResourceRequest;
use crate::request::info::Verb;
use crate::status::{Result, Status};
use flyball_schema::go_duration::is_duration;

/// Refuses a timeout that is no duration. What lasts longer than a minute is cut to that, and nothing here does.
// apiserver/pkg/endpoints/filters/request_deadline.go
pub(crate) fn check_timeout(request: &ResourceRequest) -> Result<()> {
    let Some(text) = request.info.query.get("timeout").filter(|_| request.target.verb != Verb::Watch) else {
        return Ok(());
    };
    match is_duration(text) {
        true => Ok(()),
        false => {
            let why = format!("invalid timeout specified in the request URL - time: invalid duration {text:?}");
            Err(Status::bad_request(why))
        }
    }
}
