// SPDX-License-Identifier: Apache-2.0
//! The line numbers of the fields of a YAML document, for messages.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser};

/// The line numbers of a document's fields, by the paths of the fields.
#[derive(Clone, Debug, Default)]
pub struct Lines(HashMap<String, usize>);

/// A mapping or a list that is being read.
enum Level {
    /// The path of the next value, once its key has been read.
    Mapping { path: String, key: Option<String> },
    /// The index of the next item.
    List { path: String, next: usize },
}

impl Lines {
    /// The lines of the fields of `text`, up to the first error in the YAML.
    pub fn of(text: &str) -> Self {
        let mut lines = Self::default();
        let mut levels = Vec::new();
        for event in Parser::new_from_str(text) {
            let Ok((event, span)) = event else { break };
            lines.add(&mut levels, &event, span.start.line());
        }
        lines
    }

    /// The line of a field, or of the nearest enclosing field that exists.
    pub fn line(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = path.get(..path.rfind(['.', '['])?)?;
        }
    }

    fn add(&mut self, levels: &mut Vec<Level>, event: &Event<'_>, line: usize) {
        match event {
            Event::Scalar(text, ..) => {
                if let Some(Level::Mapping {
                    path,
                    key: key @ None,
                }) = levels.last_mut()
                {
                    // The line of a field is the line of its key, where a reader looks for it.
                    self.0.entry(join(path, text)).or_insert(line);
                    *key = Some(text.to_string());
                } else {
                    self.begin_value(levels, line);
                }
            }
            Event::Alias(_) => {
                self.begin_value(levels, line);
            }
            Event::MappingStart(..) => {
                let path = self.begin_value(levels, line);
                levels.push(Level::Mapping { path, key: None });
            }
            Event::SequenceStart(..) => {
                let path = self.begin_value(levels, line);
                levels.push(Level::List { path, next: 0 });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                levels.pop();
            }
            _ => {}
        }
    }

    /// Notes the line of a value, and returns its path.
    fn begin_value(&mut self, levels: &mut [Level], line: usize) -> String {
        let path = match levels.last_mut() {
            None => return String::new(),
            // A key that is not a scalar does not get a path.
            Some(Level::Mapping { path, key }) => match key.take() {
                Some(key) => join(path, &key),
                None => path.clone(),
            },
            Some(Level::List { path, next }) => {
                *next += 1;
                format!("{path}[{}]", *next - 1)
            }
        };
        self.0.entry(path.clone()).or_insert(line);
        path
    }
}

/// The path of a field of the mapping at `path`.
pub fn join(path: &str, field: &str) -> String {
    match path {
        "" => field.to_owned(),
        path => format!("{path}.{field}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_the_line_of_its_key_and_each_item_its_own() {
        let lines = Lines::of(
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
        let lines = Lines::of("{\"sites\": [\n  {\"name\": \"a\",\n   \"tls\": {}}]}");
        assert_eq!(lines.line("sites[0].origin"), Some(2));
        assert_eq!(lines.line("sites[0].tls.key"), Some(3));
        assert_eq!(lines.line("edge"), None);
    }
}
