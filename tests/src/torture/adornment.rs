// SPDX-License-Identifier: Apache-2.0
//! Headers beyond the usual ones, of requests and of responses: bytes that are not text, many lines, long values.

/// The name of the fields; if there are many lines, a number follows it.
pub const NAME: &str = "x-adorned";
/// The lines of a response with many: the edge accepts 200, including the usual ones.
const RESPONSE_LINES: usize = 150;
/// The lines of a request with many: the edge accepts 100.
const REQUEST_LINES: usize = 60;
/// The bytes of a response's long value: the edge accepts 96 KiB.
const RESPONSE_BYTES: usize = 30_000;
/// The bytes of a request's long value: the edge accepts 32 KiB, and such a request cannot lead.
pub const REQUEST_BYTES: usize = 20_000;

/// Headers of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adornment {
    /// A value in Latin-1, which is not valid UTF-8.
    Bytes,
    /// Many lines.
    Lines,
    /// A long value.
    Long,
}

impl Adornment {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Bytes, Self::Lines, Self::Long];

    /// The fields of a response with this version. Each character is a byte.
    #[must_use]
    pub fn of_response(self, version: u64) -> Vec<(String, String)> {
        self.fields(&version.to_string(), RESPONSE_LINES, RESPONSE_BYTES)
    }

    /// The fields of a request. Each character is a byte.
    #[must_use]
    pub fn of_request(self) -> Vec<(String, String)> {
        self.fields("asked", REQUEST_LINES, REQUEST_BYTES)
    }

    fn fields(self, text: &str, lines: usize, bytes: usize) -> Vec<(String, String)> {
        let one = |value| vec![(NAME.to_owned(), value)];
        match self {
            Self::Bytes => one(format!("{text} \u{fc}\u{ff}\u{e9}")),
            Self::Lines => {
                let names = (0..lines).map(|number| format!("{NAME}-{number}"));
                names.map(|name| (name, text.to_owned())).collect()
            }
            Self::Long => one(format!("{text} {}", "l".repeat(bytes))),
        }
    }
}
