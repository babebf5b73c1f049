// SPDX-License-Identifier: Apache-2.0
//! The keys of signed URLs in a policy: their names, and the places of the keys themselves.

use serde_json::Value;

use crate::hexadecimal;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, object, one_of};

/// The most bytes of a key's name.
pub(in crate::policy) const MAX_NAME_BYTES: usize = 64;

/// The description of a key for messages. NB: it shows no value, because that may be the key itself.
const ACCEPTED: &str =
    "expected {env: NAME} or {file: PATH}, because no policy contains a key itself";

/// The place of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The variable of the entry point's environment with this name.
    Environment(String),
    /// The file with this path.
    File(String),
    /// The policy has the key in sealed form, as hexadecimal digits. The entry point seals keys.
    Sealed(String),
}

/// A key with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// The name, which is in signed URLs and in logs.
    pub name: String,
    /// The place of the key.
    pub source: KeySource,
}

/// Whether a key may have the name `text`.
pub fn is_key_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    (1..=MAX_NAME_BYTES).contains(&text.len()) && text.bytes().all(inner)
}

/// The keys by their names, at least one.
pub(in crate::policy) struct KeyEntries;

impl Form<Vec<KeyEntry>> for KeyEntries {
    fn read(value: &Value, _: Kind) -> Result<Vec<KeyEntry>, PolicyError> {
        let fields = object(value)?;
        if fields.is_empty() {
            return Err(PolicyError::new("", "expected at least one key"));
        }
        let entry = |(name, value): (&String, &Value)| {
            if !is_key_name(name) {
                let expected =
                    "expected a name of at most 64 letters, digits, dots, hyphens and underscores";
                return Err(PolicyError::new(name, expected));
            }
            let source = source(value).map_err(|error| error.within(name))?;
            let name = name.clone();
            Ok(KeyEntry { name, source })
        };
        fields.iter().map(entry).collect()
    }
}

fn source(value: &Value) -> Result<KeySource, PolicyError> {
    let refused = || PolicyError::new("", ACCEPTED);
    let mut fields = value.as_object().ok_or_else(refused)?.iter();
    let (Some((field, text)), None) = (fields.next(), fields.next()) else {
        return Err(refused());
    };
    let text = text.as_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(refused)?;
    match field.as_str() {
        "env" if is_variable(text) => Ok(KeySource::Environment(text.to_owned())),
        "env" => Err(PolicyError::new("env", "expected the name of a variable")),
        "file" => Ok(KeySource::File(text.to_owned())),
        "sealed" if hexadecimal::bytes(text).is_some() => Ok(KeySource::Sealed(text.to_owned())),
        "sealed" => Err(PolicyError::new("sealed", "expected hexadecimal digits")),
        unknown => {
            let expected = format!("unknown field, expected {}", one_of(&["env", "file"]));
            Err(PolicyError::new(unknown, expected))
        }
    }
}

fn is_variable(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(inner) && !text.starts_with(|first: char| first.is_ascii_digit())
}
