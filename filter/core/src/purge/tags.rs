// SPDX-License-Identifier: Apache-2.0
//! Which URLs have which surrogate keys. A cache group (RFC 9875) is a surrogate key that belongs to an origin.
//!
//! A request is looked up before its response's surrogate keys are known, so they are indexed when an
//! object is filled, in shared data, which outlives every VM of the process. A purge by surrogate key is
//! a purge of the URLs found there. What the index cannot tell is purged too: with more keys than fit, or
//! with entries of a former process, everything.

use crate::host::SharedStore;
use crate::http::structured_field;
use crate::policy::purge::hash;
use crate::workers::byte_reader::ByteReader;
use crate::workers::shared_table::{SharedRecord, SharedTable};
use crate::workers::shared_value::SharedError;

/// Values in shared data.
const SHARDS: u64 = 256;
/// Surrogate keys and URLs together in one value, above which it counts as overflown: 12 MiB in all.
const ROOM: usize = 4_096;
/// Surrogate keys of one response; one with more makes the index incomplete.
pub const MAX_TAGS: usize = 256;
const FORMAT: u8 = 1;

/// Hash of a surrogate key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagHash(u64);

impl TagHash {
    /// The hash of `tag`.
    pub fn of(tag: &str) -> Self {
        Self(hash(tag.as_bytes()))
    }

    /// The hash of the surrogate key `tag` of a site.
    fn of_site(name: &str, tag: &str) -> Self {
        match name {
            "" => Self::of(tag),
            name => Self::of(&format!("{name} {tag}")),
        }
    }

    /// The hash of a group of the origin to which `url` belongs. No surrogate key has a space, so none has this hash by
    /// its text.
    fn of_group(url: &str, group: &str) -> Self {
        let origin = url.split('/').next().unwrap_or_default();
        Self::of(&format!("{origin} {group}"))
    }
}

/// The surrogate keys of a site in a header's value, separated by spaces or commas; `None` if there are too many.
pub fn tags_of(site: &str, values: &[&str]) -> Option<Vec<TagHash>> {
    let mut tags: Vec<TagHash> = values
        .iter()
        .flat_map(|value| value.split([' ', ',', '\t']))
        .filter(|tag| !tag.is_empty())
        .take(2 * MAX_TAGS)
        .map(|tag| TagHash::of_site(site, tag))
        .collect();
    tags.sort_unstable();
    tags.dedup();
    (tags.len() <= MAX_TAGS).then_some(tags)
}

/// The cache groups in a field, `Cache-Groups` or `Cache-Group-Invalidation`, of a response for `url`. A field that is
/// not a list of strings names none (RFC 9875, 2).
pub fn groups_of(url: &str, field: &str) -> Vec<TagHash> {
    let names = structured_field::strings(field).unwrap_or_default();
    let mut groups: Vec<TagHash> = names
        .iter()
        .map(|name| TagHash::of_group(url, name))
        .collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// What came of indexing a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
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
    buckets: Vec<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shard {
    /// The hard purge of everything after which it was begun.
    epoch: u64,
    overflown: bool,
    tags: Vec<Tag>,
}

impl SharedRecord for Shard {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        if reader.u8()? != FORMAT {
            return None;
        }
        let overflown = reader.u8()? != 0;
        let epoch = reader.u64()?;
        let mut tags = Vec::new();
        while !reader.is_empty() {
            let hash = TagHash(reader.u64()?);
            let purged = reader.u64()?;
            let count = reader.u16()?;
            let (buckets, _) = reader.slice(2 * usize::from(count))?.as_chunks::<2>();
            tags.push(Tag {
                hash,
                purged,
                buckets: buckets.iter().copied().map(u16::from_le_bytes).collect(),
            });
        }
        Some(Self {
            epoch,
            overflown,
            tags,
        })
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT, u8::from(self.overflown)];
        bytes.extend(self.epoch.to_le_bytes());
        for tag in &self.tags {
            bytes.extend(tag.hash.0.to_le_bytes());
            bytes.extend(tag.purged.to_le_bytes());
            let count = u16::try_from(tag.buckets.len()).unwrap_or(u16::MAX);
            bytes.extend(count.to_le_bytes());
            bytes.extend(tag.buckets.iter().flat_map(|bucket| bucket.to_le_bytes()));
        }
        bytes
    }
}

