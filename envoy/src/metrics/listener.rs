// SPDX-License-Identifier: Apache-2.0
//! The HTTP server on `SLUICE_METRICS_PORT`. A scrape costs the workers nothing, because the entry point answers it.
//!
//! Each connection has one request, a thread, and bounds on its time and its size. A client that is slow or silent
//! keeps no other client out until there are as many of them as connections.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ureq::http::{Method, StatusCode};

use super::document::MetricsDocument;
use super::exposition::MEDIA_TYPE;
use super::page::PAGE;
use crate::net::request_head::{ReaderUntil, RequestHead};
use crate::net::unix_client;
use crate::settings::Settings;

/// Bound on the connections. Further ones are closed.
const CONNECTIONS: usize = 64;
/// Bound on the documents that are being made or sent, because a document may have many megabytes. Further
/// requests for one get 503.
const DOCUMENTS: usize = 8;
/// Bound on the time in which a request must arrive.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// Bound on the time in which a client must read its response.
const RESPONSE_PATIENCE: Duration = Duration::from_secs(60);
/// Bound on the time in which a client must close its connection after the response.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);
/// The number of bytes that are written at a time.
const CHUNK: usize = 64 << 10;

const NOT_SNIFFED: &str = "x-content-type-options: nosniff\r\n";
const NOT_STORED: &str = "cache-control: no-store\r\n";
/// The paths that take no query, apart from the path of the health check.
const OTHER_PATHS: [&str; 3] = ["/", "/top.json", "/stats/prometheus"];

/// The paths that the server knows.
struct Paths {
    document: Arc<MetricsDocument>,
    /// The path of the health check, and the socket at which a worker answers it.
    health: (String, std::path::PathBuf),
    documents: Slots,
}

/// A response without its date.
struct Response {
    status: StatusCode,
    media_type: &'static str,
    /// Further fields, each with its line end.
    fields: String,
    /// The methods that the path allows, if the status is 405.
    allow: Option<&'static str>,
    body: String,
}

/// Serves the metrics on `listener` until the process ends.
///
/// # Errors
/// The process can start no more threads.
pub fn serve(
    listener: TcpListener,
    settings: &Settings,
    document: Arc<MetricsDocument>,
) -> io::Result<()> {
    let paths = Arc::new(Paths {
        document,
        health: (settings.health_path.clone(), settings.health_socket()),
        documents: Slots::new(DOCUMENTS),
    });
    let connections = Slots::new(CONNECTIONS);
    let accept = move || {
        for client in listener.incoming().flatten() {
            let Some(slot) = connections.take() else {
                continue;
            };
            let paths = Arc::clone(&paths);
            let converse = move || {
                // If this fails, the client has gone, or was too slow.
                let _ = converse(&client, &paths);
                drop(slot);
            };
            // Without a thread the connection is closed.
            let _ = thread::Builder::new().spawn(converse);
        }
    };
    thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(accept)?;
    Ok(())
}

/// Answers the one request on a connection.
fn converse(client: &TcpStream, paths: &Paths) -> io::Result<()> {
    let mut reader = BufReader::new(ReaderUntil::from_now(client, REQUEST_PATIENCE));
    let (response, is_head) = match RequestHead::read(&mut reader) {
        Ok(None) => return Ok(()),
        Ok(Some(head)) => {
            let response = paths.answer(&head.method, &head.target);
            (response, head.method == Method::HEAD.as_str())
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let expected = "expected a request of HTTP/1.1\n";
            (Response::plain(StatusCode::BAD_REQUEST, expected), false)
        }
        Err(error) => return Err(error),
    };
    send(client, &response, is_head)?;
    client.shutdown(Shutdown::Write)?;
    drain(client)
}

/// Sends a response, whose body a client that sent HEAD does not get.
fn send(mut client: &TcpStream, response: &Response, is_head: bool) -> io::Result<()> {
    let Response {
        status,
        media_type,
        fields,
        body,
        ..
    } = response;
    let allow = response.allow.map(|allow| format!("allow: {allow}\r\n"));
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n{fields}{}connection: close\r\n\r\n",
        body.len(),
        allow.unwrap_or_default()
    );
    let start = Instant::now();
    let body = if is_head { "" } else { body };
    for part in std::iter::once(head.as_bytes()).chain(body.as_bytes().chunks(CHUNK)) {
        let left = RESPONSE_PATIENCE.saturating_sub(start.elapsed());
        client.set_write_timeout(Some(left.max(Duration::from_millis(1))))?;
        client.write_all(part)?;
    }
    Ok(())
}

