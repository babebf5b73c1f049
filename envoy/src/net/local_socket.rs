// SPDX-License-Identifier: Apache-2.0
//! Unix sockets on which the filter calls the entry point for tasks that the filter cannot do: writing files and
//! verifying certificates.

use std::fs;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ureq::http::StatusCode;

use crate::log::warn;
use crate::system::random;

/// Bound on the body of a call, in bytes.
const MAX_BODY: usize = 1 << 20;
/// Bound on the head of a call, in bytes.
const MAX_HEAD: u64 = 16 << 10;
/// Bound on the fields of a call.
const MAX_FIELDS: usize = 64;
/// Bound on the length of a socket's path, in bytes (`sun_path`).
const MAX_PATH: usize = 100;
/// Bound on the time in which a call must arrive, and in which Envoy must read its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A socket in the file system. The file is removed when this is dropped.
#[derive(Debug)]
pub struct LocalSocket {
    path: PathBuf,
    /// The socket's own folder, if the path of the state folder is too long.
    folder: Option<PathBuf>,
}

impl LocalSocket {
    /// Binds a socket in `state`, with a random name that begins with `name`. No other user can connect to the
    /// socket, whatever the umask and the modes of folders are.
    ///
    /// # Errors
    /// The socket cannot be bound.
    fn bind(name: &str, state: &Path) -> io::Result<(UnixListener, Self)> {
        let name = format!("{name}-{}.sock", random::hex()?);
        let mut socket = Self {
            path: state.join(&name),
            folder: None,
        };
        if socket.path.as_os_str().len() > MAX_PATH {
            let folder = std::env::temp_dir().join(format!("sluice-{}", random::hex()?));
            create_private(&folder)?;
            socket.path = folder.join(&name);
            socket.folder = Some(folder);
        }
        Ok((bind_private(&socket.path)?, socket))
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // If this fails, the file remains; later sockets have other names.
        let _ = fs::remove_file(&self.path);
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Creates a folder that other users can neither read nor enter.
fn create_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(folder)?;
    // The umask may have removed the owner's own rights.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

/// Binds a socket that only its owner can connect to. The socket gets its mode in a private folder, because in its
/// final place it would have the mode of the umask for a moment.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let folder = path.with_file_name(format!(".{}", random::hex()?));
    create_private(&folder)?;
    let first = folder.join("s");
    let bound = UnixListener::bind(&first).and_then(|listener| {
        fs::set_permissions(&first, fs::Permissions::from_mode(0o600))?;
        fs::rename(&first, path)?;
        Ok(listener)
    });
    if bound.is_err() {
        // The file does not exist if the socket could not be bound.
        let _ = fs::remove_file(&first);
    }
    fs::remove_dir(&folder)?;
    bound
}

/// The answer to a call: the status code and the body.
pub type Answer = (StatusCode, String);

/// Answers the calls to a new socket in `state` with `answer`, several at a time. Each connection has a separate
/// thread. Envoy may keep a connection whose call it has abandoned before sending it, and other calls must not wait
/// for that connection.
///
/// # Errors
/// The socket cannot be bound.
pub fn serve(
    name: &'static str,
    state: &Path,
    answer: impl Fn(&[u8]) -> Answer + Send + Sync + 'static,
) -> io::Result<LocalSocket> {
    let (listener, socket) = LocalSocket::bind(name, state)?;
    let answer = Arc::new(answer);
    let accept = move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            let converse = move || {
                if let Err(error) = converse(&stream, &*answer) {
                    warn(&format!("a call to the {name} socket: {error}"));
                }
            };
            // Without a thread no answer is sent, and Envoy sees a failed call.
            if let Err(error) = thread::Builder::new().spawn(converse) {
                warn(&format!("the {name} socket: {error}"));
            }
        }
    };
    thread::Builder::new().spawn(accept)?;
    Ok(socket)
}

fn converse(stream: &UnixStream, answer: &impl Fn(&[u8]) -> Answer) -> io::Result<()> {
    let mut reader = BufReader::new(stream.take(MAX_HEAD + MAX_BODY as u64));
    // Envoy may close a connection without a call at any time.
    if reader.fill_buf()?.is_empty() {
        return Ok(());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    let (status, body) = answer(&read_call(reader)?);
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = body.len();
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Reads the body of the one call on a connection. Envoy is the only client, and always sends the length.
///
/// # Errors
/// The call does not arrive in time, is not HTTP, or is too long.
fn read_call(mut reader: impl BufRead) -> io::Result<Vec<u8>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head)? == 0 {
            return Err(invalid("a call without an end"));
        }
    }
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    request
        .parse(&head)
        .map_err(|error| invalid(&format!("a call that is not HTTP: {error}")))?;
    let is_length =
        |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case("content-length");
    let length = request.headers.iter().find(is_length);
    let length = length.and_then(|field| str::from_utf8(field.value).ok()?.parse().ok());
    let length: usize = length.ok_or_else(|| invalid("a call without a length"))?;
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
    fn only_its_owner_can_connect_whatever_the_mode_of_its_folder() {
        let dir = TempDir::new().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let (_listener, socket) = LocalSocket::bind("journal", dir.path()).unwrap();
        let mode = fs::metadata(socket.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(UnixStream::connect(socket.path()).is_ok());
        // No other file remains.
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_call_that_is_too_long_is_not_read() {
        let length = MAX_BODY + 1;
        let call = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
        let error = read_call(call.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "a call that is too long");
    }
}
