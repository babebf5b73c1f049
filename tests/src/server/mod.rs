// SPDX-License-Identifier: Apache-2.0
//! A loopback server of the harness: its address, its thread, and its end.

pub mod background;
pub mod exchange;
pub mod gate;
pub mod requests;

use crate::machine::ports::{free_port, loopback};
use background::Background;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// Whether the server still listens, for its connections.
pub type Listening = watch::Receiver<bool>;

/// A server with a separate thread and runtime, so that a busy test does not slow it down. It listens from `start` on
/// and ends, with its connections, when dropped.
pub struct Server {
    address: SocketAddr,
    /// The wanted state of the accept loop, and its actual state.
    wanted: watch::Sender<bool>,
    listens: Listening,
    _task: Background,
}

impl Server {
    /// Serves each connection on a free loopback port with `serve`.
    ///
    /// # Panics
    /// When no socket or thread can be created.
    #[must_use]
    pub fn start<F, T>(name: &str, serve: F) -> Self
    where
        F: Fn(TcpStream, Listening) -> T + Send + Sync + 'static,
        T: Future<Output: Send> + Send + 'static,
    {
        Self::start_at(name, loopback(free_port()), serve)
    }

    /// Serves each connection at an address of this machine with `serve`.
    ///
    /// # Panics
    /// When no socket or thread can be created.
    #[must_use]
    pub fn start_at<F, T>(name: &str, address: SocketAddr, serve: F) -> Self
    where
        F: Fn(TcpStream, Listening) -> T + Send + Sync + 'static,
        T: Future<Output: Send> + Send + 'static,
    {
        let (wanted, asked) = watch::channel(true);
        let (report, listens) = watch::channel(false);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let accepting = accept_loop(address, Arc::new(serve), asked, report);
        let first = first_time(listens.clone(), ready);
        let both = async { tokio::join!(accepting, first).0 };
        let task = Background::start(name, both);
        is_ready.recv().unwrap();
        Self {
            address,
            wanted,
            listens,
            _task: task,
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens or closes the port, and returns when that is done.
    ///
    /// # Panics
    /// When it cannot.
    pub async fn set_listening(&self, on: bool) {
        self.wanted.send_replace(on);
        let mut listens = self.listens.clone();
        let done = tokio::time::timeout(crate::PATIENCE, listens.wait_for(|&is| is == on));
        assert!(
            done.await.is_ok(),
            "the server cannot change to listening: {on}"
        );
    }
}

/// Reports when the server listens for the first time.
async fn first_time(mut listens: Listening, ready: std::sync::mpsc::Sender<()>) {
    if listens.wait_for(|&on| on).await.is_ok() {
        let _ = ready.send(());
    }
}

async fn listener(address: SocketAddr) -> TcpListener {
    loop {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        };
        let socket = socket.unwrap();
        socket.set_reuseaddr(true).unwrap();
        if socket.bind(address).is_ok() {
            return socket.listen(8192).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn accept_loop<F, T>(
    address: SocketAddr,
    serve: Arc<F>,
    mut wanted: Listening,
    report: watch::Sender<bool>,
) where
    F: Fn(TcpStream, Listening) -> T + Send + Sync + 'static,
    T: Future<Output: Send> + Send + 'static,
{
    let connections = wanted.clone();
    loop {
        let socket = listener(address).await;
        report.send_replace(true);
        loop {
            tokio::select! {
                accepted = socket.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    tokio::spawn(serve(stream, connections.clone()));
                }
                gone = wanted.wait_for(|&on| !on) => {
                    if gone.is_err() { return; }
                    break;
                }
            }
        }
        drop(socket);
        report.send_replace(false);
        if wanted.wait_for(|&on| on).await.is_err() {
            return;
        }
    }
}
