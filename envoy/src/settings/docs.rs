// SPDX-License-Identifier: Apache-2.0
//! The one list of settings: the tables on the page `docs/settings.md`, with names, types, defaults and meanings. The
//! defaults are read from the page.

/// The page. In its tables a default in code format is a value; a default in words is computed by the code.
const PAGE: &str = include_str!("../../../docs/settings.md");

/// All settings, as two tables in Markdown: the settings of the edge, and the settings of its parts, which
/// `make run` and the container image set.
pub fn tables() -> String {
    let parts = PAGE.split("\n\n");
    let tables: Vec<_> = parts.filter(|part| part.starts_with('|')).collect();
    tables.join("\n\n") + "\n"
}

/// The names of all settings.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    PAGE.lines()
        .filter_map(|row| row.strip_prefix("| `")?.split('`').next())
}

/// The default of the setting `name`, for a variable that is unset or empty. `None`: the default is in words.
pub fn default_value(name: &str) -> Option<&'static str> {
    let start = format!("| `{name}` | ");
    let cells = PAGE.lines().find_map(|row| row.strip_prefix(&start))?;
    let (_type, cells) = cells.split_once(" | ")?;
    let (default, _meaning) = cells.split_once(" | ")?;
    let value = default.strip_prefix('`')?.strip_suffix('`')?;
    (!value.contains('`')).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> impl Iterator<Item = Vec<&'static str>> {
        let rows = PAGE.lines().filter(|row| row.starts_with("| `"));
        rows.map(|row| row.split('|').map(str::trim).collect())
    }

    #[test]
    fn no_setting_is_defined_twice() {
        let mut names: Vec<_> = rows().map(|cells| cells[1]).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn no_text_breaks_the_table() {
        for cells in rows() {
            assert!(matches!(cells[..], ["", _, _, _, _, ""]), "{cells:?}");
        }
    }

    #[test]
    fn a_default_is_a_value_or_described_in_words() {
        assert_eq!(default_value("EDGE_PORT"), Some("8080"));
        assert_eq!(default_value("S3_ENDPOINT"), None);
        for in_words in ["S3_ADDRESSING", "CACHE_DIR", "CACHE_MAX_OBJECT_BYTES"] {
            assert_eq!(default_value(in_words), None);
        }
    }
}
