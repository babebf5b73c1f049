// SPDX-License-Identifier: Apache-2.0
//! A server on threads of its own, which sends each answer at once: a reader gets its head and its body together.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A running one, which ends when it is dropped, each of its connections with its peer.
pub struct Responder {
    /// Where it listens.
    pub address: SocketAddr,
    ending: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Responder {
    /// Starts one that answers the head of a request.
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
                // Ends with the connection, which is another's affair.
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
        // The thread looks when somebody comes.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Answers what comes on a connection until it ends.
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

/// The lines of a request without a body, up to the empty one; nothing at the end of the connection.
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
