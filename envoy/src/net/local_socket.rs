// SPDX-License-Identifier: Apache-2.0
//! Unix sockets on which the entry point answers calls: of the filter for tasks that the filter cannot do, and of the
//! operator's commands.

use std::fs;
use std::io::{self, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ureq::http::StatusCode;

use super::request_head::{ReaderUntil, RequestHead};
use crate::log::warn;
use crate::system::random;

/// Bound on the length of a socket's path, in bytes (`sun_path`).
const MAX_PATH: usize = 100;
/// Bound on the time in which a call must arrive, and in which the client must read its answer.
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

/// A call: a request with its body.
#[derive(Debug)]
pub struct Call {
    /// The head of the request.
    pub head: RequestHead,
    /// The body.
    pub body: Vec<u8>,
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
    answer: impl Fn(&Call) -> Answer + Send + Sync + 'static,
) -> io::Result<LocalSocket> {
    let (listener, socket) = LocalSocket::bind(name, state)?;
    accept_calls(listener, name, answer)?;
    Ok(socket)
}

/// Answers the calls to the socket at `path`, as [`serve`] does. The socket replaces a file that an earlier process has
/// left there.
///
/// # Errors
/// The socket cannot be bound.
pub fn serve_at(
    name: &'static str,
    path: PathBuf,
    answer: impl Fn(&Call) -> Answer + Send + Sync + 'static,
) -> io::Result<LocalSocket> {
    let listener = bind_private(&path)?;
    accept_calls(listener, name, answer)?;
    Ok(LocalSocket { path, folder: None })
}

fn accept_calls(
    listener: UnixListener,
    name: &'static str,
    answer: impl Fn(&Call) -> Answer + Send + Sync + 'static,
) -> io::Result<()> {
    let answer = Arc::new(answer);
    let accept = move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            let converse = move || {
                if let Err(error) = converse(&stream, &*answer) {
                    warn(&format!("a call to the {name} socket: {error}"));
                }
            };
            // Without a thread no answer is sent, and the client sees a failed call.
            if let Err(error) = thread::Builder::new().spawn(converse) {
                warn(&format!("the {name} socket: {error}"));
            }
        }
    };
    thread::Builder::new().spawn(accept)?;
    Ok(())
}

fn converse(stream: &UnixStream, answer: &impl Fn(&Call) -> Answer) -> io::Result<()> {
    // Envoy may close a connection without a call at any time.
    let mut reader = BufReader::new(ReaderUntil::from_first_byte(stream, PATIENCE));
    let Some(head) = RequestHead::read(&mut reader)? else {
        return Ok(());
    };
    let body = head.read_body(&mut reader)?;
    let (status, body) = answer(&Call { head, body });
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = body.len();
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::unix_client;
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
    fn a_socket_at_a_fixed_path_replaces_that_of_an_earlier_process() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("control.sock");
        drop(UnixListener::bind(&path).unwrap());
        let echo = |call: &Call| (StatusCode::OK, call.head.target.clone());
        let socket = serve_at("control", path.clone(), echo).unwrap();
        let call = unix_client::Call::get("/a?b");
        let reply = unix_client::call(&path, &call).unwrap();
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (StatusCode::OK, "/a?b")
        );
        drop(socket);
        assert!(!path.exists());
    }
}
