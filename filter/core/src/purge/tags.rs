// SPDX-License-Identifier: Apache-2.0
//! The index of a site's surrogate keys and their URLs. A cache group (RFC 9875) is a surrogate key that belongs to
//! an origin.
//!
//! A request is looked up before the surrogate keys of its response are known. So the keys are indexed when an object
//! is filled, in shared data, which outlives every VM of the process. A purge by surrogate key is a purge of the URLs
//! in the index. If the index is incomplete, the whole site is purged: with more keys than fit, or with entries of an
//! earlier process. Each site has its own share, so a site cannot fill the index of another site.

use std::collections::BTreeSet;

use super::share;
use crate::host::SharedStore;
use crate::http::syntax::structured_field;
use crate::key::secret::StoreSecret;
use crate::policy::purge::UrlHash;
use crate::purge::site_records::{SiteRecord, SiteRecords};
use crate::workers::byte_reader::ByteReader;
use crate::workers::shared_table::SharedTable;
use crate::workers::shared_value::SharedError;

/// Number of values in shared data.
const SHARDS: u64 = 256;
/// Number of surrogate keys and URLs of all sites in one value: 14 MiB in all values. A site that exceeds its share
/// counts as overflown in that value.
const ROOM: usize = 4_096;
/// Smallest share of a site.
const LEAST_ROOM: usize = 64;
/// Fields of a response with surrogate keys, in lower case.
pub const TAG_FIELDS: [&str; 5] = [
    "surrogate-key",
    "cache-tag",
    "xkey",
    "x-amz-meta-surrogate-key",
    ANY_CASE,
];
/// The field of Amazon CloudFront, in whose tags upper and lower case are the same.
const ANY_CASE: &str = "x-amz-meta-cache-tag";
/// Greatest number of surrogate keys of one response. A response with more makes the index of its site incomplete.
pub const MAX_TAGS: usize = 256;

/// Hash of a surrogate key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagHash(u64);

impl TagHash {
    /// Returns the hash of `tag`.
    pub fn of(tag: &str, secret: &StoreSecret) -> Self {
        Self(secret.hash(tag.as_bytes()))
    }

    /// Returns the hash of a tag in whatever case it is written. The hashed text begins with a tab, so it differs from
    /// each surrogate key and from each group.
    fn of_any_case(tag: &str, secret: &StoreSecret) -> Self {
        Self::of(&format!("\t{}", tag.to_ascii_lowercase()), secret)
    }

    /// Returns the hash of a group of the origin of `url`. The hashed text contains a space, so it differs from each
    /// surrogate key.
    fn of_group(url: &str, group: &str, secret: &StoreSecret) -> Self {
        let origin = url.split('/').next().unwrap_or_default();
        Self::of(&format!("{origin} {group}"), secret)
    }
}

/// Returns the surrogate keys in a header's value, separated by spaces or commas.
pub fn tags_in(value: &str) -> impl Iterator<Item = &str> {
    let tags = value.split([' ', ',', '\t']);
    tags.filter(|tag| !tag.is_empty())
}

/// Returns the hashes of the surrogate keys in these fields of a response, names and values; `None` if there are too
/// many.
pub fn tags_of(fields: &[(&str, &str)], secret: &StoreSecret) -> Option<Vec<TagHash>> {
    let tags = fields.iter().flat_map(|(name, value)| {
        tags_in(value).map(|tag| match *name {
            ANY_CASE => TagHash::of_any_case(tag, secret),
            _ => TagHash::of(tag, secret),
        })
    });
    let tags = distinct(tags.take(2 * MAX_TAGS));
    (tags.len() <= MAX_TAGS).then_some(tags)
}

/// Returns the hashes under which responses with one of these surrogate keys are in the index; `None` if there are
/// too many.
pub fn tags_named(tags: &[&str], secret: &StoreSecret) -> Option<Vec<TagHash>> {
    let named = distinct(tags.iter().copied());
    let of_any_field = |tag| [TagHash::of(tag, secret), TagHash::of_any_case(tag, secret)];
    (named.len() <= MAX_TAGS).then(|| distinct(named.into_iter().flat_map(of_any_field)))
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the hashes of the cache groups in the field `Cache-Groups` or `Cache-Group-Invalidation` of a response for
/// `url`. A field that is not a list of strings has no groups (RFC 9875, 2).
pub fn groups_of(url: &str, field: &str, secret: &StoreSecret) -> Vec<TagHash> {
    let names = structured_field::strings(field).unwrap_or_default();
    let mut groups: Vec<TagHash> = names
        .iter()
        .map(|name| TagHash::of_group(url, name, secret))
        .collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// Result of indexing a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagIndexing {
    /// The index has the response.
    Indexed,
    /// One of the response's surrogate keys was purged while the response was under way, so the response may be the
    /// old one.
    Purged,
}

/// Surrogate key with its URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tag {
    hash: TagHash,
    /// Number of the key's newest purge.
    purged: u64,
    urls: Vec<UrlHash>,
}

/// Surrogate keys of one site in a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SiteTags {
    /// Number of the hard purge of the whole site after which this index was started.
    epoch: u64,
    overflown: bool,
    tags: Vec<Tag>,
}

impl SiteTags {
    fn size(&self) -> usize {
        self.tags.iter().map(|tag| 1 + tag.urls.len()).sum()
    }

