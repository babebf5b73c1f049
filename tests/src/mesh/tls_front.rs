// SPDX-License-Identifier: Apache-2.0
//! TLS before a server that speaks none: a bucket's HTTPS endpoint.

use crate::origin::{listener, own_thread};
use crate::ports::{free_port, loopback};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

/// A TLS endpoint with a certificate of its own; it ends when dropped.
pub struct TlsFront {
    address: SocketAddr,
    folder: TempDir,
    names: Arc<Mutex<Vec<String>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TlsFront {
    /// One that says it is `host` and passes everything on to `target`.
    ///
    /// # Panics
    /// When no certificate or no socket is to be had.
    #[must_use]
    pub fn start(host: &str, target: SocketAddr) -> Self {
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
        let address = loopback(free_port());
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let seen = Arc::clone(&names);
        let serve = async move {
            let socket = listener(address).await;
            let _ = ready.send(());
            loop {
                let Ok((stream, _)) = socket.accept().await else {
                    continue;
                };
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    // A client that does not trust the certificate ends the handshake, and is counted by nobody.
                    let mut client = acceptor.accept(stream).await?;
                    let name = client
                        .get_ref()
                        .1
                        .server_name()
                        .unwrap_or_default()
                        .to_owned();
                    seen.lock().unwrap().push(name);
                    let mut server = TcpStream::connect(target).await?;
                    copy_bidirectional(&mut client, &mut server).await
                });
            }
        };
        let thread = own_thread("tls-front", stopped, serve);
        is_ready.recv().unwrap();
        Self {
            address,
            folder,
            names,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What verifies its certificate, a PEM file.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The server name (SNI) of each connection so far.
    ///
    /// # Panics
    /// Not unless a connection's task has.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.names.lock().unwrap().clone()
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
