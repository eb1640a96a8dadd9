//! Times as Kubernetes writes them, and the clock that the whole process uses.

use jiff::Timestamp;

pub use flyball_host::Clock;

/// A time as `metav1.Time` writes it: in seconds.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time as `metav1.MicroTime` writes it: in microseconds.
pub fn microseconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_kubernetes_writes_them() {
        let time: Timestamp = "2026-11-15T21:30:05.123456789Z".parse().unwrap();

        assert_eq!(seconds(time), "2026-11-15T21:30:05Z");
        assert_eq!(microseconds(time), "2026-11-15T21:30:05.123456Z");
    }
}
