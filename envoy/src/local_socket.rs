// SPDX-License-Identifier: Apache-2.0
//! Unix sockets on which the filter, which can neither write files nor verify certificates, calls the entry point.

use std::fs;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::random;

/// Largest body of a call, and bound on its head.
pub const MAX_BODY: usize = 1 << 20;
const MAX_HEAD: u64 = 16 << 10;
/// What a socket's name may be long (`sun_path`).
const MAX_PATH: usize = 100;
const PATIENCE: Duration = Duration::from_secs(10);

/// A socket's place in the file system, until this is dropped.
#[derive(Debug)]
pub struct LocalSocket {
    path: PathBuf,
    /// A folder of its own, where the state folder's name is too long.
    folder: Option<PathBuf>,
}

impl LocalSocket {
    /// Binds a socket in `state`, with a name of its own that begins with `name`.
    ///
    /// # Errors
    /// It cannot be bound there.
    pub fn bind(name: &str, state: &Path) -> io::Result<(UnixListener, Self)> {
        let name = format!("{name}-{}.sock", random::hex::<8>()?);
        let mut socket = Self {
            path: state.join(&name),
            folder: None,
        };
        if socket.path.as_os_str().len() > MAX_PATH {
            let folder = std::env::temp_dir().join(format!("sluice-{}", random::hex::<8>()?));
            fs::DirBuilder::new().mode(0o700).create(&folder)?;
            socket.path = folder.join(&name);
            socket.folder = Some(folder);
        }
        Ok((UnixListener::bind(&socket.path)?, socket))
    }

    /// Its name in the file system.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // Left behind, it is in nobody's way.
        let _ = fs::remove_file(&self.path);
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// What a call is answered.
#[derive(Debug)]
pub struct Answer {
    /// Its code and phrase.
    pub status: &'static str,
    /// Its body.
    pub body: String,
}

impl From<&'static str> for Answer {
    fn from(status: &'static str) -> Self {
        Self {
            status,
            body: String::new(),
        }
    }
}

/// Answers calls to a socket in `state`, several at a time. Each connection has a thread: Envoy keeps one on which it
/// has given up its call before it was sent, and others' calls must not wait for that.
///
/// # Errors
/// The socket cannot be bound.
pub fn serve(
    name: &'static str,
    state: &Path,
    take: impl Fn(&[u8]) -> Answer + Send + Sync + 'static,
) -> io::Result<LocalSocket> {
    let (listener, socket) = LocalSocket::bind(name, state)?;
    let take = Arc::new(take);
    let accept = move || {
        for stream in listener.incoming().flatten() {
            let take = Arc::clone(&take);
            let converse = move || match converse(&stream, &*take) {
                Ok(()) => {}
                Err(error) => crate::run::say(&format!("a call to the {name} socket: {error}")),
            };
            // Without a thread there is no answer, which Envoy takes for a failed call.
            if let Err(error) = thread::Builder::new().spawn(converse) {
                crate::run::say(&format!("the {name} socket: {error}"));
            }
        }
    };
    thread::Builder::new().spawn(accept)?;
    Ok(socket)
}

fn converse(stream: &UnixStream, take: &impl Fn(&[u8]) -> Answer) -> io::Result<()> {
    let mut reader = BufReader::new(stream.take(MAX_HEAD + MAX_BODY as u64));
    // Closed without a call, after whatever time.
    if reader.fill_buf()?.is_empty() {
        return Ok(());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    let answer = take(&read_call(reader)?);
    stream.set_write_timeout(Some(PATIENCE))?;
    let Answer { status, body } = answer;
    let length = body.len();
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// The body of the one request on a connection. Envoy is the only client, and says its length.
///
/// # Errors
/// It does not come in time, is no request, or is too long.
fn read_call(mut reader: impl BufRead) -> io::Result<Vec<u8>> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(invalid("a call without an end"));
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value
                .trim()
                .parse()
                .map_err(|_| invalid("a call without a length"))?;
        }
    }
    if length > MAX_BODY {
        return Err(invalid("a call that is too long"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_socket_is_found_a_shorter_name() {
        let dir = TempDir::new().unwrap();
        let state = dir.path().join("x".repeat(90));
        fs::create_dir(&state).unwrap();
        let (_listener, socket) = LocalSocket::bind("journal", &state).unwrap();
        assert!(!socket.path().starts_with(&state));
        assert!(UnixStream::connect(socket.path()).is_ok());
        let path = socket.path().to_owned();
        drop(socket);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }

    #[test]
    fn a_call_that_is_too_long_is_not_read() {
        let length = MAX_BODY + 1;
        let call = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
        let error = read_call(call.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "a call that is too long");
    }
}
