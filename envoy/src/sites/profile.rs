// SPDX-License-Identifier: Apache-2.0
//! The profiles of a file in the format of AWS's `credentials`.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::secret_text::{ACCEPTED_SECRET, is_secret};

/// The keys of a profile. NB: a secret, which has no `Debug`.
pub struct ProfileKeys {
    /// `aws_access_key_id`.
    pub access_key_id: String,
    /// `aws_secret_access_key`.
    pub secret_access_key: String,
    /// `aws_session_token`.
    pub session_token: Option<String>,
}

impl ProfileKeys {
    /// Reads a profile of a file.
    ///
    /// # Errors
    /// The file cannot be read, or does not have the profile with both keys. The error shows nothing of the file.
    pub fn read(file: &Path, profile: &str) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).context("a file that can be read")?;
        let mut fields = fields(&text, profile).with_context(|| {
            format!("a file with the profile {profile}: there is no line [{profile}]")
        })?;
        let mut take = |name: &str| fields.remove(name).filter(|value| !value.is_empty());
        let (id, secret) = (take("aws_access_key_id"), take("aws_secret_access_key"));
        ensure!(
            id.is_some() && secret.is_some(),
            "a file whose profile {profile} has aws_access_key_id and aws_secret_access_key"
        );
        let token = take("aws_session_token");
        for (name, value) in [
            ("aws_access_key_id", &id),
            ("aws_secret_access_key", &secret),
            ("aws_session_token", &token),
        ] {
            ensure!(
                value.as_deref().is_none_or(is_secret),
                "a file whose profile {profile} has a proper {name}: it {ACCEPTED_SECRET}"
            );
        }
        Ok(Self {
            access_key_id: id.unwrap_or_default(),
            secret_access_key: secret.unwrap_or_default(),
            session_token: token,
        })
    }
}

/// The fields of a profile by their names in lower case; `None`: the profile does not exist.
fn fields(text: &str, profile: &str) -> Option<HashMap<String, String>> {
    let header = format!("[{profile}]");
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| *line == header)?;
    let fields = lines.take_while(|line| !line.starts_with('['));
    let fields = fields.filter_map(|line| line.split_once('='));
    let fields =
        fields.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    Some(fields.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, profile: &str) -> Result<ProfileKeys, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        std::fs::write(&file, text).unwrap();
        ProfileKeys::read(&file, profile).map_err(|error| format!("{error:#}"))
    }

    const TWO: &str = "[default]\naws_access_key_id = a\naws_secret_access_key = hush\n\n\
                       [assets]\naws_access_key_id=b\naws_secret_access_key=hush=\naws_session_token=t\n";

    #[test]
    fn a_profile_has_its_own_keys() {
        let keys = read(TWO, "assets").ok().unwrap();
        assert_eq!(
            (keys.access_key_id.as_str(), keys.secret_access_key.as_str()),
            ("b", "hush=")
        );
        assert_eq!(keys.session_token.as_deref(), Some("t"));
        assert!(read(TWO, "default").is_ok_and(|keys| keys.session_token.is_none()));
    }

    #[test]
    fn a_file_without_the_profile_or_its_keys_is_refused_and_not_shown() {
        for (text, expected) in [
            (TWO, "there is no line [other]"),
            (
                "[other]\naws_access_key_id = hush\n",
                "aws_secret_access_key",
            ),
            (
                "[other]\naws_access_key_id =\naws_secret_access_key = hush\n",
                "aws_access_key_id",
            ),
            (
                "[other]\naws_access_key_id = k\naws_secret_access_key = hush\u{7}hush\n",
                "a proper aws_secret_access_key: it must have no line end",
            ),
            ("", "there is no line [other]"),
        ] {
            let error = read(text, "other").err().unwrap();
            assert!(
                error.contains(expected) && !error.contains("hush"),
                "{error}"
            );
        }
    }
}
