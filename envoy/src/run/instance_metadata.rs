// SPDX-License-Identifier: Apache-2.0
//! The instance metadata service of EC2. Envoy asks it for credentials at its start and then every few seconds,
//! even if Envoy has other credentials.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::sites::ProfileKeys;

/// The variable of the AWS SDKs that stops these requests.
const DISABLED: &str = "AWS_EC2_METADATA_DISABLED";

/// Groups of variables. Each group names credentials that Envoy's standard chain prefers to those of the instance.
const SOURCES: [&[&str]; 4] = [
    &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
    &["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"],
    &["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
    &["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
];

/// The variable and the value that stop the requests, if the environment names other credentials. `lookup` finds
/// the variables. `None`: no other credentials are named, or the user has set the variable. A reload cannot change
/// the environment, so this holds for all later sites too.
pub fn switch(lookup: &dyn Fn(&str) -> Option<OsString>) -> Option<(&'static str, &'static str)> {
    let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let mut sources = SOURCES.iter();
    let has_source = sources.any(|names| names.iter().all(|name| set(name).is_some()));
    let is_needless = has_source || has_profile(&set);
    (is_needless && set(DISABLED).is_none()).then_some((DISABLED, "true"))
}

/// Whether a `credentials` file of AWS exists and has the keys of the chosen profile.
fn has_profile(set: &dyn Fn(&str) -> Option<OsString>) -> bool {
    let file = set("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
    let at_home = || Some(Path::new(&set("HOME")?).join(".aws/credentials"));
    let profile = set("AWS_PROFILE").unwrap_or_else(|| "default".into());
    file.or_else(at_home)
        .is_some_and(|file| ProfileKeys::read(&file, &profile.to_string_lossy()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether Envoy may ask the service.
    fn may(variables: &[(&str, &str)]) -> bool {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).into())
        };
        switch(&lookup).is_none()
    }

    #[test]
    fn an_instance_has_credentials_where_nothing_else_is_named() {
        assert!(may(&[]));
        assert!(may(&[
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "")
        ]));
        assert!(may(&[("AWS_ROLE_ARN", "arn:aws:iam::1:role/a")]));
        for variables in [
            &[("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")][..],
            &[
                ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"),
                ("AWS_ROLE_ARN", "arn:aws:iam::1:role/a"),
            ],
            &[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/a")],
            &[(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                "http://169.254.170.23/v1",
            )],
        ] {
            assert!(!may(variables), "{variables:?}");
        }
    }

    #[test]
    fn what_the_user_has_said_stays() {
        let keys = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];
        assert!(!may(&[keys[0], keys[1], (DISABLED, "")]));
        assert!(may(&[keys[0], keys[1], (DISABLED, "false")]));
    }

    #[test]
    fn a_file_counts_if_it_has_the_profile() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".aws/credentials");
        let [home, named] = [home.path(), file.as_path()].map(|path| path.to_str().unwrap());
        let at_home = [("HOME", home)];
        assert!(may(&at_home), "no file");
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        let text = "[default]\naws_access_key_id = k\naws_secret_access_key = s\n";
        std::fs::write(&file, text).unwrap();
        assert!(!may(&at_home));
        assert!(!may(&[("AWS_SHARED_CREDENTIALS_FILE", named)]));
        assert!(may(&[("HOME", home), ("AWS_PROFILE", "other")]));
        let elsewhere = ("AWS_SHARED_CREDENTIALS_FILE", "/no/such/file");
        assert!(may(&[("HOME", home), elsewhere]));
    }
}
