// SPDX-License-Identifier: Apache-2.0
//! A client of HTTP servers on Unix sockets.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ureq::http::StatusCode;

/// Bound on the time until a server accepts a call, and on the time between two parts of its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The whole answer to a call, as text. Each call has a new connection.
///
/// # Errors
/// The server does not answer, or not with text.
pub fn call(socket: &Path, method: &str, path: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The status of the answer to a GET.
///
/// # Errors
/// The server does not answer with HTTP.
pub fn status_of(socket: &Path, path: &str) -> io::Result<StatusCode> {
    let answer = call(socket, "GET", path)?;
    let status = answer.split(' ').nth(1);
    let status = status.and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
