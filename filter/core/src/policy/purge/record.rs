// SPDX-License-Identifier: Apache-2.0
//! One purge of one thing, and how it is written.

use std::fmt;

/// Greatest number that is read, out of reach by counting: what has a greater one was not written here, and would
/// leave no numbers for the purges to come.
const MAX_NUMBER: u64 = u64::MAX / 2;

/// Whether the old entry may still be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It counts as stale: the next request revalidates it.
    Soft,
    /// It is gone.
    Hard,
}

/// What a purge covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Nothing: the number is taken, no more than that.
    Nothing,
    /// Every URL whose hash ends so, see [`bucket_of`].
    Bucket(u16),
    /// Every cache key that begins so: an authority and a canonical path.
    Prefix(String),
    /// All.
    Everything,
}

/// A purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Greater than that of all purges before.
    pub number: u64,
    /// Hard or soft.
    pub kind: Kind,
    /// What it covers.
    pub scope: Scope,
}

/// The bucket of a URL, given as a cache key without qualifiers. The hash (FNV-1a) is the same on every
/// machine and in every version: the journal holds buckets.
pub fn bucket_of(url: &str) -> u16 {
    let hash = hash(url.as_bytes());
    let folded = hash ^ (hash >> 32);
    ((folded ^ (folded >> 16)) & 0xffff) as u16
}

/// FNV-1a, 64 bits.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Record {
    /// Reads one line, as [`fmt::Display`] writes it.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let number = words.next()?.parse().ok();
        let number = number.filter(|number| *number <= MAX_NUMBER)?;
        let kind = match words.next()? {
            "hard" => Kind::Hard,
            "soft" => Kind::Soft,
            _ => return None,
        };
        let scope = match (words.next()?, words.next()) {
            ("nothing", None) => Scope::Nothing,
            ("everything", None) => Scope::Everything,
            ("bucket", Some(bucket)) => Scope::Bucket(bucket.parse().ok()?),
            ("prefix", Some(prefix)) if is_prefix(prefix) => Scope::Prefix(prefix.to_owned()),
            _ => return None,
        };
        Some(Self {
            number,
            kind,
            scope,
        })
    }
}

/// Whether it can stand in a line: visible ASCII, as every canonical target is.
fn is_prefix(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Display for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Hard => "hard",
            Kind::Soft => "soft",
        };
        write!(out, "{} {kind} ", self.number)?;
        match &self.scope {
            Scope::Nothing => write!(out, "nothing"),
            Scope::Bucket(bucket) => write!(out, "bucket {bucket}"),
            Scope::Prefix(prefix) => write!(out, "prefix {prefix}"),
            Scope::Everything => write!(out, "everything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        for kind in [Kind::Hard, Kind::Soft] {
            for scope in [
                Scope::Nothing,
                Scope::Bucket(u16::MAX),
                Scope::Prefix("example.com:8080/a%20b/".into()),
                Scope::Everything,
            ] {
                let record = Record {
                    number: MAX_NUMBER,
                    kind,
                    scope,
                };
                assert_eq!(Record::parse(&record.to_string()), Some(record));
            }
        }
    }

    #[test]
    fn anything_else_is_no_record() {
        for line in [
            "",
            "1",
            "1 hard",
            "x hard everything",
            "1 firm everything",
            "1 hard everything else",
            "1 hard bucket",
            "1 hard bucket 65536",
            "1 hard prefix ",
            "1 hard prefix a b",
            "-1 hard everything",
            "18446744073709551615 hard everything",
        ] {
            assert_eq!(Record::parse(line), None, "{line}");
        }
    }

    #[test]
    fn buckets_are_those_that_journals_hold() {
        assert_eq!(bucket_of("example.com/"), bucket_of("example.com/"));
        let urls = (0..65_536).map(|number| bucket_of(&format!("example.com/objects/{number}")));
        let distinct: std::collections::BTreeSet<u16> = urls.collect();
        // 1 - 1/e of them, were the hash random.
        assert!(
            (40_000..43_000).contains(&distinct.len()),
            "{}",
            distinct.len()
        );
    }
}
