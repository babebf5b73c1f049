// SPDX-License-Identifier: Apache-2.0
//! The text of a secret, from any source: a variable, a file that a variable names, or systemd's credentials.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable with systemd's folder of credentials (`LoadCredential=`). A file there has the name of a variable.
pub const CREDENTIALS_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";
/// The end of a variable's name, if the variable names the file with a secret.
pub const FILE: &str = "_FILE";

/// The rule for a secret. NB: no error may show the secret itself.
pub const ACCEPTED_SECRET: &str = "must have no line end or other control character, and no blank at its beginning or its \
                                   end (`echo` adds a line end, and `printf %s` does not)";

/// Whether a text can be a secret. A Kubernetes secret that was made with `echo` has a line end. All requests
/// signed or sent with such a secret would be refused without a hint at the reason.
pub fn is_secret(text: &str) -> bool {
    !text.contains(char::is_control) && text.trim() == text
}

/// The text of a file with a secret, without the line end that editors and `echo` add. The file cannot be read, or is
/// empty: an error that says so, and shows no secret.
pub fn read_secret(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| format!("expected {shown} to be a file that can be read ({error})"))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    match text.is_empty() {
        true => Err(format!("expected {shown} to have a secret: it is empty")),
        false => Ok(text.to_owned()),
    }
}

/// Finds the secret `name` by `lookup`: the value of the variable `name`, the text of the file that the variable `name`
/// with `_FILE` names, or the text of the file `name` in systemd's folder of credentials. `Ok(None)`: there is none.
/// The error names the variable, and shows no secret.
pub fn find_secret(
    lookup: &dyn Fn(&str) -> Option<OsString>,
    name: &str,
) -> Result<Option<OsString>, String> {
    let set = |variable: &str| lookup(variable).filter(|value| !value.is_empty());
    let variable = format!("{name}{FILE}");
    match (set(name), set(&variable).map(PathBuf::from)) {
        (Some(_), Some(_)) => Err(format!("{name} and {variable}: expected only one of them")),
        (Some(value), None) => Ok(Some(value)),
        (None, Some(file)) => read_secret(&file)
            .map(|text| Some(text.into()))
            .map_err(|error| format!("{variable}: {error}")),
        (None, None) => {
            let file = set(CREDENTIALS_DIRECTORY).map(|folder| Path::new(&folder).join(name));
            let file = file.filter(|file| file.exists());
            let text = file.map(|file| read_secret(&file)).transpose();
            text.map(|text| text.map(OsString::from))
                .map_err(|error| format!("{CREDENTIALS_DIRECTORY}: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_a_variable_a_file_or_the_credentials_of_systemd() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("KEY"), "hush\n").unwrap();
        let file = OsString::from(folder.path().join("KEY"));
        let find = |variables: &[(&str, OsString)]| {
            let lookup = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.clone())
            };
            find_secret(&lookup, "KEY")
        };
        let of_systemd = (CREDENTIALS_DIRECTORY, OsString::from(folder.path()));
        for variables in [
            &[("KEY", "hush".into())][..],
            &[("KEY_FILE", file.clone())],
            &[of_systemd],
        ] {
            assert_eq!(find(variables), Ok(Some("hush".into())), "{variables:?}");
        }
        assert_eq!(find(&[("KEY", OsString::new())]), Ok(None));
        let both = find(&[("KEY", "hush".into()), ("KEY_FILE", file)]);
        assert_eq!(
            both,
            Err("KEY and KEY_FILE: expected only one of them".into())
        );
        let missing = find(&[("KEY_FILE", "/no/such/file".into())]).unwrap_err();
        let expected = "KEY_FILE: expected /no/such/file to be a file that can be read";
        assert!(missing.starts_with(expected), "{missing}");
    }

    #[test]
    fn a_secret_has_no_control_character_and_no_outer_blank() {
        for text in ["s", "wJalr/K7MDENG+bPx=", "two words", "h\u{fc}sh"] {
            assert!(is_secret(text), "{text:?}");
        }
        for text in [
            "s\n", "s\r\n", "\ns", "s\ns", "s ", " s", "s\t", "s\0", "s\u{7f}", "s\u{85}",
            "s\u{a0}",
        ] {
            assert!(!is_secret(text), "{text:?}");
        }
    }
}
