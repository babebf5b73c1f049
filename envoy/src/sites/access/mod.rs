// SPDX-License-Identifier: Apache-2.0
//! The access rules of a site, with the keys of its signed URLs and with its users.

mod checker_server;
mod signing_secret;
mod token_issuer;
mod users_file;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use serde_json::{Value, json};
use sluice_core::policy::{AccessPolicy, AccessScheme, KeyEntry, KeySource, Policy, UserSource};

use super::file::{Document, Problem};
use crate::origin::Origin;
pub use checker_server::CheckerServer;
pub use signing_secret::SigningSecret;
pub use token_issuer::{IssuerKeys, LONGEST_KEY_SET, TokenIssuer, check_key_set};
pub use users_file::UsersFile;

/// The path of the section in a policy.
const SECTION: &str = "access";

/// The access rules of a site.
#[derive(Clone, PartialEq)]
pub struct SiteAccess {
    /// The rules as the user has written them, without the keys themselves, and with a hash in place of the keys of an
    /// issuer of tokens.
    pub section: Value,
    /// The keys of signed URLs.
    pub keys: Vec<SigningSecret>,
    /// The users of the scheme Basic.
    pub users: Option<UsersFile>,
    /// The server of the scheme forward.
    pub checker: Option<CheckerServer>,
    /// The issuer of the scheme jwt.
    pub issuer: Option<TokenIssuer>,
    /// The rules, in parsed form.
    pub policy: AccessPolicy,
}

impl fmt::Debug for SiteAccess {
    // NB: the keys are secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("SiteAccess").field(&self.section).finish()
    }
}

/// The place of access rules: the document, the path of their field, and the environment with the keys.
#[derive(Clone, Copy)]
pub struct AccessReader<'a> {
    /// The document with the rules.
    pub document: &'a Document,
    /// The path of the rules in the document; empty if they are the whole document.
    pub path: &'a str,
    /// Finds the environment's variables.
    pub lookup: &'a dyn Fn(&str) -> Option<OsString>,
}

