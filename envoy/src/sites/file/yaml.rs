// SPDX-License-Identifier: Apache-2.0
//! YAML and JSON, as values whose fields have lines.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Spanned, UserMessageFormatter};

/// Lines of a document's fields, by the paths of the fields. The line of a field is the line of its key, where a reader
/// looks for it.
#[derive(Clone, Debug, Default)]
pub struct Lines(HashMap<String, u64>);

impl Lines {
    /// Returns the line of a field, or of the nearest field around it that exists.
    pub fn line(&self, path: &str) -> Option<u64> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = path.get(..path.rfind(['.', '['])?)?;
        }
    }
}

/// Fault of a text that is not YAML.
#[derive(Debug)]
pub struct YamlFault {
    /// Line of the fault, from 1, if it has one.
    pub line: Option<u64>,
    message: String,
}

impl fmt::Display for YamlFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "expected YAML or JSON: {}", self.message)
    }
}

impl std::error::Error for YamlFault {}

/// Reads a document and the lines of its fields.
///
/// # Errors
/// The text is not YAML.
pub fn read(text: &str) -> Result<(Value, Lines), YamlFault> {
    // The file is the operator's own: thousands of sites may share one anchor, so the default limits do not apply.
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        budget: serde_saphyr::budget! {
            max_events: 10_000_000,
            max_nodes: 10_000_000,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000_000,
        },
    };
    let node = serde_saphyr::from_str_with_options::<YamlNode>(text, options);
    let node = node.map_err(|error| YamlFault {
        line: error.location().map(|location| location.line()),
        message: error.render_with_formatter(&UserMessageFormatter),
    })?;
    let mut lines = Lines::default();
    let value = node.into_value("", &mut lines);
    Ok((value, lines))
}

/// Joins the path of a mapping and the name of a field of it.
pub fn join(path: &str, field: &str) -> String {
    match path {
        "" => field.to_owned(),
        path => format!("{path}.{field}"),
    }
}

/// Value whose keys and items have places.
enum YamlNode {
    Scalar(Value),
    List(Vec<Spanned<Self>>),
    Mapping(Vec<(Spanned<String>, Self)>),
}

impl YamlNode {
    /// Returns the value, and adds the lines of its fields to `lines`.
    fn into_value(self, path: &str, lines: &mut Lines) -> Value {
        match self {
            Self::Scalar(value) => value,
            Self::List(items) => {
                let item = |(index, item): (usize, Spanned<Self>)| {
                    let path = format!("{path}[{index}]");
                    lines.0.insert(path.clone(), item.referenced.line());
                    item.value.into_value(&path, lines)
                };
                items.into_iter().enumerate().map(item).collect()
            }
            Self::Mapping(fields) => {
                let field = |(key, value): (Spanned<String>, Self)| {
                    let path = join(path, &key.value);
                    lines.0.insert(path.clone(), key.referenced.line());
                    let value = value.into_value(&path, lines);
                    (key.value, value)
                };
                Value::Object(fields.into_iter().map(field).collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = YamlNode;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<YamlNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(YamlNode::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<YamlNode, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(YamlNode::Mapping(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(text: &str) -> Lines {
        read(text).unwrap().1
    }

    #[test]
    fn each_field_has_the_line_of_its_key_and_each_item_its_own() {
        let lines = lines(
            "# a comment\nsites:\n- name: a\n  hosts: [x,\n    y]\n\n- &b\n  name: b\n  policy:\n    rules:\n    - match:\n      - '*'\n- *b\n",
        );
        for (path, line) in [
            ("sites", 2),
            ("sites[0]", 3),
            ("sites[0].name", 3),
            ("sites[0].hosts", 4),
            ("sites[0].hosts[0]", 4),
            ("sites[0].hosts[1]", 5),
            ("sites[1].name", 8),
            ("sites[1].policy.rules[0].match[0]", 12),
            ("sites[2]", 13),
        ] {
            assert_eq!(lines.line(path), Some(line), "{path}");
        }
    }

    #[test]
    fn a_field_that_is_not_there_has_the_line_of_the_field_around_it() {
        let lines = lines("{\"sites\": [\n  {\"name\": \"a\",\n   \"tls\": {}}]}");
        assert_eq!(lines.line("sites[0].origin"), Some(2));
        assert_eq!(lines.line("sites[0].tls.key"), Some(3));
        assert_eq!(lines.line("edge"), None);
    }

    #[test]
    fn scalars_are_read_as_yaml_1_2_reads_them() {
        let (value, _) = read("[yes, on, y, true, 010, 1_000, 0x1f, 1e3, ~, 5s, '5', -1]").unwrap();
        let expected = json!([
            "yes", "on", "y", true, "010", "1_000", 31, 1e3, null, "5s", "5", -1
        ]);
        assert_eq!(value, expected);
    }

    #[test]
    fn thousands_of_fields_may_share_an_anchor() {
        let sites = "- {name: a, origin: *origin}\n".repeat(10_000);
        let text = format!("- &origin {{url: s3://a}}\n{sites}");
        assert_eq!(read(&text).unwrap().0[10_000]["origin"]["url"], "s3://a");
    }

    #[test]
    fn a_key_that_comes_twice_is_refused_with_its_line() {
        let fault = read("a: 1\nb: 2\na: 3\n").unwrap_err();
        assert_eq!(fault.line, Some(3));
        assert!(fault.to_string().contains("duplicate"), "{fault}");
    }
}
