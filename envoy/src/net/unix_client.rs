// SPDX-License-Identifier: Apache-2.0
//! A client of HTTP servers on Unix sockets.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ureq::http::StatusCode;

/// Default bound on the time until a server accepts a call, and on the time between two parts of its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A call to a server.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The method.
    pub method: &'a str,
    /// The target: a path and a query.
    pub target: &'a str,
    /// The names and values of further fields.
    pub fields: &'a [(String, String)],
    /// The body.
    pub body: &'a str,
    /// Bound on the time between two parts of the answer.
    pub patience: Duration,
    /// Bound on the answer, in bytes. A longer one counts as not whole.
    pub most_bytes: u64,
}

impl<'a> Call<'a> {
    /// A GET without further fields.
    pub const fn get(target: &'a str) -> Self {
        Self {
            method: "GET",
            target,
            fields: &[],
            body: "",
            patience: PATIENCE,
            most_bytes: u64::MAX,
        }
    }
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: StatusCode,
    /// The entity tag.
    pub etag: Option<String>,
    /// The body, as text.
    pub body: String,
}

/// The answer to a call. Each call has a new connection.
///
/// # Errors
/// The server does not answer, or not with a whole answer of text.
pub fn call(socket: &Path, call: &Call<'_>) -> io::Result<Reply> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(call.patience))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Call {
        method,
        target,
        fields,
        body,
        patience: _,
        most_bytes,
    } = call;
    let fields: String = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = body.len();
    stream.write_all(
        format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n{fields}content-length: {length}\r\nconnection: close\r\n\r\n{body}").as_bytes(),
    )?;
    let mut answer = String::new();
    stream.take(*most_bytes).read_to_string(&mut answer)?;
    read_reply(&answer).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The status of the answer to a GET.
///
/// # Errors
/// The server does not answer with HTTP.
pub fn status_of(socket: &Path, path: &str) -> io::Result<StatusCode> {
    Ok(call(socket, &Call::get(path))?.status)
}

/// A text as the value of a query's parameter (RFC 3986, section 2.1).
pub fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Reads an answer whose connection has ended. `None`: the answer is not whole.
fn read_reply(answer: &str) -> Option<Reply> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let fields: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
    let value_of = |known: &[&str]| {
        let is_known = |name: &str| known.iter().any(|known| name.eq_ignore_ascii_case(known));
        let mut fields = fields.iter();
        let field = fields.find(|(name, _)| is_known(name));
        field.map(|(_, value)| value.trim())
    };
    let framing = value_of(&["transfer-encoding", "content-length"]);
    let body = match framing {
        Some("chunked") => join_chunks(body)?,
        Some(length) => body.get(..length.parse().ok()?)?.to_owned(),
        None => body.to_owned(),
    };
    let etag = value_of(&["etag"]).map(str::to_owned);
    Some(Reply { status, etag, body })
}

/// The content of a body in chunks (RFC 9112, section 7.1). `None`: the body is not whole.
fn join_chunks(mut rest: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (length, after) = rest.split_once("\r\n")?;
        let length = usize::from_str_radix(length, 16).ok()?;
        if length == 0 {
            return Some(body);
        }
        body.push_str(after.get(..length)?);
        rest = after.get(length..)?.strip_prefix("\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together_and_a_cut_answer_is_none() {
        const ANSWER: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\nhttp.edge.\r\n5\r\na: 1\n\r\n0\r\n\r\n";
        let reply = read_reply(ANSWER).unwrap();
        assert_eq!(
            (reply.status.as_u16(), reply.body.as_str()),
            (200, "http.edge.a: 1\n")
        );
        for end in 0..ANSWER.len() - "\r\n".len() - 2 {
            assert_eq!(read_reply(&ANSWER[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_body_has_the_length_of_its_field_or_that_of_the_connection() {
        let body = |answer: &str| read_reply(answer).map(|reply| reply.body);
        let sized =
            "HTTP/1.1 503 Service Unavailable\r\nETag: \"1\"\r\nContent-Length: 3\r\n\r\nabc";
        let tag = read_reply(sized).unwrap().etag;
        assert_eq!(tag.as_deref(), Some("\"1\""));
        assert_eq!(body(sized).as_deref(), Some("abc"));
        assert_eq!(body(&sized[..sized.len() - 1]), None);
        assert_eq!(body("HTTP/1.1 200 OK\r\n\r\nabc").as_deref(), Some("abc"));
    }
}
