// SPDX-License-Identifier: Apache-2.0
//! The head of an entry: the block and the message `CacheFileHeader` with which Envoy's v1 store begins each file. The
//! body follows.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, SystemTime};

use super::key::{BLOCK, MAGIC, StoredKey};
use super::protobuf::{MessageFields, Value};

/// The number of bytes that are read first. Most heads are shorter.
const FIRST_READ: usize = 4 << 10;
/// Bound on a head, in bytes. The edge stores at most 96 KiB of headers, and a key of 16 KiB.
const MAX_HEAD: usize = 256 << 10;
/// The field `metadata` of `CacheFileHeader`: the time of the response.
const METADATA: u64 = 2;
/// The field `headers` of `CacheFileHeader`.
const HEADERS: u64 = 3;

/// A buffer for one head, which many reads share.
#[derive(Debug, Default)]
pub struct HeadBuffer(Vec<u8>);

impl HeadBuffer {
    /// Reads the head of `file`. `None`: the file does not have the form of Envoy's store.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&mut self, file: &File) -> io::Result<Option<Head<'_>>> {
        self.0.resize(FIRST_READ, 0);
        let length = file.read_at(&mut self.0, 0)?;
        self.0.truncate(length);
        let Some(whole) = head_length(&self.0).filter(|whole| *whole <= MAX_HEAD) else {
            return Ok(None);
        };
        if whole > length {
            self.0.resize(whole, 0);
            let rest = self.0.get_mut(length..).unwrap_or_default();
            match file.read_exact_at(rest, length as u64) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                read => read?,
            }
        }
        Ok(self.0.get(..whole).and_then(Head::parse))
    }
}

/// The head of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The key of the entry.
    pub key: StoredKey<'a>,
    /// The length of the body, in bytes.
    pub body_bytes: u64,
    /// The time at which the store received the response, or its last validation.
    pub received: Option<SystemTime>,
    /// The names and values of the headers, in the order of the response.
    pub headers: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Head<'a> {
    /// Reads a whole head. `None`: it does not have the form of Envoy's store.
    pub fn parse(head: &'a [u8]) -> Option<Self> {
        let key = StoredKey::read(head)?;
        let body_bytes = number_at(head, BODY_LENGTH)?;
        let (mut received, mut headers) = (None, Vec::new());
        for (number, value) in MessageFields(head.get(BLOCK..)?) {
            match number {
                METADATA => received = time_of(value.bytes()),
                HEADERS => headers.push(header_of(value.bytes())),
                _ => {}
            }
        }
        Some(Self {
            key,
            body_bytes,
            received,
            headers,
        })
    }
}

/// The places of the big-endian numbers in the block: the length of the message, and that of the body.
const MESSAGE_LENGTH: std::ops::Range<usize> = 8..12;
const BODY_LENGTH: std::ops::Range<usize> = 16..24;

/// The length of the head, in bytes; `None`: the file does not have the form of Envoy's store.
fn head_length(file: &[u8]) -> Option<usize> {
    let message = file.starts_with(MAGIC).then_some(file)?;
    let message = number_at(message, MESSAGE_LENGTH)?;
    usize::try_from(message).ok()?.checked_add(BLOCK)
}

