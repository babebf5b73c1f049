// SPDX-License-Identifier: Apache-2.0
//! The data about a response that ORIGIN writes into a separate header. EDGE reads it from the store's response, on
//! each hit, on any worker and after a restart.

use std::fmt::Write;

use crate::stored::words::Words;
use sluice_core::freshness::Lifetime;
use sluice_core::workers::BodyId;

/// Name of the response header with the entry.
pub const ENTRY_HEADER: &str = "x-sluice-entry";

/// Version of the format. It changes with the fields of [`Entry`] and of
/// [`Validator`](crate::stored::validator::Validator), so that a version does not misread another version's entries.
const FORMAT: &str = "7";

/// Identity of a fill, different from those of all other processes, including earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillId {
    /// Number of the worker's VM.
    pub nonce: u64,
    /// Number of the request in the VM that caused the fill.
    pub stream: u32,
}

impl FillId {
    /// Returns the body of the fill, if the fill has one.
    pub fn body(self) -> BodyId {
        BodyId(self.nonce.wrapping_add(u64::from(self.stream)))
    }
}

/// Data about a response that its other headers do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Fill that brought the response.
    pub fill: FillId,
    /// Body of the response: that of the fill, or the stored one that the fill found valid.
    pub body: BodyId,
    /// Status of the origin.
    pub status: u16,
    /// How long the response may be served.
    pub lifetime: Lifetime,
    /// Age of the response when it arrived, in seconds.
    pub age: u64,
    /// Number of the newest purge when the request was sent; 0 if there was none.
    pub purge: u64,
    /// Soft number that the policy of the request declared for the URL; 0 if there was none.
    pub declared: u64,
    /// Whether the response is stored.
    pub stored: bool,
    /// Whether the fill was a successful revalidation.
    pub revalidated: bool,
    /// Whether `:status` differs from the origin's.
    pub disguised: bool,
    /// Whether the followers get a copy of the response, although it is not stored.
    pub shared_once: bool,
    /// Whether the response may be reused for requests with `Authorization` (RFC 9111, 3.5).
    pub allows_authenticated: bool,
    /// Whether these are the headers alone of an object that is served in slices, as the store has them. Other headers
    /// alone are stored for a moment.
    pub is_of_index: bool,
    /// Whole cache key, because Envoy's disk stores name files by a short hash and do not compare keys.
    pub key: &'a str,
}

const STORED: u8 = 1;
const REVALIDATED: u8 = 2;
const DISGUISED: u8 = 4;
const SHARED_ONCE: u8 = 8;
const ALLOWS_AUTHENTICATED: u8 = 16;
const OF_INDEX: u8 = 32;

impl<'a> Entry<'a> {
    /// Returns the value of the header: the fields with spaces between them, the key last.
    pub fn encode(&self) -> String {
        let mut value = String::with_capacity(64 + self.key.len());
        let Self {
            fill,
            body,
            status,
            age,
            key,
            ..
        } = self;
        let Lifetime {
            ttl,
            stale_while_revalidate,
            stale_if_error,
        } = self.lifetime;
        let (purge, flags) = (self.purges(), self.flags());
        // Writing into a String cannot fail.
        let _ = write!(
            value,
            "{FORMAT} {:x} {:x} {:x} {status} {ttl} {age} {stale_while_revalidate} {stale_if_error} \
             {purge} {flags} {key}",
            fill.nonce, fill.stream, body.0
        );
        value
    }

    /// Reads the value of a header; `None` for another format.
    pub fn parse(value: &'a str) -> Option<Self> {
        let mut fields = Words::of(value);
        if fields.next()? != FORMAT {
            return None;
        }
        let nonce = u64::from_str_radix(fields.next()?, 16).ok()?;
        let stream = u32::from_str_radix(fields.next()?, 16).ok()?;
        let body = BodyId(u64::from_str_radix(fields.next()?, 16).ok()?);
        let status = fields.next()?.parse().ok()?;
        let ttl = fields.next()?.parse().ok()?;
        let age = fields.next()?.parse().ok()?;
        let stale_while_revalidate = fields.next()?.parse().ok()?;
        let stale_if_error = fields.next()?.parse().ok()?;
        let (purge, declared) = read_purges(fields.next()?)?;
        let flags: u8 = fields.next()?.parse().ok()?;
        Some(Self {
            fill: FillId { nonce, stream },
            body,
            status,
            lifetime: Lifetime {
                ttl,
                stale_while_revalidate,
                stale_if_error,
            },
            age,
            purge,
            declared,
            stored: flags & STORED != 0,
            revalidated: flags & REVALIDATED != 0,
            disguised: flags & DISGUISED != 0,
            shared_once: flags & SHARED_ONCE != 0,
            allows_authenticated: flags & ALLOWS_AUTHENTICATED != 0,
            is_of_index: flags & OF_INDEX != 0,
            key: fields.rest()?,
        })
    }

    /// Whether the response was not stored only because the store had no room. A response that must not be stored has
    /// no lifetime.
    pub fn lacks_room(&self) -> bool {
        !self.stored && self.lifetime.ttl > 0
    }

    /// The numbers of purges: `PURGE`, or `PURGE+DECLARED`.
    fn purges(&self) -> String {
        match self.declared {
            0 => self.purge.to_string(),
            declared => format!("{}+{declared}", self.purge),
        }
    }

    fn flags(&self) -> u8 {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        flag(self.stored, STORED)
            | flag(self.revalidated, REVALIDATED)
            | flag(self.disguised, DISGUISED)
            | flag(self.shared_once, SHARED_ONCE)
            | flag(self.allows_authenticated, ALLOWS_AUTHENTICATED)
            | flag(self.is_of_index, OF_INDEX)
    }
}

/// Reads the numbers of purges.
fn read_purges(word: &str) -> Option<(u64, u64)> {
    let (purge, declared) = word.split_once('+').unwrap_or((word, "0"));
    Some((purge.parse().ok()?, declared.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_round_trips() {
        for bits in 0..64_u8 {
            let entry = Entry {
                fill: FillId {
                    nonce: u64::MAX,
                    stream: 9,
                },
                body: BodyId(u64::MAX),
                status: 503,
                lifetime: Lifetime {
                    ttl: 3_600,
                    stale_while_revalidate: 60,
                    stale_if_error: 86_400,
                },
                age: 7,
                purge: 17,
                declared: u64::from(bits / 32),
                stored: bits & 1 != 0,
                revalidated: bits & 2 != 0,
                disguised: bits & 4 != 0,
                shared_once: bits & 8 != 0,
                allows_authenticated: bits & 16 != 0,
                is_of_index: bits & 32 != 0,
                key: "bucket.example/site/a%20b",
            };
            assert_eq!(Entry::parse(&entry.encode()), Some(entry));
        }
    }

    #[test]
    fn anything_else_is_no_entry() {
        for value in [
            "",
            "7",
            "1 1 1 200 5 0 0 k",
            "2 1 1 200 5 0 0 0 0 k",
            "7 x 1 1 200 5 0 0 0 0 0 k",
            "3 1 1 200 5 0 0 0 0 0 k",
            "7 1 1 1 200 5 0 0 0 0 0",
            "7 1 1 1 200 5 0 -1 0 0 0 k",
            "7 1 1 1 99999 5 0 0 0 0 0 k",
        ] {
            assert_eq!(Entry::parse(value), None, "{value}");
        }
    }
}