impl Shard {
    fn size(&self) -> usize {
        self.tags.iter().map(|tag| 1 + tag.buckets.len()).sum()
    }

    /// The entry of a surrogate key, made where there is none; `None` without room.
    fn tag(&mut self, hash: TagHash) -> Option<&mut Tag> {
        let position = match self.tags.iter().position(|tag| tag.hash == hash) {
            Some(position) => position,
            None if self.size() >= ROOM => return None,
            None => {
                self.tags.push(Tag {
                    hash,
                    purged: 0,
                    buckets: Vec::new(),
                });
                self.tags.len() - 1
            }
        };
        self.tags.get_mut(position)
    }
}

/// The index in shared data.
#[derive(Debug)]
pub struct Tags<'a> {
    shards: SharedTable<'a, Shard>,
    epoch: u64,
}

impl<'a> Tags<'a> {
    /// The index in `store`, after the hard purge of everything with that number (0 for none).
    pub fn new(store: &'a dyn SharedStore, epoch: u64) -> Self {
        Self {
            shards: SharedTable::new(store, "sluice/tags", SHARDS),
            epoch,
        }
    }

    /// A response for a URL of `bucket` has these surrogate keys; its request was sent when `began` was
    /// the newest purge.
    ///
    /// # Errors
    /// The host refused a call, or other workers were faster too often: the index is incomplete.
    pub fn note(
        &mut self,
        tags: &[TagHash],
        bucket: u16,
        began: u64,
    ) -> Result<Noted, SharedError> {
        let mut noted = Noted::Indexed;
        for &hash in tags {
            let purged = self.update(hash, |shard| {
                let full = shard.size() >= ROOM;
                let known = |tag: &&mut Tag| tag.buckets.contains(&bucket);
                let Some(tag) = shard.tag(hash).filter(|tag| !full || known(tag)) else {
                    shard.overflown = true;
                    return false;
                };
                if !tag.buckets.contains(&bucket) {
                    tag.buckets.push(bucket);
                }
                tag.purged > began
            })?;
            if purged {
                noted = Noted::Purged;
            }
        }
        Ok(noted)
    }

    /// The surrogate key `hash` is purged with this number: the buckets of its URLs, or `None` if there
    /// may be more of them.
    ///
    /// # Errors
    /// As [`Tags::note`].
    pub fn purge(&mut self, hash: TagHash, number: u64) -> Result<Option<Vec<u16>>, SharedError> {
        self.update(hash, |shard| {
            if shard.overflown {
                return None;
            }
            let Some(tag) = shard.tag(hash) else {
                shard.overflown = true;
                return None;
            };
            tag.purged = tag.purged.max(number);
            // NB: they stay: a soft purge leaves the entries, and another of the same key may be under way.
            Some(tag.buckets.clone())
        })
    }

    /// The responses of a group were changed, as the change with this number: the buckets of the URLs that are known. The
    /// index may know less than all. What follows from that would be a client's to cause, and nobody must invalidate a
    /// group (RFC 9875, 3).
    ///
    /// # Errors
    /// As [`Tags::note`].
    pub fn invalidate(&mut self, group: TagHash, number: u64) -> Result<Vec<u16>, SharedError> {
        self.update(group, |shard| {
            let Some(tag) = shard.tag(group) else {
                return Vec::new();
            };
            tag.purged = tag.purged.max(number);
            tag.buckets.clone()
        })
    }

    fn update<R>(
        &mut self,
        hash: TagHash,
        mut change: impl FnMut(&mut Shard) -> R,
    ) -> Result<R, SharedError> {
        let epoch = self.epoch;
        self.shards.change(hash.0, |shard| {
            if shard.epoch < epoch {
                // An older shard tells of entries that are gone.
                *shard = Shard {
                    epoch,
                    ..Shard::default()
                };
            }
            change(shard)
        })
    }
}
