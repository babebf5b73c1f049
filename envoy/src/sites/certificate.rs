// SPDX-License-Identifier: Apache-2.0
//! A certificate and its key: the check of both, and the end of the validity.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, SignatureAlgorithm};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::file::shown;
use super::host::covers;

/// A certificate and its key, which may be replaced while the edge serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate chain, a PEM file.
    pub chain: PathBuf,
    /// The private key, a PEM file.
    pub key: PathBuf,
}

/// A problem of a certificate or its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateProblem {
    /// Whether the key has the problem rather than the certificate.
    pub of_key: bool,
    /// The file, and the accepted contents.
    pub message: String,
}

/// The contents of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedNames {
    /// The host names and addresses that the certificate is for.
    pub names: Vec<String>,
    /// The end of the validity.
    pub not_after: SystemTime,
}

impl Certificate {
    /// Reads both files, and checks that the key belongs to the certificate and that the validity has begun at
    /// `now`. An expired certificate is accepted, because the edge's other sites must still start.
    ///
    /// # Errors
    /// All problems, with the accepted contents.
    pub fn inspect(&self, now: SystemTime) -> Result<CertifiedNames, Vec<CertificateProblem>> {
        let (chain, key) = (self.read_chain(), self.read_key());
        let (chain, key) = match (chain, key) {
            (Ok(chain), Ok(key)) => (chain, key),
            (chain, key) => return Err([chain.err(), key.err()].into_iter().flatten().collect()),
        };
        let names = self
            .read_names(&chain, now)
            .map_err(|problem| vec![problem])?;
        self.check_key(chain, key)
            .map_err(|problem| vec![problem])?;
        Ok(names)
    }

    fn read_chain(&self) -> Result<Vec<CertificateDer<'static>>, CertificateProblem> {
        let read = CertificateDer::pem_file_iter(&self.chain);
        let chain = read.and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>());
        let chain = chain.map_err(|error| {
            self.wrong_chain(&format!("a PEM file with the certificate chain ({error})"))
        })?;
        if chain.is_empty() {
            return Err(
                self.wrong_chain("a PEM file with the certificate chain: it has no certificate")
            );
        }
        for (index, certificate) in chain.iter().enumerate() {
            X509Certificate::from_der(certificate).map_err(|error| {
                let expected =
                    format!("X.509 certificates: number {} is none ({error})", index + 1);
                self.wrong_chain(&expected)
            })?;
        }
        Ok(chain)
    }

    fn read_key(&self) -> Result<PrivateKeyDer<'static>, CertificateProblem> {
        PrivateKeyDer::from_pem_file(&self.key).map_err(|error| {
            self.wrong_key(&format!(
                "a PEM file with the private key, without a password ({error})"
            ))
        })
    }

    fn read_names(
        &self,
        chain: &[CertificateDer<'_>],
        now: SystemTime,
    ) -> Result<CertifiedNames, CertificateProblem> {
        let first = chain.first().map(AsRef::as_ref).unwrap_or_default();
        let (_, certificate) = X509Certificate::from_der(first)
            .map_err(|error| self.wrong_chain(&format!("X.509 certificates ({error})")))?;
        let validity = certificate.validity();
        let (from, until) = (
            validity.not_before.timestamp(),
            validity.not_after.timestamp(),
        );
        if now < at(from) {
            return Err(self.wrong_chain(&format!(
                "a certificate that is valid: it begins on {}",
                validity.not_before
            )));
        }
        Ok(CertifiedNames {
            names: names(&certificate),
            not_after: at(until),
        })
    }

    fn check_key(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), CertificateProblem> {
        let certified = CertifiedKey::from_der(chain, key, &default_provider());
        let key = certified.map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => self.wrong_key(&format!(
                "the key of the certificate in {}: it is another's",
                self.chain.display()
            )),
            error => self.wrong_key(&format!(
                "a key of RSA with 2048 to 8192 bits, or ECDSA P-256 or P-384 ({error})"
            )),
        })?;
        if key.key.algorithm() == SignatureAlgorithm::ED25519 {
            return Err(self.wrong_key("a key of RSA or ECDSA: Envoy takes no Ed25519"));
        }
        Ok(())
    }

    fn wrong_chain(&self, expected: &str) -> CertificateProblem {
        let file = shown(&self.chain.to_string_lossy().into());
        CertificateProblem {
            of_key: false,
            message: format!("{file}: expected {expected}"),
        }
    }

    fn wrong_key(&self, expected: &str) -> CertificateProblem {
        let file = shown(&self.key.to_string_lossy().into());
        CertificateProblem {
            of_key: true,
            message: format!("{file}: expected {expected}"),
        }
    }
}

impl CertifiedNames {
    /// Whether the certificate is for a host, or for the names of a `*.` host.
    pub fn cover(&self, host: &str) -> bool {
        self.names.iter().any(|name| covers(name, host))
    }
}

/// The subject's alternative names (RFC 5280, section 4.2.1.6): hosts, and IPv4 addresses as they are written.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map(|extension| extension.value.general_names.as_slice());
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let bytes: [u8; 4] = (*bytes).try_into().ok()?;
            Some(std::net::Ipv4Addr::from(bytes).to_string())
        }
        _ => None,
    };
    names.unwrap_or_default().iter().filter_map(name).collect()
}

/// The time this many seconds after 1970.
fn at(seconds: i64) -> SystemTime {
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    SystemTime::UNIX_EPOCH + since
}
