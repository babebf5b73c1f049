// SPDX-License-Identifier: Apache-2.0
//! A server with separate threads, which sends each response at once: a reader gets its head and its body together.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A running server. It ends when it is dropped, each of its connections when the peer closes it.
pub struct Responder {
    /// Where it listens.
    pub address: SocketAddr,
    ending: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Responder {
    /// Starts a server that answers the head of a request.
    ///
    /// # Panics
    /// When it cannot listen on loopback.
    pub fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, ending) = (Arc::new(answer), Arc::new(AtomicBool::new(false)));
        let ended = ending.clone();
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let answer = answer.clone();
                // The thread ends with its connection, which the peer closes.
                std::thread::spawn(move || serve(stream, &*answer));
            }
        });
        Self {
            address,
            ending,
            accepting: Some(accepting),
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        // A connection wakes the thread, which then looks whether to end.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Answers the requests of a connection until it ends.
fn serve(stream: TcpStream, answer: &dyn Fn(&str) -> Vec<u8>) {
    let _ = stream.set_nodelay(true);
    let Ok(mut writer) = stream.try_clone() else {
        return;
    };
    let mut reader = BufReader::new(stream);
    while let Some(head) = head(&mut reader) {
        if writer.write_all(&answer(&head)).is_err() {
            return;
        }
    }
}

/// The lines of a request without a body, up to the empty one; `None` at the end of the connection.
fn head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    loop {
        let before = head.len();
        reader.read_line(&mut head).ok().filter(|&read| read > 0)?;
        if head[before..].trim_end().is_empty() {
            return Some(head);
        }
    }
}
