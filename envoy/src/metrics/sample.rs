// SPDX-License-Identifier: Apache-2.0
//! The samples of a document in the text format of Prometheus.

/// A line of the document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The name, with the suffix of a histogram's series.
    pub name: &'a str,
    labels: &'a str,
    /// The value.
    pub value: f64,
}

impl<'a> Sample<'a> {
    /// Reads a line; `None`: a comment, or not a sample.
    pub fn read(line: &'a str) -> Option<Self> {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        Some(Self {
            name,
            labels: labels.strip_suffix('}').unwrap_or(labels),
            value: value.parse().ok()?,
        })
        .filter(|sample| !sample.name.starts_with('#'))
    }

    /// The value of a label; empty without the label. The labels of the edge have no escapes in their values.
    pub fn label(&self, name: &str) -> &'a str {
        let mut rest = self.labels;
        while let Some((found, after)) = rest.split_once("=\"") {
            let (value, others) = after.split_once('"').unwrap_or((after, ""));
            if found.trim_start_matches(',') == name {
                return value;
            }
            rest = others;
        }
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_name_its_labels_and_its_value() {
        let sample = Sample::read(r#"a_total{result="hit",site="b"} 2.5"#).unwrap();
        assert_eq!((sample.name, sample.value), ("a_total", 2.5));
        let labels = ["result", "site", "other"].map(|name| sample.label(name));
        assert_eq!(labels, ["hit", "b", ""]);
        assert_eq!(Sample::read("a_total 1").unwrap().label("site"), "");
        for line in ["# TYPE a_total counter", "# HELP a_total In 2", ""] {
            assert_eq!(Sample::read(line), None, "{line}");
        }
    }
}
