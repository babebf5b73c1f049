// SPDX-License-Identifier: Apache-2.0
//! Unix sockets on which the filter, which can neither write files nor verify certificates, calls the entry point.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
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

/// The body of the one request on a connection. Envoy is the only client, and says its length.
///
/// # Errors
/// It does not come in time, is no request, or is too long.
pub fn read_call(stream: &UnixStream) -> io::Result<Vec<u8>> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.take(MAX_HEAD + MAX_BODY as u64));
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

/// Answers the one request on a connection with `status`, its code and phrase.
///
/// # Errors
/// The answer cannot be written.
pub fn answer(stream: &UnixStream, status: &str, body: &str) -> io::Result<()> {
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
        let (mut client, server) = UnixStream::pair().unwrap();
        let length = MAX_BODY + 1;
        write!(
            client,
            "POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n"
        )
        .unwrap();
        let error = read_call(&server).unwrap_err();
        assert_eq!(error.to_string(), "a call that is too long");
    }
}
