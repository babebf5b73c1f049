// SPDX-License-Identifier: Apache-2.0
//! The purges of one part of a site's URLs, each by the hash of its URL.
//!
//! A part is bounded. If it has too many URLs, all of its URLs count as purged at the time of the newest purge. Some
//! of them are fetched or revalidated once more than necessary, but none is served too long. Each kind has its own
//! bound. So changes by clients never drop a purge of a caller, and never become a hard purge.

use crate::policy::purge::{Kind, Record, Scope, UrlHash};
use crate::purge::site_records::SiteRecord;
use crate::purge::tables::generations::{Generations, KINDS};
use crate::workers::byte_reader::ByteReader;

/// Newest purges of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct UrlNumbers {
    /// Number of the purge of all URLs of the part; 0 if there is none.
    all: u64,
    /// Numbers of the purges of single URLs, in the order of their hashes.
    urls: Vec<(UrlHash, u64)>,
}

impl UrlNumbers {
    fn newest(&self, url: UrlHash) -> u64 {
        let found = self.urls.binary_search_by_key(&url, |(url, _)| *url);
        let own = found.ok().and_then(|place| self.urls.get(place));
        own.map_or(self.all, |(_, number)| (*number).max(self.all))
    }

    fn note(&mut self, url: UrlHash, number: u64) {
        match self.urls.binary_search_by_key(&url, |(url, _)| *url) {
            Ok(place) => {
                if let Some((_, newest)) = self.urls.get_mut(place) {
                    *newest = number.max(*newest);
                }
            }
            Err(place) => self.urls.insert(place, (url, number)),
        }
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let count = u32::try_from(self.urls.len()).unwrap_or(u32::MAX);
        bytes.extend(self.all.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        let numbers = self.urls.iter().flat_map(|(url, number)| [url.0, *number]);
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
    }

    fn decode(reader: &mut ByteReader<'_>) -> Option<Self> {
        let all = reader.u64()?;
        let count = usize::try_from(reader.u32()?).ok()?;
        let (numbers, _) = reader.slice(count.checked_mul(16)?)?.as_chunks::<8>();
        let mut numbers = numbers.iter().copied().map(u64::from_le_bytes);
        let mut urls = Vec::with_capacity(count);
        while let (Some(url), Some(number)) = (numbers.next(), numbers.next()) {
            urls.push((UrlHash(url), number));
        }
        let sorted = urls.is_sorted_by(|(one, _), (next, _)| one < next);
        sorted.then_some(Self { all, urls })
    }
}

/// Purges of one part of a site's URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlPart {
    hard: UrlNumbers,
    soft: UrlNumbers,
    changed: UrlNumbers,
}

impl UrlPart {
    /// Whether the part has no purge.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the purges that cover the whole part.
    pub fn all(&self) -> Generations {
        Generations::by_kind(|kind| self.of(kind).all)
    }

    /// Returns the purges that cover the URL with this hash.
    pub fn generations(&self, url: UrlHash) -> Generations {
        Generations::by_kind(|kind| self.of(kind).newest(url))
    }

    /// Adds the purge of one URL.
    pub fn note(&mut self, url: UrlHash, kind: Kind, number: u64) {
        if number > self.all().covered(kind) {
            self.numbers(kind).note(url, number);
        }
    }

    /// Adds the purge of the whole part.
    pub fn note_all(&mut self, kind: Kind, number: u64) {
        let numbers = self.numbers(kind);
        numbers.all = number.max(numbers.all);
        self.drop_covered(Generations::default());
    }

    /// Drops each purge that a wider and newer one covers.
    pub fn drop_covered(&mut self, wider: Generations) {
        let all = self.all().beside(wider);
        let wider = wider.raised(all);
        for kind in KINDS {
            let numbers = self.numbers(kind);
            numbers.all = all.get(kind);
            numbers
                .urls
                .retain(|(_, number)| *number > wider.covered(kind));
        }
    }

    /// Returns the purges of the whole part that replace those of single URLs, for each kind with more than `bound`
    /// URLs.
    pub fn fold(&self, bound: usize) -> impl Iterator<Item = (Kind, u64)> + use<> {
        let newest = |kind| {
            let urls = &self.of(kind).urls;
            let newest = urls.iter().map(|(_, number)| *number).max();
            newest.filter(|_| urls.len() > bound)
        };
        let folded = KINDS.map(|kind| (kind, newest(kind)));
        folded
            .into_iter()
            .filter_map(|(kind, number)| Some((kind, number?)))
    }

    /// Returns records that make the same part of a site. `part` is its number.
    pub fn records(&self, site: &str, part: u8) -> impl Iterator<Item = Record> {
        let whole = self.all().records(Scope::Part {
            site: site.to_owned(),
            part,
        });
        let urls = KINDS.into_iter().flat_map(move |kind| {
            let urls = self.of(kind).urls.iter();
            urls.map(move |&(hash, number)| Record {
                number,
                kind,
                scope: Scope::Url {
                    site: site.to_owned(),
                    hash,
                },
            })
        });
        whole.chain(urls)
    }

    const fn of(&self, kind: Kind) -> &UrlNumbers {
        match kind {
            Kind::Hard => &self.hard,
            Kind::Soft => &self.soft,
            Kind::Changed => &self.changed,
        }
    }

    fn numbers(&mut self, kind: Kind) -> &mut UrlNumbers {
        match kind {
            Kind::Hard => &mut self.hard,
            Kind::Soft => &mut self.soft,
            Kind::Changed => &mut self.changed,
        }
    }
}

impl SiteRecord for UrlPart {
    const FORMAT: u8 = 1;

    fn decode(reader: &mut ByteReader<'_>) -> Option<Self> {
        Some(Self {
            hard: UrlNumbers::decode(reader)?,
            soft: UrlNumbers::decode(reader)?,
            changed: UrlNumbers::decode(reader)?,
        })
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        for numbers in [&self.hard, &self.soft, &self.changed] {
            numbers.encode(bytes);
        }
    }
}
