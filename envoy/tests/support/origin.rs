// SPDX-License-Identifier: Apache-2.0
//! An HTTP origin that counts and records requests.

use std::io::{BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use super::read_head;

/// A running origin. Its paths: `/held…` is answered after [`Origin::release`], and `/stalled…` never. Others are
/// answered at once: `…/style…` with a compressible object, `…/image…` with another type, and all others with a
/// small object.
pub struct Origin {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: Vec<String>,
    released: bool,
}

impl Origin {
    /// Starts the origin, which runs until the test's process ends.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { port, shared }
    }

    /// The origin's URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests so far, each with its headers.
    pub fn requests(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().requests.clone()
    }

    /// Answers the requests that are held.
    pub fn release(&self) {
        self.shared.state.lock().unwrap().released = true;
        self.shared.changed.notify_all();
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let Some(head) = read_head(&mut reader) else {
            return;
        };
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut state = shared.state.lock().unwrap();
        state.requests.push(head);
        if path.starts_with("/held") {
            state = shared
                .changed
                .wait_while(state, |state| !state.released)
                .unwrap();
        }
        drop(state);
        if path.starts_with("/stalled") {
            continue;
        }
        if stream.write_all(answer(&path).as_bytes()).is_err() {
            return;
        }
    }
}

/// A storable response. It has a date, because Envoy's cache (v1) treats a response without a date as stale.
fn answer(path: &str) -> String {
    let date = httpdate::fmt_http_date(std::time::SystemTime::now());
    let (content_type, body) = match path {
        path if path.contains("/style") => {
            ("Text/CSS; charset=utf-8", "a { color: blue }\n".repeat(300))
        }
        path if path.contains("/image") => ("image/png", "pixels\n".repeat(300)),
        _ => ("text/css", "origin\n".to_owned()),
    };
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\ncontent-type: {content_type}\r\netag: \"style\"\r\n\
         date: {date}\r\ncache-control: max-age=60\r\n\r\n{body}",
        body.len()
    )
}