    /// Returns the entry of a surrogate key, which is added if it is missing; `None` if `room` is used up.
    fn tag(&mut self, hash: TagHash, room: usize) -> Option<&mut Tag> {
        let place = match self.tags.iter().position(|tag| tag.hash == hash) {
            Some(place) => place,
            None if self.size() >= room => return None,
            None => {
                self.tags.push(Tag {
                    hash,
                    purged: 0,
                    urls: Vec::new(),
                });
                self.tags.len() - 1
            }
        };
        self.tags.get_mut(place)
    }
}

impl SiteRecord for SiteTags {
    const FORMAT: u8 = 2;

    fn decode(reader: &mut ByteReader<'_>) -> Option<Self> {
        let epoch = reader.u64()?;
        let overflown = reader.u8()? != 0;
        let count = reader.u16()?;
        let mut tags = Vec::new();
        for _ in 0..count {
            let (hash, purged) = (TagHash(reader.u64()?), reader.u64()?);
            let count = reader.u16()?;
            let (urls, _) = reader.slice(8 * usize::from(count))?.as_chunks::<8>();
            let urls = urls.iter().copied().map(u64::from_le_bytes);
            let urls = urls.map(UrlHash).collect();
            tags.push(Tag { hash, purged, urls });
        }
        Some(Self {
            epoch,
            overflown,
            tags,
        })
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let count = |length: usize| u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes();
        bytes.extend(self.epoch.to_le_bytes());
        bytes.push(u8::from(self.overflown));
        bytes.extend(count(self.tags.len()));
        for tag in &self.tags {
            bytes.extend(tag.hash.0.to_le_bytes());
            bytes.extend(tag.purged.to_le_bytes());
            bytes.extend(count(tag.urls.len()));
            bytes.extend(tag.urls.iter().flat_map(|url| url.0.to_le_bytes()));
        }
    }
}

/// Surrogate keys of one value, by the names of their sites.
type TagShard = SiteRecords<SiteTags>;

/// Index of one site in shared data.
#[derive(Debug)]
pub struct Tags<'a> {
    shards: SharedTable<'a, TagShard>,
    site: &'a str,
    epoch: u64,
    /// Number of surrogate keys and URLs of the site in one shard.
    room: usize,
}

impl<'a> Tags<'a> {
    /// Opens the index of the site of this name, for an edge with `sites` sites. `epoch` is the number of the newest
    /// hard purge of the whole site (0 for none).
    pub fn new(store: &'a dyn SharedStore, site: &'a str, epoch: u64, sites: usize) -> Self {
        Self {
            shards: SharedTable::new(store, "sluice/tags", SHARDS),
            site,
            epoch,
            room: share(ROOM, sites, LEAST_ROOM),
        }
    }

    /// Adds a response for `url` with these surrogate keys. `began` is the number of the newest purge when its
    /// request was sent.
    ///
    /// # Errors
    /// The host refused a call, or other workers changed the same value too often. The index is incomplete.
    pub fn note(
        &mut self,
        tags: &[TagHash],
        url: UrlHash,
        began: u64,
    ) -> Result<TagIndexing, SharedError> {
        let (mut noted, room) = (TagIndexing::Indexed, self.room);
        for &hash in tags {
            let purged = self.update(hash, |site| {
                let full = site.size() >= room;
                let known = |tag: &&mut Tag| tag.urls.contains(&url);
                let Some(tag) = site.tag(hash, room).filter(|tag| !full || known(tag)) else {
                    site.overflown = true;
                    return false;
                };
                if !tag.urls.contains(&url) {
                    tag.urls.push(url);
                }
                tag.purged > began
            })?;
            if purged {
                noted = TagIndexing::Purged;
            }
        }
        Ok(noted)
    }

    /// Records the purge of the surrogate key `hash` with this number. Returns the key's URLs; `None` if there may be
    /// more URLs.
    ///
    /// # Errors
    /// As [`Tags::note`].
    pub fn purge(
        &mut self,
        hash: TagHash,
        number: u64,
    ) -> Result<Option<Vec<UrlHash>>, SharedError> {
        let room = self.room;
        self.update(hash, |site| {
            if site.overflown {
                return None;
            }
            let Some(tag) = site.tag(hash, room) else {
                site.overflown = true;
                return None;
            };
            tag.purged = tag.purged.max(number);
            // NB: keep the URLs, because a soft purge leaves the entries, and another purge of the same key may be
            // under way.
            Some(tag.urls.clone())
        })
    }

    /// Records the change of a group's responses with this number. Returns the URLs in the index, which may not be
    /// all. The rest is not purged, because a client could then cause a purge of the whole site. Caches need not
    /// invalidate a group (RFC 9875, 3).
    ///
    /// # Errors
    /// As [`Tags::note`].
    pub fn invalidate(&mut self, group: TagHash, number: u64) -> Result<Vec<UrlHash>, SharedError> {
        let room = self.room;
        self.update(group, |site| {
            let Some(tag) = site.tag(group, room) else {
                return Vec::new();
            };
            tag.purged = tag.purged.max(number);
            tag.urls.clone()
        })
    }

    fn update<R>(
        &mut self,
        hash: TagHash,
        mut change: impl FnMut(&mut SiteTags) -> R,
    ) -> Result<R, SharedError> {
        let (name, epoch) = (self.site, self.epoch);
        self.shards.change(hash.0, |SiteRecords(sites)| {
            let site = sites.entry(name.to_owned()).or_default();
            if site.epoch < epoch {
                // An older index lists entries that are out of reach.
                *site = SiteTags {
                    epoch,
                    ..SiteTags::default()
                };
            }
            change(site)
        })
    }
}
