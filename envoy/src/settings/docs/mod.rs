// SPDX-License-Identifier: Apache-2.0
//! The one list of settings: the tables on the page `docs/settings.md`, with names, types, defaults and meanings. The
//! defaults are read from the page.

mod setting;

use serde_json::Value;
pub use setting::DocumentedSetting;

use crate::sites::FILE;

/// The page. In its tables a default in code format is a value; a default in words is computed by the code.
const PAGE: &str = include_str!("../../../../docs/settings.md");
/// The prefix of the names that this project defines. Names that other programs define, such as `AWS_REGION`, are
/// used unchanged.
pub const PREFIX: &str = "SLUICE_";
/// Heading of the table of the edge's parts. Parts have no short names.
const PARTS: &str = "\n## What `make run`";
/// The head of the environment file.
const ENV_HEAD: &str = "\
# The settings of Sluice, for `--env-file` of podman and docker and for `EnvironmentFile=` of systemd.
# To change a setting, remove the `#` in front of its name. An empty value counts as unset.
";

/// All settings, as two tables in Markdown: the settings of the edge, and the settings of its parts, which
/// `make run` and the container image set.
pub fn tables() -> String {
    let parts = PAGE.split("\n\n");
    let tables: Vec<_> = parts.filter(|part| part.starts_with('|')).collect();
    tables.join("\n\n") + "\n"
}

/// All settings, as an environment file for container engines and systemd. Every assignment is commented out.
pub fn env_file() -> String {
    let parts = settings().map(|setting| format!("\n{}", setting.to_env()));
    ENV_HEAD.to_owned() + &parts.collect::<String>()
}

/// All settings, as a JSON array.
pub fn json() -> Value {
    settings().map(DocumentedSetting::to_json).collect()
}

/// All settings, in the order of the page.
pub fn settings() -> impl Iterator<Item = DocumentedSetting> {
    PAGE.lines().filter_map(DocumentedSetting::parse)
}

/// The names of all settings.
pub fn names() -> impl Iterator<Item = &'static str> {
    names_in(PAGE)
}

fn names_in(page: &'static str) -> impl Iterator<Item = &'static str> {
    let rows = page.lines();
    rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next())
}

/// The names of the settings that have a short name, which is the name without [`PREFIX`].
pub fn names_with_short_name() -> impl Iterator<Item = &'static str> {
    let page = PAGE.split_once(PARTS).map_or(PAGE, |(page, _)| page);
    names_in(page).filter(|name| name.starts_with(PREFIX))
}

/// The short name of the setting `name`; `None`: the setting has no short name.
pub fn short_name(name: &str) -> Option<&'static str> {
    let mut names = names_with_short_name();
    names.find(|known| *known == name)?.strip_prefix(PREFIX)
}

/// Whether the setting `name` is a secret, which may be in a file.
pub fn is_secret(name: &str) -> bool {
    settings().any(|setting| setting.name == name && setting.is_secret())
}

/// The variable that names the file with the secret `name`.
pub fn file_variable(name: &str) -> String {
    format!("{name}{FILE}")
}

/// All variables of the setting `name`: its name, its short name, and both with `_FILE` if it is a secret.
pub fn variables(name: &'static str) -> Vec<String> {
    let names = [Some(name), short_name(name)].into_iter().flatten();
    let files = names.clone().filter(|_| is_secret(name));
    let files = files.map(file_variable);
    names.map(str::to_owned).chain(files).collect()
}

/// The variables with secrets that Envoy does not need. Envoy needs those of AWS.
pub fn secrets_of_the_edge() -> impl Iterator<Item = String> {
    let secrets = names().filter(|name| is_secret(name) && !name.starts_with("AWS_"));
    secrets.flat_map(variables)
}

/// The default of the setting `name`, for a variable that is unset or empty. `None`: the default is in words.
pub fn default_value(name: &str) -> Option<&'static str> {
    let found = settings().find(|setting| setting.name == name);
    found?.default_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::system::Machine;
    use std::collections::HashMap;
    use std::ffi::OsString;

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
    fn an_environment_file_has_every_setting_and_sets_none() {
        let file = env_file();
        let is_comment = |line: &str| line.is_empty() || line.starts_with('#');
        assert!(file.lines().all(is_comment), "{file}");
        for setting in settings() {
            let assignment = format!("\n#{}=", setting.name);
            assert_eq!(file.matches(&assignment).count(), 1, "{assignment}");
        }
    }

    #[test]
    fn an_environment_file_without_its_comment_marks_sets_the_defaults() {
        let file = env_file();
        let assigned = file.lines().filter_map(|line| line.strip_prefix('#'));
        let mut assigned: HashMap<_, _> =
            assigned.filter_map(|line| line.split_once('=')).collect();
        // The port is valid only beside a certificate.
        assert_eq!(assigned.remove("SLUICE_EDGE_TLS_PORT"), Some("8443"));
        let set = |name: &str| assigned.get(name).map(Into::into);
        let machine = Machine::detect();
        let read_with = |lookup: &dyn Fn(&str) -> Option<OsString>| {
            format!("{:?}", Settings::on_machine(machine, lookup).unwrap())
        };
        assert_eq!(read_with(&set), read_with(&|_| None));
    }

    #[test]
    fn the_json_has_every_row_of_the_tables_and_no_markdown() {
        let json = json();
        let list = json.as_array().unwrap();
        assert_eq!(list.len(), rows().count());
        for (setting, cells) in list.iter().zip(rows()) {
            assert_eq!(format!("`{}`", setting["name"].as_str().unwrap()), cells[1]);
            assert_ne!(
                setting["default"].is_null(),
                setting["computed_default"].is_null()
            );
            let meaning = setting["meaning"].as_str().unwrap();
            assert!(
                !meaning.contains('`') && !meaning.contains("]("),
                "{meaning}"
            );
        }
    }

    #[test]
    fn the_settings_of_the_edge_have_short_names() {
        assert_eq!(short_name("SLUICE_ORIGIN"), Some("ORIGIN"));
        for none in [
            "SLUICE_STATE",
            "SLUICE_ENVOY",
            "AWS_REGION",
            "SSL_CERT_FILE",
        ] {
            assert_eq!(short_name(none), None, "{none}");
        }
    }

    #[test]
    fn a_secret_may_be_in_a_file() {
        let variables = variables("SLUICE_PURGE_TOKEN").join(" ");
        let expected = "SLUICE_PURGE_TOKEN PURGE_TOKEN SLUICE_PURGE_TOKEN_FILE PURGE_TOKEN_FILE";
        assert_eq!(variables, expected);
        assert!(is_secret("AWS_SECRET_ACCESS_KEY") && !is_secret("SLUICE_TLS_KEY"));
    }

    #[test]
    fn a_default_is_a_value_or_described_in_words() {
        assert_eq!(default_value("SLUICE_EDGE_PORT"), Some("8080"));
        assert_eq!(default_value("SLUICE_S3_ENDPOINT"), None);
        for in_words in [
            "SLUICE_S3_ADDRESSING",
            "SLUICE_CACHE_DIR",
            "SLUICE_CACHE_MAX_OBJECT_BYTES",
        ] {
            assert_eq!(default_value(in_words), None);
        }
    }
}
