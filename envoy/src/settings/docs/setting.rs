// SPDX-License-Identifier: Apache-2.0
//! A setting as the page describes it: a row of a table.

use serde_json::{Value, json};

/// Number of characters of a line of comments.
const WIDTH: usize = 100;

/// A setting's row. The cells are Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentedSetting {
    /// The variable's name.
    pub name: &'static str,
    /// The accepted form, such as `port` or `size`.
    form: &'static str,
    /// A value in code format, or a description.
    default: &'static str,
    /// The meaning, with the accepted values.
    meaning: &'static str,
}

impl DocumentedSetting {
    /// The setting of a line of the page; `None`: the line is not a row.
    pub fn parse(line: &'static str) -> Option<Self> {
        let (name, cells) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (form, cells) = cells.split_once(" | ")?;
        let (default, meaning) = cells.split_once(" | ")?;
        Some(Self {
            name,
            form,
            default,
            meaning: meaning.strip_suffix(" |")?,
        })
    }

    /// The value that applies to an unset variable. `None`: the default is described in words.
    pub fn default_value(&self) -> Option<&'static str> {
        let value = self.default.strip_prefix('`')?.strip_suffix('`')?;
        (!value.contains('`')).then_some(value)
    }

    /// Whether the value is a secret, which may be in a file.
    pub fn is_secret(&self) -> bool {
        self.form == "secret"
    }

    /// The meaning, as plain text.
    pub fn meaning(&self) -> String {
        plain(self.meaning)
    }

    /// The accepted form and the default, as two sentences of plain text.
    pub fn form_and_default(&self) -> String {
        format!("Type: {}. Default: {}.", self.form, plain(self.default))
    }

    /// The setting as JSON: `default` is a value or null, and `computed_default` describes a default without a
    /// value.
    pub fn to_json(self) -> Value {
        let value = self.default_value();
        json!({
            "name": self.name,
            "type": self.form,
            "default": value,
            "computed_default": value.is_none().then(|| plain(self.default)),
            "meaning": self.meaning(),
        })
    }

    /// The setting as a part of an environment file: the meaning, the form and the default as comments, and an
    /// assignment that is commented out.
    pub fn to_env(self) -> String {
        let value = self.default_value();
        let text = comment(&(self.meaning() + ".")) + &comment(&self.form_and_default());
        format!("{text}#{}={}\n", self.name, value.unwrap_or_default())
    }
}

/// Wraps a text in lines that begin with `# `.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &line;
            lines.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line += word;
    }
    lines + &line + "\n"
}

/// A text in Markdown without the marks of code, and with the text of each link instead of the link. A link in
/// parentheses is left out.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once("](") {
        let (before, label) = before.rsplit_once('[').unwrap_or((before, ""));
        let after = link.split_once(')').map_or("", |(_, after)| after);
        match (before.strip_suffix(" ("), after.strip_prefix(')')) {
            (Some(before), Some(after)) => {
                text += before;
                rest = after;
            }
            _ => {
                text += before;
                text += label;
                rest = after;
            }
        }
    }
    (text + rest).replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: &str =
        "| `SLUICE_EDGE_PORT` | port | `8080` | The port, see [`limits`](limits.md#a) and `B` |";

    #[test]
    fn a_row_has_a_value_as_its_default_or_words() {
        let port = DocumentedSetting::parse(PORT).unwrap();
        assert_eq!(
            (port.name, port.default_value()),
            ("SLUICE_EDGE_PORT", Some("8080"))
        );
        let words = "| `A` | choice | `x` for a bucket, `y` for another | It |";
        assert_eq!(
            DocumentedSetting::parse(words).unwrap().default_value(),
            None
        );
        assert_eq!(
            DocumentedSetting::parse("| variable | type | default | meaning |"),
            None
        );
    }

    #[test]
    fn a_part_of_an_environment_file_is_comments_without_markdown() {
        let port = DocumentedSetting::parse(PORT).unwrap();
        let expected =
            "# The port, see limits and B.\n# Type: port. Default: 8080.\n#SLUICE_EDGE_PORT=8080\n";
        assert_eq!(port.to_env(), expected);
        let long = comment(&"word ".repeat(60));
        assert!(
            long.lines()
                .all(|line| line.starts_with("# ") && line.len() <= WIDTH),
            "{long}"
        );
        assert_eq!(long.matches("word").count(), 60);
    }

    #[test]
    fn a_link_is_its_text_and_brackets_alone_are_not_a_link() {
        assert_eq!(plain("Retries ([how](b.md)). Then"), "Retries. Then");
        assert_eq!(
            plain("`s3://BUCKET[/PREFIX]`, [so](a.md)"),
            "s3://BUCKET[/PREFIX], so"
        );
    }
}
