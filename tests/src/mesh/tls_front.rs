// SPDX-License-Identifier: Apache-2.0
//! TLS in front of a server without TLS: a bucket's HTTPS endpoint.

use crate::machine::ports::{free_port, loopback};
use crate::server::Server;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// A TLS endpoint with its own certificate; it ends when dropped.
pub struct TlsFront {
    server: Server,
    folder: TempDir,
    names: Arc<Mutex<Vec<String>>>,
}

impl TlsFront {
    /// Starts an endpoint for `host` that forwards all connections to `target`.
    ///
    /// # Panics
    /// When no certificate or socket can be created.
    #[must_use]
    pub fn start(host: &str, target: SocketAddr) -> Self {
        Self::start_at(loopback(free_port()), host, target)
    }

    /// Starts an endpoint at that address.
    ///
    /// # Panics
    /// When no certificate or socket can be created.
    #[must_use]
    pub fn start_at(address: SocketAddr, host: &str, target: SocketAddr) -> Self {
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        let folder = TempDir::with_prefix("sluice-tls-front-").unwrap();
        std::fs::write(folder.path().join("ca.pem"), made.cert.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let names = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&names);
        let server = Server::start_at("tls-front", address, move |stream, _| {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
            async move {
                // A client that does not trust the certificate ends the handshake, and is not counted.
                let mut client = acceptor.accept(stream).await?;
                let name = client.get_ref().1.server_name().unwrap_or_default();
                seen.lock().unwrap().push(name.to_owned());
                let mut server = TcpStream::connect(target).await?;
                copy_bidirectional(&mut client, &mut server).await
            }
        });
        Self {
            server,
            folder,
            names,
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// A PEM file with the CA that verifies its certificate.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The server name (SNI) of each connection so far.
    ///
    /// # Panics
    /// When a connection's task has panicked.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.names.lock().unwrap().clone()
    }
}
