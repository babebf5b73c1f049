// SPDX-License-Identifier: Apache-2.0
//! The issuer of the scheme jwt, with the keys that verify its tokens.

use std::path::PathBuf;

use serde_json::{Value, json};
use sluice_core::policy::{AccessPolicy, JwtPolicy, KeySetSource};

use super::checker_server::find_server;
use crate::origin::Endpoint;
use crate::sites::file::Document;
use crate::sites::read_secret;

/// The most bytes of a JWK Set.
pub const LONGEST_KEY_SET: usize = 64 << 10;
/// The types of public keys (RFC 7518, 6.1; RFC 8037, 2). The type `oct` is a secret: a server that verifies with it
/// could also sign, and a dump of Envoy's configuration would show it.
const KEY_TYPES: [&str; 3] = ["EC", "OKP", "RSA"];

/// The issuer of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenIssuer {
    /// The rules, with a hash in place of the keys.
    pub policy: JwtPolicy,
    /// The keys.
    pub keys: IssuerKeys,
}

/// The keys of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssuerKeys {
    /// A file.
    File {
        /// The path.
        path: PathBuf,
        /// The text of the JWK Set.
        text: String,
    },
    /// A URL that Envoy fetches.
    Url {
        /// The URL.
        url: String,
        /// The address of the server.
        endpoint: Endpoint,
        /// The file with the CA certificates that verify the server.
        ca: Option<PathBuf>,
    },
}

impl TokenIssuer {
    /// The issuer of these rules, if they have one. Its files are beside `document`.
    ///
    /// # Errors
    /// The name of the field, and the reason.
    pub fn of(
        policy: &AccessPolicy,
        document: &Document,
    ) -> Result<Option<Self>, (&'static str, String)> {
        let Some(jwt) = policy.jwt() else {
            return Ok(None);
        };
        let keys = match &jwt.jwks {
            KeySetSource::File(_) if jwt.ca.is_some() => {
                return Err(("ca", "expected jwks to be a URL with https".to_owned()));
            }
            KeySetSource::File(file) => {
                let path = document.path(file);
                let text = read_secret(&path).map_err(|error| ("jwks", error))?;
                check_key_set(&text)
                    .map_err(|error| ("jwks", format!("{}: {error}", path.display())))?;
                IssuerKeys::File { path, text }
            }
            KeySetSource::Url(url) => {
                let found = find_server(url, jwt.ca.as_deref(), document);
                let (endpoint, ca) = found.map_err(|(field, error)| match field {
                    "url" => ("jwks", error),
                    other => (other, error),
                })?;
                IssuerKeys::Url {
                    url: url.text.clone(),
                    endpoint,
                    ca,
                }
            }
            KeySetSource::Installed(_) => {
                let expected = "expected the path of a file, or a URL";
                return Err(("jwks", expected.to_owned()));
            }
        };
        let text = match &keys {
            IssuerKeys::File { text, .. } => text.as_str(),
            IssuerKeys::Url { .. } => "",
        };
        let mut policy = jwt.clone();
        policy.jwks = KeySetSource::Installed(jwt.hash_of_keys(text));
        Ok(Some(Self { policy, keys }))
    }

    /// Puts the hash of the keys in place of their source in the rules.
    pub fn install(&self, section: &mut Value) {
        let KeySetSource::Installed(hash) = &self.policy.jwks else {
            return;
        };
        let schemes = section.get_mut("any_of").and_then(Value::as_array_mut);
        for scheme in schemes.into_iter().flatten() {
            if let Some(jwks) = scheme.pointer_mut("/jwt/jwks") {
                *jwks = json!({ "installed": hash });
            }
        }
    }
}

/// Checks that a text is a JWK Set (RFC 7517, 5) of public keys.
///
/// # Errors
/// The text is something else, too long, or has a private key. No error shows a key.
pub fn check_key_set(text: &str) -> Result<(), String> {
    if text.len() > LONGEST_KEY_SET {
        let length = text.len();
        return Err(format!(
            "expected at most {LONGEST_KEY_SET} bytes: it has {length}"
        ));
    }
    let set: Value = serde_json::from_str(text)
        .map_err(|error| format!("expected a JWK Set in JSON ({error})"))?;
    let keys = set.get("keys").and_then(Value::as_array);
    let keys = keys.filter(|keys| !keys.is_empty());
    let keys =
        keys.ok_or("expected a JWK Set: an object with a list `keys` of at least one key")?;
    for (index, key) in keys.iter().enumerate() {
        let kind = key.get("kty").and_then(Value::as_str).unwrap_or_default();
        if !KEY_TYPES.contains(&kind) {
            let accepted = KEY_TYPES.join(", ");
            return Err(format!(
                "keys[{index}].kty: {kind:?}: expected a public key of the type {accepted}"
            ));
        }
        if key.get("d").is_some() {
            return Err(format!(
                "keys[{index}].d: expected a public key without its private part: whoever has that part can issue tokens"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_keys_are_a_key_set() {
        assert_eq!(
            check_key_set(r#"{"keys": [{"kty": "EC", "x": "a"}, {"kty": "RSA"}]}"#),
            Ok(())
        );
        for (text, error) in [
            ("", "expected a JWK Set in JSON"),
            ("[]", "expected a JWK Set: an object"),
            (r#"{"keys": []}"#, "expected a JWK Set: an object"),
            (
                r#"{"keys": [{"kty": "oct", "k": "hush"}]}"#,
                r#"keys[0].kty: "oct": expected a public key"#,
            ),
            (
                r#"{"keys": [{"kty": "EC"}, {"kty": "EC", "d": "hush"}]}"#,
                "keys[1].d: expected a public key",
            ),
            (r#"{"keys": ["hush"]}"#, r#"keys[0].kty: "": expected"#),
        ] {
            let found = check_key_set(text).unwrap_err();
            assert!(
                found.starts_with(error) && !found.contains("hush"),
                "{found}"
            );
        }
        let long = "x".repeat(LONGEST_KEY_SET + 1);
        assert!(
            check_key_set(&long)
                .unwrap_err()
                .starts_with("expected at most")
        );
    }
}
