// SPDX-License-Identifier: Apache-2.0
//! The parameters of a signature, in a query or in a cookie.

use std::borrow::Cow;

use crate::access::grant::PREFIX_END;
use crate::access::signing_key::Signature;
use crate::hexadecimal;
use crate::http::url::escaping::unescaped;
use crate::policy::{Network, is_key_name};

/// The beginning of the names of all parameters. A site with signed URLs has no other parameters with it.
pub const PARAMETER_PREFIX: &str = "sluice-";
/// The name of the key.
pub const KEY: &str = "sluice-key";
/// The end, in seconds since the Unix epoch.
pub const EXPIRES: &str = "sluice-expires";
/// The beginning, in seconds since the Unix epoch.
pub const NOT_BEFORE: &str = "sluice-not-before";
/// The network of the client.
pub const FROM: &str = "sluice-from";
/// The prefix of the paths, with [`PREFIX_END`].
pub const PREFIX: &str = "sluice-prefix";
/// The signature, as 64 lower-case hexadecimal digits.
pub const SIGNATURE: &str = "sluice-signature";

/// Longest prefix, in bytes.
const MAX_PREFIX_BYTES: usize = 4_096;

/// The parameters of one signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureParameters {
    /// The name of the key.
    pub key: String,
    /// The end, in seconds since the Unix epoch.
    pub expires: u64,
    /// The beginning, in seconds since the Unix epoch.
    pub not_before: Option<u64>,
    /// The network of the client, as a text and in parsed form.
    pub from: Option<(String, Network)>,
    /// The prefix of the paths; `None` if the signature is for one URL.
    pub prefix: Option<String>,
    /// The signature.
    pub signature: Signature,
}

/// Parameters that are not those of one signature: one is missing, unknown, misspelled or given twice, or has a
/// value that is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedParameters;

/// The values of the parameters, which may be escaped.
#[derive(Default)]
struct Values<'a> {
    key: Option<Cow<'a, str>>,
    expires: Option<Cow<'a, str>>,
    not_before: Option<Cow<'a, str>>,
    from: Option<Cow<'a, str>>,
    prefix: Option<Cow<'a, str>>,
    signature: Option<Cow<'a, str>>,
}

impl SignatureParameters {
    /// Reads the parameters, each as `NAME=VALUE`. Escapes in a value are decoded once; a name has none.
    ///
    /// # Errors
    /// The parameters are not those of one signature.
    pub fn parse<'a>(
        parameters: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, MalformedParameters> {
        let mut values = Values::default();
        for parameter in parameters {
            values.take(parameter).ok_or(MalformedParameters)?;
        }
        values.complete().ok_or(MalformedParameters)
    }
}

impl<'a> Values<'a> {
    fn take(&mut self, parameter: &'a [u8]) -> Option<()> {
        let (name, value) = std::str::from_utf8(parameter).ok()?.split_once('=')?;
        let place = match name {
            KEY => &mut self.key,
            EXPIRES => &mut self.expires,
            NOT_BEFORE => &mut self.not_before,
            FROM => &mut self.from,
            PREFIX => &mut self.prefix,
            SIGNATURE => &mut self.signature,
            _ => return None,
        };
        let value = match value.contains('%') {
            true => String::from_utf8(unescaped(value.as_bytes()).collect())
                .ok()?
                .into(),
            false => value.into(),
        };
        place.replace(value).is_none().then_some(())
    }

    fn complete(self) -> Option<SignatureParameters> {
        let is_prefix = |prefix: &str| {
            let visible = prefix.bytes().all(|byte| byte.is_ascii_graphic());
            let bounded = prefix.len() <= MAX_PREFIX_BYTES;
            visible && bounded && prefix.starts_with('/') && prefix.ends_with(PREFIX_END)
        };
        if self
            .prefix
            .as_deref()
            .is_some_and(|prefix| !is_prefix(prefix))
        {
            return None;
        }
        let from = match self.from {
            Some(text) => {
                let network = Network::parse(&text)?;
                Some((text.into_owned(), network))
            }
            None => None,
        };
        let not_before = match self.not_before {
            Some(text) => Some(time(&text)?),
            None => None,
        };
        Some(SignatureParameters {
            key: self.key.filter(|key| is_key_name(key))?.into_owned(),
            expires: time(&self.expires?)?,
            not_before,
            from,
            prefix: self.prefix.map(Cow::into_owned),
            signature: hexadecimal::bytes(&self.signature?)?.try_into().ok()?,
        })
    }
}

/// Reads a number of seconds in its one spelling.
fn time(text: &str) -> Option<u64> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_shortest = text == "0" || !text.starts_with('0');
    text.parse().ok().filter(|_| is_digits && is_shortest)
}
