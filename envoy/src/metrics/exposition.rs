// SPDX-License-Identifier: Apache-2.0
//! The text format of Prometheus, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>).

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};
use std::time::{Duration, SystemTime};

use sluice_core::metrics::{Family, MetricKind};

/// The media type of the format.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metric families with their samples, ordered by name.
#[derive(Debug, Default)]
pub struct Exposition(BTreeMap<&'static str, FamilySamples>);

#[derive(Debug)]
struct FamilySamples {
    family: Family,
    /// One line for each sample.
    lines: String,
}

impl Exposition {
    /// Adds a sample of `family`. A label without a value is none.
    pub fn add(&mut self, family: Family, labels: &[(&str, &str)], value: impl Display) {
        self.add_series(family, "", &written(labels), value);
    }

    /// Adds a sample whose labels are written in the form of the format, without braces. `suffix` distinguishes the
    /// series of a histogram.
    pub fn add_series(&mut self, family: Family, suffix: &str, labels: &str, value: impl Display) {
        let samples = self.0.entry(family.name).or_insert_with(|| FamilySamples {
            family,
            lines: String::new(),
        });
        let name = family.name;
        // Writing to a string cannot fail.
        let _ = match labels {
            "" => writeln!(samples.lines, "{name}{suffix} {value}"),
            labels => writeln!(samples.lines, "{name}{suffix}{{{labels}}} {value}"),
        };
    }
}

impl Display for Exposition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, FamilySamples { family, lines }) in &self.0 {
            let help = family.help.replace('\\', r"\\").replace('\n', r"\n");
            let kind = match family.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
            };
            write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}")?;
        }
        Ok(())
    }
}

/// Labels in the form of the format, without braces. A label without a value is none.
pub fn written(labels: &[(&str, &str)]) -> String {
    let labels = labels.iter().filter(|(_, value)| !value.is_empty());
    let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    labels.collect::<Vec<_>>().join(",")
}

/// Whole seconds since the epoch.
pub fn epoch_seconds(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH);
    since_epoch.as_ref().map_or(0, Duration::as_secs)
}

/// Milliseconds since the epoch.
pub fn epoch_millis(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH);
    let millis = since_epoch.as_ref().map_or(0, Duration::as_millis);
    millis.try_into().unwrap_or(u64::MAX)
}

/// A value of a label, with the escapes of the format.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('"', "\\\"");
    value.replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: Family = Family {
        name: "sluice_a_total",
        kind: MetricKind::Counter,
        help: "A \\ and\na line.",
    };

    #[test]
    fn a_family_is_written_once_with_all_its_samples() {
        let mut exposition = Exposition::default();
        exposition.add(FAMILY, &[], 1);
        exposition.add(FAMILY, &[("site", "")], 2);
        let labels = [("result", "a \"\\\n"), ("site", "b")];
        exposition.add(FAMILY, &labels, 0.5);
        let expected = "# HELP sluice_a_total A \\\\ and\\na line.\n\
            # TYPE sluice_a_total counter\n\
            sluice_a_total 1\n\
            sluice_a_total 2\n\
            sluice_a_total{result=\"a \\\"\\\\\\n\",site=\"b\"} 0.5\n";
        assert_eq!(exposition.to_string(), expected);
    }
}
