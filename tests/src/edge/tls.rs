// SPDX-License-Identifier: Apache-2.0
//! A certificate for an edge, and clients that trust it.

use crate::client::Failure;
use crate::http::message::{Head, Wire};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion,
};
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const NAME: &str = "edge.test";

/// A self-signed certificate and its key, in files.
pub struct Certificate {
    folder: TempDir,
    name: String,
    der: CertificateDer<'static>,
}

impl Certificate {
    /// Makes a certificate.
    #[must_use]
    pub fn new() -> Self {
        Self::named(NAME)
    }

    /// Makes a certificate for a host.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let folder = TempDir::with_prefix("sluice-tls-").unwrap();
        let mut certificate = Self {
            folder,
            name: name.to_owned(),
            der: CertificateDer::from(Vec::new()),
        };
        certificate.renew();
        certificate
    }

    /// Replaces certificate and key by new ones for the same host, each file by a rename.
    ///
    /// # Panics
    /// When they cannot be made.
    pub fn renew(&mut self) {
        let made = rcgen::generate_simple_self_signed([self.name.clone()]).unwrap();
        let texts = [
            (self.cert(), made.cert.pem()),
            (self.key(), made.signing_key.serialize_pem()),
        ];
        for (path, text) in texts {
            let part = path.with_extension("part");
            std::fs::write(&part, text).unwrap();
            std::fs::rename(part, path).unwrap();
        }
        self.der = made.cert.der().clone();
    }

    /// The file for `SLUICE_TLS_CERT`.
    #[must_use]
    pub fn cert(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// The file for `SLUICE_TLS_KEY`.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// Adds a listener to Envoy's configuration: a copy of its first one, but on this port, and with the TLS settings
    /// of an edge.
    ///
    /// # Panics
    /// When there is none yet.
    pub fn add_listener(&self, config: &mut Value, port: u16) {
        let listeners = config["static_resources"]["listeners"].as_array_mut();
        let listeners = listeners.expect("listeners");
        let mut listener = listeners[0].clone();
        listener["name"] = "edge_tls".into();
        listener["address"]["socket_address"]["port_value"] = port.into();
        listener["filter_chains"][0]["transport_socket"] = json!({"name": "tls", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            "common_tls_context": {
                "alpn_protocols": ["h2", "http/1.1"],
                "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
                "tls_certificates": [{
                    "certificate_chain": {"filename": self.cert()},
                    "private_key": {"filename": self.key()},
                }],
            },
        }});
        listeners.push(listener);
    }

    /// Opens a connection that offers these protocols and versions.
    ///
    /// # Errors
    /// When no server listens, or the handshake fails.
    ///
    /// # Panics
    /// When the certificate is none.
    pub async fn connect(
        &self,
        address: SocketAddr,
        protocols: &[&str],
        versions: &[&'static SupportedProtocolVersion],
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let mut config = ClientConfig::builder_with_protocol_versions(versions)
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().into())
            .collect();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(self.name.clone()).unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }
}

impl Default for Certificate {
    fn default() -> Self {
        Self::new()
    }
}

/// Opens a connection that accepts any certificate.
///
/// # Errors
/// When no server listens, or the handshake fails.
pub async fn connect_trusting(address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
    connect_trusting_for(address, NAME).await
}

/// Opens a connection that accepts any certificate, and asks for that host (SNI).
///
/// # Errors
/// When no server listens, or the handshake fails.
///
/// # Panics
/// When no host can have that name.
pub async fn connect_trusting_for(
    address: SocketAddr,
    host: &str,
) -> io::Result<TlsStream<TcpStream>> {
    let config = ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(host.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// Verifier that accepts any certificate.
#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Sends an HTTP/1.1 request and reads the whole response.
///
/// # Errors
/// When the connection ends before.
pub async fn exchange(
    stream: &mut TlsStream<TcpStream>,
    request: &[u8],
) -> Result<(Head, Vec<u8>), Failure> {
    stream.write_all(request).await.map_err(Failure::Broken)?;
    let mut wire = Wire::new(stream);
    let head = wire.head().await.map_err(Failure::Broken)?;
    let head = head.ok_or(Failure::NoResponse)?;
    let mut body = Vec::new();
    wire.body(head.response_framing("GET"), &mut body)
        .await
        .map_err(Failure::Broken)?;
    Ok((head, body))
}
