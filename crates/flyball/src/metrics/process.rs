//! What this process takes, under the names that every Prometheus client has: dashboards of controller-runtime show them.

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use std::{fmt, fs};

/// How Linux counts time in `/proc`, whatever the kernel's own ticks are (`man 5 proc`, `USER_HZ`).
const TICKS: f64 = 100.0;

/// Looks when it is asked; says nothing where there is no `/proc`.
#[derive(Debug)]
pub(super) struct Process;

#[derive(Debug, PartialEq)]
struct Usage {
    cpu_seconds: f64,
    start_seconds: f64,
    virtual_bytes: f64,
    resident_bytes: f64,
    open_files: f64,
    most_files: f64,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(usage) = Usage::now() else { return Ok(()) };
        let cpu = ConstCounter::new(usage.cpu_seconds);
        let help = "Processor time that this process took";
        cpu.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, cpu.metric_type())?)?;
        for (name, help, value) in [
            ("process_resident_memory_bytes", "Memory of this process", usage.resident_bytes),
            ("process_virtual_memory_bytes", "Virtual memory size in bytes", usage.virtual_bytes),
            ("process_start_time_seconds", "When this process began, since 1970", usage.start_seconds),
            ("process_open_fds", "Files and sockets that are open", usage.open_files),
            ("process_max_fds", "Files and sockets that may be open", usage.most_files),
        ] {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

impl Usage {
    fn now() -> Option<Usage> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{name}")).ok();
        let files = fs::read_dir("/proc/self/fd").ok()?.count();
        let (stat, status, limits) = (read("self/stat")?, read("self/status")?, read("self/limits")?);
        Usage::read(&stat, &status, &limits, &read("stat")?, files)
    }

    fn read(stat: &str, status: &str, limits: &str, machine: &str, files: usize) -> Option<Usage> {
        // The second field is a name in parentheses, which may contain anything; what is third comes after it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        Some(Usage {
            cpu_seconds: (field(14)? + field(15)?) / TICKS,
            start_seconds: after(machine, "btime")? + field(22)? / TICKS,
            virtual_bytes: field(23)?,
            resident_bytes: after(status, "VmRSS:")? * 1024.0,
            open_files: files as f64,
            most_files: after(limits, "Max open files")?,
        })
    }
}

/// The number that follows a line's beginning.
fn after(text: &str, beginning: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(beginning))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_of_a_process_is_read() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4 1 2 3 4 150 50 0 0 20 0 1 0 1200 4096000 33 9";
        let usage = Usage::read(
            stat,
            "Name:\ta\nVmRSS:\t    132 kB\n",
            "Max open files            1024                 4096                 files\n",
            "cpu 1\nbtime 1700000000\n",
            9,
        );
        let expected = Usage {
            cpu_seconds: 2.0,
            start_seconds: 1_700_000_012.0,
            virtual_bytes: 4_096_000.0,
            resident_bytes: 135_168.0,
            open_files: 9.0,
            most_files: 1024.0,
        };
        assert_eq!(usage, Some(expected));
    }
}
