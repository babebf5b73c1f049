// SPDX-License-Identifier: Apache-2.0
//! `sluice seal`: a key of signed URLs, encrypted for the policy of a gateway in the mesh.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::Args;
use sluice_core::access::sealed_key::{KeyPlace, SealedKey};
use sluice_core::key::secret::StoreSecret;
use sluice_core::policy::is_key_name;

use crate::sites::{SigningSecret, read_secret};

/// The name of the only site of a gateway.
const ONLY_SITE: &str = "";

/// Options of `sluice seal`.
#[derive(Args, Debug)]
pub struct Seal {
    /// The name of the key in the policy, such as 2026a
    #[arg(value_parser = read_name)]
    pub name: String,
    /// The file with the key
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// The file with the secret of the gateway's cache: 32 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub secret: PathBuf,
}

fn read_name(text: &str) -> Result<String, String> {
    let name = Some(text.to_owned()).filter(|text| is_key_name(text));
    name.ok_or_else(|| {
        "expected a name of at most 64 letters, digits, dots, hyphens and underscores".to_owned()
    })
}

impl Seal {
    /// Prints the value of `sealed` in the policy.
    ///
    /// # Errors
    /// The errors of [`Seal::sealed`].
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        println!("{}", self.sealed()?);
        Ok(ExitCode::SUCCESS)
    }

    /// The key, sealed for the only site of a gateway.
    ///
    /// # Errors
    /// A file cannot be read, the key is too short or too long, or the secret is none.
    pub fn sealed(&self) -> anyhow::Result<SealedKey> {
        let key = SigningSecret::of_file(&self.name, self.key.clone());
        let key = key.map_err(|error| anyhow!("--key: {error}"))?;
        let secret = read_secret(&self.secret).map_err(|error| anyhow!("--secret: {error}"))?;
        let secret = StoreSecret::parse(&secret);
        let secret = secret.with_context(|| {
            let file = self.secret.display();
            format!("--secret: {file}: expected {}", StoreSecret::ACCEPTED)
        })?;
        let place = KeyPlace {
            site: ONLY_SITE,
            name: &self.name,
        };
        Ok(SealedKey::seal(&secret, &place, key.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "a key of at least thirty-two bytes";

    fn seal(key: &str, secret: &str) -> anyhow::Result<SealedKey> {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let seal = Seal {
            name: "a".to_owned(),
            key: file("key", key),
            secret: file("secret", secret),
        };
        seal.sealed()
    }

    #[test]
    fn a_gateway_with_that_secret_opens_the_key_and_no_other() {
        let sealed = seal(&format!("{KEY}\n"), "000102030405060708090a0b0c0d0e0f\n").unwrap();
        let open = |secret: &str, name: &str| {
            let secret = StoreSecret::parse(secret).unwrap();
            sealed.open(&secret, &KeyPlace { site: "", name })
        };
        assert_eq!(
            open("000102030405060708090a0b0c0d0e0f", "a").unwrap(),
            KEY.as_bytes()
        );
        assert_eq!(open("000102030405060708090a0b0c0d0e0f", "b"), None);
        assert_eq!(open("100102030405060708090a0b0c0d0e0f", "a"), None);
    }

    #[test]
    fn a_wrong_file_is_named_and_not_shown() {
        for (key, secret, named) in [
            ("short", "000102030405060708090a0b0c0d0e0f", "--key: "),
            (KEY, "not-a-secret", "--secret: "),
        ] {
            let error = seal(key, secret).unwrap_err().to_string();
            assert!(
                error.starts_with(named) && error.contains("expected"),
                "{error}"
            );
            assert!(
                !error.contains("short") && !error.contains("not-a-secret"),
                "{error}"
            );
        }
    }
}
