// SPDX-License-Identifier: Apache-2.0
//! The certificates of SNS. Their keys sign the messages of SNS.

use ring::signature::{
    RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
};
use x509_parser::pem::parse_x509_pem;

use super::message::SignatureVersion;
use super::topic::Topic;

/// The file name in a `SigningCertURL`, if the URL belongs to SNS in the topic's region.
pub fn certificate_file<'a>(url: &'a str, topic: &Topic) -> Option<&'a str> {
    let path = url.strip_prefix("https://")?.strip_prefix(&topic.host)?;
    let file = path.strip_prefix('/')?;
    let word = file
        .strip_prefix("SimpleNotificationService-")?
        .strip_suffix(".pem")?;
    let valid = (1..=64).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric());
    valid.then_some(file)
}

/// Whether SNS signs under this common name: `sns.amazonaws.com`, and in some regions `sns-signing.REGION.DOMAIN`
/// or `sns-REGION.DOMAIN`, where the region may be a neighboring one.
fn is_signer(name: &str, topic: &Topic) -> bool {
    let label = name
        .strip_suffix(topic.domain)
        .and_then(|rest| rest.strip_suffix('.'));
    name == "sns.amazonaws.com" || label.is_some_and(|label| label.starts_with("sns-"))
}

/// The public key of a certificate.
#[derive(Debug)]
pub struct SigningKey {
    key: Vec<u8>,
    /// The validity, in seconds since 1970.
    valid: std::ops::RangeInclusive<i64>,
}

impl SigningKey {
    /// Reads a certificate in PEM, if it belongs to SNS in the topic's partition of AWS. SNS sends it without its
    /// chain, so it is only as trustworthy as the connection.
    pub fn from_pem(pem: &[u8], topic: &Topic) -> Option<Self> {
        let (_, pem) = parse_x509_pem(pem).ok()?;
        let certificate = pem.parse_x509().ok()?;
        let mut names = certificate.subject().iter_common_name();
        names.find(|name| name.as_str().is_ok_and(|name| is_signer(name, topic)))?;
        let validity = certificate.validity();
        let key = &certificate.public_key().subject_public_key.data;
        Some(Self {
            key: key.to_vec(),
            valid: validity.not_before.timestamp()..=validity.not_after.timestamp(),
        })
    }

    /// Whether the key is valid at a time, in seconds since 1970.
    pub fn is_valid_at(&self, seconds: i64) -> bool {
        self.valid.contains(&seconds)
    }

    /// Whether `signature` is the key's signature of `text`. False for keys shorter than 2,048 bits.
    pub fn has_signed(&self, text: &str, version: SignatureVersion, signature: &[u8]) -> bool {
        let algorithm = match version {
            SignatureVersion::Sha1 => &RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
            SignatureVersion::Sha256 => &RSA_PKCS1_2048_8192_SHA256,
        };
        UnparsedPublicKey::new(algorithm, &self.key)
            .verify(text.as_bytes(), signature)
            .is_ok()
    }
}