fn number_at(file: &[u8], place: std::ops::Range<usize>) -> Option<u64> {
    let digits = file.get(place)?.iter();
    Some(digits.fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

/// The time in a message `google.protobuf.Timestamp`.
fn time_of(message: &[u8]) -> Option<SystemTime> {
    let number = |wanted: u64| {
        let mut fields = MessageFields(message).filter(|(number, _)| *number == wanted);
        fields.next().and_then(|(_, value)| value.number())
    };
    let nanos = number(2).unwrap_or(0).min(999_999_999);
    let since_epoch = Duration::new(number(1)?, u32::try_from(nanos).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since_epoch)
}

/// The name and the value in a message `CacheFileHeader.Header`.
fn header_of(message: &[u8]) -> (&[u8], &[u8]) {
    let text = |wanted: u64| {
        let mut fields = MessageFields(message).filter(|(number, _)| *number == wanted);
        fields
            .next()
            .map_or(Value::Bytes(&[]), |(_, value)| value)
            .bytes()
    };
    (text(1), text(2))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    /// A file as Envoy's store writes it, with a body of seven bytes.
    pub fn file_of(host: &str, path: &str, received: u64, headers: &[(&str, &str)]) -> Vec<u8> {
        let key = [
            field(1, b"cluster_name_goes_here"),
            field(2, host.as_bytes()),
            field(3, path.as_bytes()),
        ];
        let time = [&[8][..], &varint(received)].concat();
        let mut message = [field(1, &key.concat()), field(2, &time)].concat();
        for (name, value) in headers {
            let header = [field(1, name.as_bytes()), field(2, value.as_bytes())].concat();
            message.extend(field(3, &header));
        }
        let mut file = MAGIC.to_vec();
        file.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        file.extend(0_u32.to_be_bytes());
        file.extend(7_u64.to_be_bytes());
        [file, message, b"content".to_vec()].concat()
    }

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2][..], &varint(bytes.len() as u64), bytes].concat()
    }

    fn varint(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
            number >>= 7;
        }
        bytes.push(u8::try_from(number).unwrap());
        bytes
    }

    fn read(content: &[u8]) -> Option<(String, u64, Vec<String>)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let mut buffer = HeadBuffer::default();
        let head = buffer.read(&file).unwrap()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = head.headers.iter();
        let headers = headers.map(|(name, value)| format!("{}: {}", text(name), text(value)));
        let key = text(head.key.host) + &text(head.key.path);
        Some((key, head.body_bytes, headers.collect()))
    }

    #[test]
    fn a_file_of_envoys_says_key_length_time_and_headers() {
        // The head of a file that Envoy 1.40 has written for `GET /a?b=c` with `Host: plain.test`.
        let head = b"CACH0000\x00\x00\x00\x50\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\
            \n.\n\x16cluster_name_goes_here\x12\nplain.test\x1a\x06/a?b=c@\x01\
            \x12\x0c\x08\xeb\xbf\x90\xd8\x06\x10\xc0\xaf\xde\x86\x02\x1a\x0e\n\x07:status\x12\x03200";
        let read = Head::parse(head).unwrap();
        assert_eq!(
            (read.key.host, read.key.path),
            (&b"plain.test"[..], &b"/a?b=c"[..])
        );
        assert_eq!(read.body_bytes, 7);
        assert_eq!(read.headers, [(&b":status"[..], &b"200"[..])]);
        let received = read
            .received
            .unwrap()
            .duration_since(SystemTime::UNIX_EPOCH);
        assert_eq!(received.unwrap().as_secs(), 1_795_432_427);
    }

    #[test]
    fn a_long_head_is_read_whole_and_the_body_never() {
        let long = "x".repeat(20_000);
        let file = file_of("a!h", "/p", 5, &[("x-long", &long), ("etag", "\"1\"")]);
        let (key, bytes, headers) = read(&file).unwrap();
        assert_eq!((key.as_str(), bytes), ("a!h/p", 7));
        assert_eq!(
            headers,
            [format!("x-long: {long}"), "etag: \"1\"".to_owned()]
        );
        assert_eq!(read(file.get(..15_000).unwrap()), None);
        let longer = "x".repeat(MAX_HEAD);
        assert_eq!(read(&file_of("a!h", "/p", 5, &[("x", &longer)])), None);
    }

    #[test]
    fn what_envoy_does_not_write_has_no_head() {
        for file in [
            &b""[..],
            b"CACH0000",
            b"CACH0001\0\0\0\0",
            b"a page about caching, and nothing else",
        ] {
            assert_eq!(read(file), None);
        }
    }

    proptest! {
        #[test]
        fn no_head_is_too_strange(at in 0..80_usize, byte in any::<u8>()) {
            let mut file = file_of("a!h", "/p", 5, &[("etag", "x")]);
            if let Some(place) = file.get_mut(at) {
                *place = byte;
            }
            read(&file);
        }
    }
}
