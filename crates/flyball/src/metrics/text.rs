//! The two text formats that a scraper may ask for.

use prometheus_client::{encoding::text, registry::Registry};

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own text format, which every scraper reads.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The format that a request's `Accept` header asks for: OpenMetrics only if it is named.
    pub fn accepted(accept: Option<&str>) -> Format {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => Format::OpenMetrics,
            _ => Format::Prometheus,
        }
    }

    /// The answer's `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

pub(super) fn encode(registry: &Registry, format: Format) -> String {
    let mut open_metrics = String::new();
    text::encode(&mut open_metrics, registry).expect("a String takes whatever is written to it");
    match format {
        Format::OpenMetrics => open_metrics,
        Format::Prometheus => prometheus(&open_metrics),
    }
}

/// In Prometheus' format a counter's family is called as its samples are, and there are no units, exemplars or end.
fn prometheus(open_metrics: &str) -> String {
    let mut prometheus = String::with_capacity(open_metrics.len() + open_metrics.len() / 16);
    let mut help = "";
    for line in open_metrics.lines() {
        if line.starts_with("# HELP ") {
            help = line;
        } else if let Some(described) = line.strip_prefix("# TYPE ") {
            let (name, type_) = described.split_once(' ').unwrap_or((described, "unknown"));
            let (suffix, type_) = match type_ {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "stateset" => ("", "gauge"),
                "unknown" => ("", "untyped"),
                type_ => ("", type_),
            };
            let help = help.strip_prefix("# HELP ").and_then(|help| help.strip_prefix(name)).unwrap_or(" ");
            prometheus += &format!("# HELP {name}{suffix}{help}\n# TYPE {name}{suffix} {type_}\n");
        } else if !line.starts_with('#') {
            let sample = without_exemplar(line);
            match sample.split_once('{').and_then(|(name, rest)| Some((name, rest.strip_prefix('}')?))) {
                Some((name, value)) => prometheus.extend([name, value, "\n"]),
                None => prometheus.extend([sample, "\n"]),
            }
        }
    }
    prometheus
}

/// An exemplar follows the value; a label's value may contain what looks like one.
fn without_exemplar(sample: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (index, byte) in sample.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'#' if !quoted => return sample[..index].trim_end(),
            _ => {}
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_the_format_that_it_asks_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4";
        assert_eq!(Format::accepted(Some(prometheus)), Format::OpenMetrics);
        assert_eq!(Format::accepted(Some("*/*")), Format::Prometheus);
        assert_eq!(Format::accepted(None), Format::Prometheus);
    }

    #[test]
    fn prometheus_text_names_counters_as_their_samples() {
        let open_metrics = "# HELP a Things.\n# TYPE a counter\na_total{b=\"c # {d\"} 1 # {id=\"2\"} 1\n\
            a_total{b=\"\\\"} # {\\\\\"} 2\n# HELP s Time.\n# TYPE s gauge\n# UNIT s seconds\ns 1.5\n# EOF\n";
        let expected = "# HELP a_total Things.\n# TYPE a_total counter\na_total{b=\"c # {d\"} 1\n\
            a_total{b=\"\\\"} # {\\\\\"} 2\n# HELP s Time.\n# TYPE s gauge\ns 1.5\n";
        assert_eq!(prometheus(open_metrics), expected);
    }
}
