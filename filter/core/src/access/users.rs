// SPDX-License-Identifier: Apache-2.0
//! The users of the scheme Basic (RFC 7617), and the verification of their passwords.
//!
//! The file is one of `htpasswd`, with hashes that are fast to compute: a worker verifies a password with each request,
//! and a slow hash would stop all other requests of the worker.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest as _, Sha1};
use subtle::ConstantTimeEq as _;

use super::sealed_key::{KeyPlace, LONGEST_SEALED, SealedKey};
use crate::key::secret::StoreSecret;
use crate::policy::{Policy, PolicyError, UserSource};

/// The most bytes of a file with users.
pub const LONGEST_USERS: usize = LONGEST_SEALED;
/// The name of the place of sealed users. NB: no key of signed URLs has such a name.
const PLACE: &str = "basic users";
/// The command that makes a line.
const COMMAND: &str = "`htpasswd -s FILE NAME` makes such a line";
/// Bytes of a hash.
const HASH: usize = 20;

/// A user with the hash of the password.
#[derive(Clone)]
struct PasswordUser {
    name: String,
    hash: [u8; HASH],
    /// The bytes that were hashed behind the password; empty for `{SHA}`.
    salt: Box<[u8]>,
}

impl PasswordUser {
    /// Reads a line. The error shows no hash.
    fn parse(line: &str) -> Result<Self, String> {
        let (name, hash) = line.split_once(':').unwrap_or_default();
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err("expected NAME:{SHA}HASH or NAME:{SSHA}HASH".to_owned());
        }
        let (encoded, salted) = match (hash.strip_prefix("{SHA}"), hash.strip_prefix("{SSHA}")) {
            (Some(encoded), _) => (encoded, false),
            (None, Some(encoded)) => (encoded, true),
            (None, None) => return Err(format!("user {name:?}: {}", refusal(hash))),
        };
        let decoded = BASE64_STANDARD.decode(encoded).ok();
        let parts = decoded.as_deref().and_then(<[u8]>::split_first_chunk);
        let parts = parts.filter(|(_, salt)| salt.is_empty() != salted);
        let (hash, salt) = parts.ok_or_else(|| {
            format!("user {name:?}: expected the hash in Base64, with a salt for {{SSHA}} alone ({COMMAND})")
        })?;
        Ok(Self {
            name: name.to_owned(),
            hash: *hash,
            salt: salt.into(),
        })
    }

    fn has_password(&self, password: &[u8]) -> bool {
        let mut hash = Sha1::new();
        hash.update(password);
        hash.update(&self.salt);
        let hash: [u8; HASH] = hash.finalize().into();
        hash.ct_eq(&self.hash).into()
    }
}

/// The reason for which a hash is not accepted. It does not show the hash.
fn refusal(hash: &str) -> String {
    let kind = match hash {
        _ if hash.starts_with("$2") => "a hash of bcrypt",
        _ if hash.starts_with("$apr1$") => "a hash of apr1",
        _ if hash.starts_with('$') || hash.len() == 13 => "a hash of crypt",
        _ => "a hash of an unknown kind",
    };
    format!(
        "{kind}: expected {{SHA}} or {{SSHA}}, because the edge verifies the password with each request, and a hash \
         that takes 50 ms would stop a worker ({COMMAND})"
    )
}

/// The users of a site.
#[derive(Clone, Default)]
pub struct PasswordUsers(Vec<PasswordUser>);

impl PasswordUsers {
    /// Reads the text of a file of `htpasswd`. Empty lines and lines that begin with `#` have no meaning.
    ///
    /// # Errors
    /// The line, and the expected form. No error shows a hash.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut users: Vec<PasswordUser> = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let user =
                PasswordUser::parse(line).map_err(|error| format!("line {number}: {error}"))?;
            if users.iter().any(|other| other.name == user.name) {
                return Err(format!(
                    "line {number}: user {:?}: expected each user once",
                    user.name
                ));
            }
            users.push(user);
        }
        match users.is_empty() {
            true => Err(format!("expected at least one user ({COMMAND})")),
            false => Ok(Self(users)),
        }
    }

    /// Seals the text of a file for its site.
    pub fn seal(secret: &StoreSecret, site: &str, text: &str) -> SealedKey {
        SealedKey::seal(secret, &KeyPlace { site, name: PLACE }, text.as_bytes())
    }

    /// Opens the sealed users of a policy; none if the policy has no scheme Basic.
    ///
    /// # Errors
    /// The users were not sealed with this secret. The error shows no part of them.
    pub fn open(policy: &Policy, secret: &StoreSecret) -> Result<Self, PolicyError> {
        let basic = policy.access.as_ref().and_then(|access| access.basic());
        let Some(basic) = basic else {
            return Ok(Self::default());
        };
        let place = KeyPlace {
            site: &policy.site.name,
            name: PLACE,
        };
        let opened = match &basic.users {
            UserSource::Sealed(text) => SealedKey::from_hex(text),
            UserSource::File(_) => None,
        };
        let opened = opened.and_then(|sealed| sealed.open(secret, &place));
        let text = opened.and_then(|text| String::from_utf8(text).ok());
        let users = text.and_then(|text| Self::parse(&text).ok());
        users.ok_or_else(|| {
            let expected = "expected users that this edge has sealed";
            PolicyError::new("access.any_of.basic.users", expected)
        })
    }

    /// The name of the user whose password the value of `Authorization` has. An unknown user costs as much as a known
    /// one.
    pub fn verify(&self, authorization: &[u8]) -> Option<&str> {
        let (name, password) = credentials(authorization)?;
        // NB: the search has no early end, so that its time says nothing about the name.
        let known = self.0.iter().fold(None, |known, user| {
            (user.name.as_bytes() == name).then_some(user).or(known)
        });
        let user = known.or(self.0.first())?;
        let is_right = user.has_password(&password);
        known.filter(|_| is_right).map(|user| user.name.as_str())
    }
}

