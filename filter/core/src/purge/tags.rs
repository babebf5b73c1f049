// SPDX-License-Identifier: Apache-2.0
//! Which URLs of a site have which surrogate keys. A cache group (RFC 9875) is a surrogate key that belongs to an origin.
//!
//! A request is looked up before its response's surrogate keys are known, so they are indexed when an
//! object is filled, in shared data, which outlives every VM of the process. A purge by surrogate key is
//! a purge of the URLs found there. What the index cannot tell is purged too: with more keys than fit, or
//! with entries of a former process, all of the site. Each site has room of its own, so that no site fills the index for
//! another.

use std::collections::BTreeMap;

use super::share;
use crate::host::SharedStore;
use crate::http::syntax::structured_field;
use crate::key::secret::StoreSecret;
use crate::policy::purge::UrlHash;
use crate::workers::byte_reader::ByteReader;
use crate::workers::shared_table::{SharedRecord, SharedTable};
use crate::workers::shared_value::SharedError;

/// Values in shared data.
const SHARDS: u64 = 256;
/// Surrogate keys and URLs of all sites together in one value: 14 MiB in all. A site with more than its share counts as
/// overflown there.
const ROOM: usize = 4_096;
/// The least share of a site.
const LEAST_ROOM: usize = 64;
/// Surrogate keys of one response; one with more makes the index of its site incomplete.
pub const MAX_TAGS: usize = 256;
const FORMAT: u8 = 2;

/// Hash of a surrogate key of some site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagHash(u64);

impl TagHash {
    /// The hash of `tag`.
    pub fn of(tag: &str, secret: &StoreSecret) -> Self {
        Self(secret.hash(tag.as_bytes()))
    }

    /// The hash of a group of the origin to which `url` belongs. No surrogate key has a space, so none has this hash by
    /// its text.
    fn of_group(url: &str, group: &str, secret: &StoreSecret) -> Self {
        let origin = url.split('/').next().unwrap_or_default();
        Self::of(&format!("{origin} {group}"), secret)
    }
}

/// The surrogate keys in a header's values, separated by spaces or commas; `None` if there are too many.
pub fn tags_of(values: &[&str], secret: &StoreSecret) -> Option<Vec<TagHash>> {
    let mut tags: Vec<TagHash> = values
        .iter()
        .flat_map(|value| value.split([' ', ',', '\t']))
        .filter(|tag| !tag.is_empty())
        .take(2 * MAX_TAGS)
        .map(|tag| TagHash::of(tag, secret))
        .collect();
    tags.sort_unstable();
    tags.dedup();
    (tags.len() <= MAX_TAGS).then_some(tags)
}

/// The cache groups in a field, `Cache-Groups` or `Cache-Group-Invalidation`, of a response for `url`. A field that is
/// not a list of strings names none (RFC 9875, 2).
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

/// What came of indexing a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagIndexing {
    /// It can be found.
    Indexed,
    /// One of its surrogate keys was purged while it was on its way, so it may be the old one.
    Purged,
}

/// A surrogate key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tag {
    hash: TagHash,
    /// The newest purge of it.
    purged: u64,
    urls: Vec<UrlHash>,
}

/// The surrogate keys of one site in a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SiteTags {
    /// The hard purge of all of the site after which this was begun.
    epoch: u64,
    overflown: bool,
    tags: Vec<Tag>,
}

impl SiteTags {
    fn size(&self) -> usize {
        self.tags.iter().map(|tag| 1 + tag.urls.len()).sum()
    }

    /// The entry of a surrogate key, made where there is none; `None` with more than `room`.
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

/// The surrogate keys of one value, by the names of their sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TagShard(BTreeMap<String, SiteTags>);

impl SharedRecord for TagShard {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        if reader.u8()? != FORMAT {
            return None;
        }
        let mut sites = BTreeMap::new();
        while !reader.is_empty() {
            let length = reader.u16()?;
            let name = reader.slice(usize::from(length))?;
            let name = std::str::from_utf8(name).ok()?.to_owned();
            sites.insert(name, SiteTags::decode(&mut reader)?);
        }
        Some(Self(sites))
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        for (name, site) in &self.0 {
            let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
            bytes.extend(length.to_le_bytes());
            bytes.extend(name.as_bytes());
            site.encode(&mut bytes);
        }
        bytes
    }
}

/// The index of one site in shared data.
#[derive(Debug)]
pub struct Tags<'a> {
    shards: SharedTable<'a, TagShard>,
    site: &'a str,
    epoch: u64,
    /// Surrogate keys and URLs of the site together in one shard.
    room: usize,
}

impl<'a> Tags<'a> {
    /// The index of the site of that name, one of `sites`, after the hard purge of all of it with the number `epoch` (0
    /// for none).
    pub fn new(store: &'a dyn SharedStore, site: &'a str, epoch: u64, sites: usize) -> Self {
        Self {
            shards: SharedTable::new(store, "sluice/tags", SHARDS),
            site,
            epoch,
            room: share(ROOM, sites, LEAST_ROOM),
        }
    }

    /// A response for `url` has these surrogate keys; its request was sent when `began` was the newest purge.
    ///
    /// # Errors
    /// The host refused a call, or other workers were faster too often: the index is incomplete.
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

    /// The surrogate key `hash` is purged with this number: its URLs, or `None` if there may be more of them.
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
            // NB: they stay: a soft purge leaves the entries, and another of the same key may be under way.
            Some(tag.urls.clone())
        })
    }

    /// The responses of a group were changed, as the change with this number: the URLs that are known. The index may know
    /// less than all. What follows from that would be a client's to cause, and nobody must invalidate a group (RFC 9875, 3).
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
        self.shards.change(hash.0, |TagShard(sites)| {
            let site = sites.entry(name.to_owned()).or_default();
            if site.epoch < epoch {
                // An older one tells of entries that are gone.
                *site = SiteTags {
                    epoch,
                    ..SiteTags::default()
                };
            }
            change(site)
        })
    }
}
