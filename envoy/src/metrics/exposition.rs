// SPDX-License-Identifier: Apache-2.0
//! The text format of Prometheus, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>).

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

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
    /// Adds a sample of `family`. `suffix` distinguishes the series of a histogram.
    pub fn add(&mut self, family: Family, suffix: &str, labels: Labels<'_>, value: impl Display) {
        let samples = self.0.entry(family.name).or_insert_with(|| FamilySamples {
            family,
            lines: String::new(),
        });
        // Writing to a string cannot fail.
        let _ = writeln!(samples.lines, "{}{suffix}{labels} {value}", family.name);
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

/// The labels of a sample: labels in the form of the format, and one more label.
#[derive(Clone, Copy, Debug, Default)]
pub struct Labels<'a> {
    /// Labels that are in the form of the format, without braces.
    pub written: &'a str,
    /// The name and the value of one more label.
    pub label: Option<(&'a str, &'a str)>,
}

impl<'a> Labels<'a> {
    /// One label. A label without a value is none.
    pub fn one(name: &'a str, value: &'a str) -> Self {
        Self {
            written: "",
            label: (!value.is_empty()).then_some((name, value)),
        }
    }
}

impl Display for Labels<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.written.is_empty() && self.label.is_none() {
            return Ok(());
        }
        out.write_str("{")?;
        if let Some((name, value)) = self.label {
            write!(out, "{name}=\"{}\"", escaped(value))?;
            if !self.written.is_empty() {
                out.write_str(",")?;
            }
        }
        write!(out, "{}}}", self.written)
    }
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
        exposition.add(FAMILY, "", Labels::default(), 1);
        exposition.add(FAMILY, "", Labels::one("site", ""), 2);
        let labels = Labels {
            written: "site=\"b\"",
            label: Some(("result", "a \"\\\n")),
        };
        exposition.add(FAMILY, "", labels, 0.5);
        let expected = "# HELP sluice_a_total A \\\\ and\\na line.\n\
            # TYPE sluice_a_total counter\n\
            sluice_a_total 1\n\
            sluice_a_total 2\n\
            sluice_a_total{result=\"a \\\"\\\\\\n\",site=\"b\"} 0.5\n";
        assert_eq!(exposition.to_string(), expected);
    }
}