impl fmt::Debug for PasswordUsers {
    // NB: the hashes are secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PasswordUsers({})", self.0.len())
    }
}

/// Whether the value of `Authorization` has the scheme Basic.
pub fn is_basic(authorization: &[u8]) -> bool {
    encoded(authorization).is_some()
}

fn encoded(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = authorization.split_at_checked(6)?;
    (scheme.eq_ignore_ascii_case(b"basic ")).then(|| rest.trim_ascii())
}

/// The name and the password in the value of `Authorization`.
fn credentials(authorization: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let decoded = BASE64_STANDARD.decode(encoded(authorization)?).ok()?;
    let at = decoded.iter().position(|&byte| byte == b':')?;
    let (name, password) = decoded.split_at_checked(at)?;
    Some((name.to_vec(), password.get(1..)?.to_vec()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// `htpasswd -nbs`: ada has the password `secret`, and eve the password `pass:word` with the salt `salt`.
    const USERS: &str = "# users\nada:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n\neve:{SSHA}+Oz42b3EHMNaWNlxW/7tiozU6pVzYWx0\n";

    fn authorization(text: &str) -> Vec<u8> {
        format!("Basic {}", BASE64_STANDARD.encode(text)).into_bytes()
    }

    #[test]
    fn a_user_has_one_password() {
        let users = PasswordUsers::parse(USERS).unwrap();
        for (text, user) in [
            ("ada:secret", Some("ada")),
            ("eve:pass:word", Some("eve")),
            ("ada:Secret", None),
            ("ada:", None),
            ("ada", None),
            ("eve:secret", None),
            ("bob:secret", None),
            (":secret", None),
            ("", None),
        ] {
            assert_eq!(users.verify(&authorization(text)), user, "{text}");
        }
        let right = authorization("ada:secret");
        let lower = [b"bAsIc  ", right.get(6..).unwrap()].concat();
        assert_eq!(users.verify(&lower), Some("ada"));
        for other in [
            &b"Basic"[..],
            b"Basic ====",
            b"Bearer YWRhOnNlY3JldA==",
            b"",
        ] {
            assert_eq!(users.verify(other), None);
        }
        assert_eq!(PasswordUsers::default().verify(&right), None);
    }

    #[test]
    fn a_wrong_line_is_refused_and_not_shown() {
        for (line, error) in [
            ("", "expected at least one user"),
            ("ada", "line 1: expected NAME:{SHA}HASH"),
            (
                ":{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
                "line 1: expected NAME",
            ),
            (
                "ada:$2y$05$0123456789",
                "line 1: user \"ada\": a hash of bcrypt: expected {SHA} or {SSHA}",
            ),
            (
                "ada:$apr1$0123456789",
                "line 1: user \"ada\": a hash of apr1",
            ),
            ("ada:$6$0123456789", "line 1: user \"ada\": a hash of crypt"),
            ("ada:0123456789abc", "line 1: user \"ada\": a hash of crypt"),
            (
                "ada:0123456789",
                "line 1: user \"ada\": a hash of an unknown kind",
            ),
            (
                "ada:{SHA}0123456789",
                "line 1: user \"ada\": expected the hash in Base64",
            ),
            (
                "ada:{SSHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
                "line 1: user \"ada\": expected the hash",
            ),
            (
                "ada:{SHA}+Oz42b3EHMNaWNlxW/7tiozU6pVzYWx0",
                "line 1: user \"ada\": expected the hash",
            ),
        ] {
            let found = PasswordUsers::parse(line).unwrap_err();
            assert!(found.starts_with(error), "{line}: {found}");
            assert!(!found.contains("0123456789"), "{found}");
        }
        let twice = format!("{USERS}ada:{{SHA}}5en6G6MezRroT3XKqkdPOmY/BfQ=");
        let error = PasswordUsers::parse(&twice).unwrap_err();
        assert_eq!(error, "line 5: user \"ada\": expected each user once");
    }
}
