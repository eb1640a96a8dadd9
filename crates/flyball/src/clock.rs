//! Times as Kubernetes writes them, from the clock that the whole process uses.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(crate) use flyball_host::Clock;

/// The time to the second, which is all that Kubernetes keeps.
pub(crate) fn time(clock: Clock) -> Time {
    Time(Timestamp::from_second(clock.now().as_second()).expect("it was a timestamp before"))
}
