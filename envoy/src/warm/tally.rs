// SPDX-License-Identifier: Apache-2.0
//! The results of the requests so far.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// The result of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmed {
    /// The edge had the response already.
    Hit,
    /// The edge has stored the response.
    Stored,
    /// The edge has passed the response on.
    NotStored,
    /// There was no response, or it was an error.
    Failed,
}

impl Warmed {
    /// The result by the response's status and `Cache-Status` (RFC 9211), in which the edge's member is the last one.
    pub fn of(status: u16, cache_status: &str) -> Self {
        let own = cache_status.rsplit(',').next().unwrap_or_default();
        let has = |parameter: &str| own.split(';').skip(1).any(|part| part.trim() == parameter);
        match status {
            400.. => Self::Failed,
            // A stale response has been validated, or served in place of an error.
            _ if has("hit") || has("fwd=stale") => Self::Hit,
            // Another client's request is storing it.
            _ if has("stored") || has("collapsed") => Self::Stored,
            _ => Self::NotStored,
        }
    }
}

/// The numbers of the results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of the URLs that are known.
    pub urls: usize,
    /// Whether more URLs may follow.
    #[serde(skip)]
    pub more: bool,
    /// Requests that the cache has answered.
    pub hits: usize,
    /// Responses that have been stored.
    pub stored: usize,
    /// Responses that have not been stored.
    pub not_stored: usize,
    /// Requests without a response, or with an error.
    pub failed: usize,
    /// Keys of the bucket that no URL names.
    pub skipped: usize,
    /// Bytes of all bodies.
    pub bytes: u64,
}

impl Tally {
    /// Adds the result of a request whose response had a body of `bytes` bytes.
    pub fn add(&mut self, warmed: Warmed, bytes: u64) {
        let count = match warmed {
            Warmed::Hit => &mut self.hits,
            Warmed::Stored => &mut self.stored,
            Warmed::NotStored => &mut self.not_stored,
            Warmed::Failed => &mut self.failed,
        };
        *count += 1;
        self.bytes += bytes;
    }

    /// Number of the URLs that have been requested.
    pub const fn done(&self) -> usize {
        self.hits + self.stored + self.not_stored + self.failed
    }

    /// A line about the progress after this time.
    pub fn line(&self, elapsed: Duration) -> String {
        let rate = self.done() as f64 / elapsed.as_secs_f64().max(0.001);
        format!("{self}; {rate:.1}/s")
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            urls,
            more,
            hits,
            stored,
            not_stored,
            failed,
            skipped,
            bytes,
        } = self;
        let at_least = if *more { "at least " } else { "" };
        let skipped = match skipped {
            0 => String::new(),
            number => format!(", {number} keys skipped"),
        };
        let mib = *bytes as f64 / f64::from(1 << 20);
        write!(
            formatter,
            "{} of {at_least}{urls} URLs: {hits} hits, {stored} stored, {not_stored} not stored, {failed} \
             failed{skipped}; {mib:.1} MiB",
            self.done()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cache_in_cache_status_is_the_edge() {
        for (status, cache_status, expected) in [
            (200, "sluice; hit; ttl=5", Warmed::Hit),
            (
                200,
                "origin; hit, sluice; fwd=miss; fwd-status=200; stored",
                Warmed::Stored,
            ),
            (200, "origin; hit, sluice; fwd=miss", Warmed::NotStored),
            (200, "sluice; fwd=stale; fwd-status=304", Warmed::Hit),
            (200, "sluice; fwd=uri-miss; collapsed", Warmed::Stored),
            (301, "sluice; detail=redirect", Warmed::NotStored),
            (404, "sluice; fwd=miss; stored", Warmed::Failed),
            (200, "", Warmed::NotStored),
        ] {
            assert_eq!(
                Warmed::of(status, cache_status),
                expected,
                "{status} {cache_status}"
            );
        }
    }

    #[test]
    fn a_line_has_the_numbers_and_the_rate() {
        let mut tally = Tally {
            urls: 5,
            ..Tally::default()
        };
        tally.add(Warmed::Stored, 1 << 20);
        tally.add(Warmed::Hit, 1 << 19);
        tally.add(Warmed::Failed, 0);
        assert_eq!(
            tally.line(Duration::from_secs(2)),
            "3 of 5 URLs: 1 hits, 1 stored, 0 not stored, 1 failed; 1.5 MiB; 1.5/s"
        );
        (tally.more, tally.skipped) = (true, 2);
        assert_eq!(
            tally.to_string(),
            "3 of at least 5 URLs: 1 hits, 1 stored, 0 not stored, 1 failed, 2 keys skipped; 1.5 MiB"
        );
    }
}