/// Reads the rest of a request until the client closes the connection. Closing it first would make the system reset the
/// connection, and the client could lose the response.
fn drain(mut client: &TcpStream) -> io::Result<()> {
    client.set_read_timeout(Some(CLOSE_PATIENCE))?;
    let (start, mut part) = (Instant::now(), [0; 4096]);
    while start.elapsed() < CLOSE_PATIENCE && client.read(&mut part)? > 0 {}
    Ok(())
}

impl Paths {
    fn answer(&self, method: &str, target: &str) -> Response {
        let path = target.split('?').next().unwrap_or_default();
        let is_read = method == Method::GET || method == Method::HEAD;
        let (health, socket) = &self.health;
        match target {
            _ if target == health => match unix_client::status_of(socket, target) {
                Ok(status) => Response::plain(status, ""),
                Err(_) => Response::unavailable("Envoy does not answer\n"),
            },
            _ if path == "/metrics" && is_read => self.send_document(MetricsDocument::render),
            // NB: the match includes the query, because a query could cause more work.
            "/stats/prometheus" if is_read => self.send_document(MetricsDocument::raw),
            "/" if is_read => Response::page(),
            "/top.json" if is_read => self
                .send_document(MetricsDocument::totals_as_json)
                .into_json(),
            _ if path == "/metrics" || OTHER_PATHS.contains(&target) => Response {
                allow: Some("GET, HEAD"),
                ..Response::plain(StatusCode::METHOD_NOT_ALLOWED, "expected GET or HEAD\n")
            },
            _ => Response::plain(StatusCode::NOT_FOUND, "expected / or /metrics\n"),
        }
    }

    fn send_document(&self, make: impl FnOnce(&MetricsDocument) -> io::Result<String>) -> Response {
        let Some(_slot) = self.documents.take() else {
            return Response::unavailable("too many scrapes at once\n");
        };
        match make(&self.document) {
            Ok(body) => Response {
                body,
                ..Response::plain(StatusCode::OK, "")
            },
            Err(error) => Response::unavailable(&format!("Envoy does not answer: {error}\n")),
        }
    }
}

impl Response {
    fn plain(status: StatusCode, body: &str) -> Self {
        Self {
            status,
            media_type: MEDIA_TYPE,
            fields: String::new(),
            allow: None,
            body: body.to_owned(),
        }
    }

    /// The page of the sites.
    fn page() -> Self {
        let policy = &PAGE.policy;
        Self {
            media_type: "text/html; charset=utf-8",
            fields: format!(
                "content-security-policy: {policy}\r\nreferrer-policy: no-referrer\r\n{NOT_SNIFFED}{NOT_STORED}"
            ),
            ..Self::plain(StatusCode::OK, &PAGE.document)
        }
    }

    /// Turns a response into JSON, unless the response is an error.
    fn into_json(self) -> Self {
        match self.status {
            StatusCode::OK => Self {
                media_type: "application/json",
                fields: [NOT_SNIFFED, NOT_STORED].concat(),
                ..self
            },
            _ => self,
        }
    }

    fn unavailable(body: &str) -> Self {
        Self::plain(StatusCode::SERVICE_UNAVAILABLE, body)
    }
}

/// A number of slots that threads take and return.
#[derive(Clone, Debug)]
struct Slots(Arc<AtomicUsize>);

/// A taken slot. Returned when this is dropped.
struct Slot(Arc<AtomicUsize>);

impl Slots {
    fn new(number: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(number)))
    }

    fn take(&self) -> Option<Slot> {
        let take = |free: usize| free.checked_sub(1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.is_ok().then(|| Slot(Arc::clone(&self.0)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_can_be_taken_again_after_its_return() {
        let slots = Slots::new(1);
        let slot = slots.take();
        assert!(slot.is_some() && slots.take().is_none());
        drop(slot);
        assert!(slots.take().is_some());
    }
}