impl AccessReader<'_> {
    /// Reads the rules in `value` for a site with this origin, and the keys that they name.
    ///
    /// # Errors
    /// A rule is not valid, or a key cannot be read or is too short. No error shows a key.
    pub fn read(&self, value: &Value, origin: &Origin) -> Result<SiteAccess, Vec<Problem>> {
        let document = json!({"origin": origin.policy_section(), SECTION: value});
        let read = Policy::parse(document.to_string().as_bytes());
        let policy = read.map_err(|error| {
            let text = error.to_string();
            let message = text
                .split_once(": ")
                .map_or(text.as_str(), |(_, message)| message);
            let field = error.path().strip_prefix(SECTION).unwrap_or(error.path());
            vec![self.problem(field.trim_start_matches('.'), message)]
        })?;
        let Some(policy) = policy.access else {
            return Err(vec![self.problem("", "expected rules")]);
        };
        let (mut keys, mut problems) = (Vec::new(), Vec::new());
        for (field, entry) in entries(&policy) {
            match self.read_key(entry) {
                Ok(key) => keys.push(key),
                Err(message) => problems.push(self.problem(&field, &message)),
            }
        }
        let users = self.read_users(&policy).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let checker = self.find_checker(&policy).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let issuer = self.find_issuer(&policy).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let mut section = value.clone();
        if let Some(issuer) = &issuer {
            issuer.install(&mut section);
        }
        match problems.is_empty() {
            true => Ok(SiteAccess {
                section,
                keys,
                users,
                checker,
                issuer,
                policy,
            }),
            false => Err(problems),
        }
    }

    fn read_users(&self, policy: &AccessPolicy) -> Result<Option<UsersFile>, Problem> {
        for (index, scheme) in policy.any_of.iter().enumerate() {
            if let AccessScheme::Basic(basic) = scheme {
                let users = match &basic.users {
                    UserSource::File(file) => UsersFile::read(self.document.path(file)),
                    UserSource::Sealed(_) => Err("expected the path of a file".to_owned()),
                };
                let field = format!("any_of[{index}].basic.users");
                return users
                    .map(Some)
                    .map_err(|error| self.problem(&field, &error));
            }
        }
        Ok(None)
    }

    fn find_checker(&self, policy: &AccessPolicy) -> Result<Option<CheckerServer>, Problem> {
        CheckerServer::of(policy, self.document).map_err(|(field, error)| {
            let is_forward = |scheme: &AccessScheme| matches!(scheme, AccessScheme::Forward(_));
            let index = policy.any_of.iter().position(is_forward);
            let index = index.unwrap_or_default();
            self.problem(&format!("any_of[{index}].forward.{field}"), &error)
        })
    }

    fn find_issuer(&self, policy: &AccessPolicy) -> Result<Option<TokenIssuer>, Problem> {
        TokenIssuer::of(policy, self.document).map_err(|(field, error)| {
            let is_jwt = |scheme: &AccessScheme| matches!(scheme, AccessScheme::Jwt(_));
            let index = policy.any_of.iter().position(is_jwt).unwrap_or_default();
            self.problem(&format!("any_of[{index}].jwt.{field}"), &error)
        })
    }

    fn read_key(&self, entry: &KeyEntry) -> Result<SigningSecret, String> {
        match &entry.source {
            KeySource::Environment(variable) => {
                SigningSecret::of_variable(&entry.name, variable, self.lookup)
            }
            KeySource::File(file) => SigningSecret::of_file(&entry.name, self.document.path(file)),
            KeySource::Sealed(_) => Err("expected {env: NAME} or {file: PATH}".to_owned()),
        }
    }

    fn problem(&self, field: &str, message: &str) -> Problem {
        let separator = match (self.path, field) {
            ("", _) | (_, "") => "",
            (_, field) if field.starts_with('[') => "",
            _ => ".",
        };
        let field = [self.path, separator, field].concat();
        self.document.problem(&field, message)
    }
}

/// The keys of the rules, each with its path.
fn entries(policy: &AccessPolicy) -> impl Iterator<Item = (String, &KeyEntry)> {
    let schemes = policy.any_of.iter().enumerate();
    schemes.flat_map(|(index, scheme)| {
        let keys = match scheme {
            AccessScheme::Signed(signed) => signed.keys.as_slice(),
            _ => &[],
        };
        let path = move |entry: &KeyEntry| format!("any_of[{index}].signed.keys.{}", entry.name);
        keys.iter().map(move |entry| (path(entry), entry))
    })
}

impl SiteAccess {
    /// Reads the file of `SLUICE_ACCESS`, whose rules are those of the one site with this origin.
    ///
    /// # Errors
    /// The errors of [`AccessReader::read`], or the file cannot be read.
    pub fn read_file(
        file: &str,
        origin: &Origin,
        lookup: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Vec<Problem>> {
        let document = Document::read(file.as_ref(), file).map_err(|problem| vec![problem])?;
        let reader = AccessReader {
            document: &document,
            path: "",
            lookup,
        };
        reader.read(&document.value, origin)
    }

    /// The variables of the environment with keys, which Envoy does not need.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter_map(SigningSecret::variable)
    }

    /// The files with secrets: keys and users.
    pub fn secret_files(&self) -> impl Iterator<Item = &PathBuf> {
        let keys = self.keys.iter().filter_map(SigningSecret::file);
        keys.chain(self.users.as_ref().map(UsersFile::file))
    }

    /// The file with the public keys of the issuer of tokens.
    pub fn key_set_file(&self) -> Option<&PathBuf> {
        match &self.issuer.as_ref()?.keys {
            IssuerKeys::File { path, .. } => Some(path),
            IssuerKeys::Url { .. } => None,
        }
    }

    /// The files that the rules name.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.secret_files().chain(self.key_set_file())
    }
}
