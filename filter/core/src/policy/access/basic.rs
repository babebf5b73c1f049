// SPDX-License-Identifier: Apache-2.0
//! The scheme Basic (RFC 7617) in a policy: the place of the users, and the realm.

use serde_json::Value;

use crate::hexadecimal;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, read_text};
use crate::policy::forms::section::section;

/// The realm, unless the policy has one.
pub(super) const REALM: &str = "Restricted";

section! {
    /// Names and passwords of users, in HTTP's scheme Basic.
    pub struct BasicPolicy {
        /// The file with the users, as htpasswd -s writes it: a line NAME:{SHA}HASH or NAME:{SSHA}HASH for each.
        users: UserSource as UserFile,
        /// The text by which browsers distinguish the passwords of one host.
        realm: String as AuthenticationRealm = REALM.to_owned(),
    }
}

impl BasicPolicy {
    /// The value of `WWW-Authenticate`.
    pub(super) fn challenge(&self) -> String {
        format!("Basic realm=\"{}\", charset=\"UTF-8\"", self.realm)
    }
}

/// The place of users with the hashes of their passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserSource {
    /// The file with this path.
    File(String),
    /// The policy has the users in sealed form, as hexadecimal digits. The entry point seals them.
    Sealed(String),
}

/// The path of a file with users, or the sealed users.
pub(in crate::policy) struct UserFile;

impl Form<UserSource> for UserFile {
    fn read(value: &Value, _: Kind) -> Result<UserSource, PolicyError> {
        let sealed = value.get("sealed").and_then(Value::as_str);
        let sealed = sealed.filter(|digits| hexadecimal::bytes(digits).is_some());
        let file = value.as_str().filter(|file| !file.is_empty());
        let sealed = sealed.map(|digits| UserSource::Sealed(digits.to_owned()));
        let source = sealed.or(file.map(|file| UserSource::File(file.to_owned())));
        // NB: the error shows no value, because that may be the users themselves.
        source.ok_or_else(|| PolicyError::new("", "expected the path of a file with users"))
    }
}

/// The text of a realm.
pub(in crate::policy) struct AuthenticationRealm;

impl Form<String> for AuthenticationRealm {
    fn read(value: &Value, _: Kind) -> Result<String, PolicyError> {
        let expected = "at most 64 printable ASCII characters without \" and \\";
        read_text(value, expected, |text| {
            let fits = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
            let is_realm = (1..=64).contains(&text.len()) && text.bytes().all(fits);
            is_realm.then(|| text.to_owned())
        })
    }
}
