// SPDX-License-Identifier: Apache-2.0
//! The purges in shared data, from which a worker's replica starts. Purges get their numbers here.

use std::collections::{BTreeMap, BTreeSet};

use super::share;
use crate::host::SharedStore;
use crate::policy::Origin;
use crate::policy::purge::{Kind, PARTS, Record, Scope};
use crate::purge::feed::FeedPosition;
use crate::purge::site_records::SiteRecords;
use crate::purge::tables::table::Purges;
use crate::purge::tables::url_part::UrlPart;
use crate::sites::{Site, Sites};
use crate::workers::shared_table::SharedTable;
use crate::workers::shared_value;
use crate::workers::shared_value::SharedError;

const HEAD: &str = "sluice/purges/head";
/// Number of URLs of all sites in one part, for each kind of purge: 65,536 in all parts. If a site exceeds its share,
/// all of the site's URLs in that part count as purged.
const URLS: usize = 256;
/// Smallest share of a site.
const LEAST_URLS: usize = 16;
/// Number of separate prefixes of all sites. If a site exceeds its share, the two of its prefixes with the longest
/// common beginning are merged.
const PREFIXES: usize = 256;
/// Smallest share of a site.
const LEAST_PREFIXES: usize = 16;

/// State at the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitialPurges {
    /// Purges of earlier processes.
    pub purges: Purges,
    /// Whether the store may hold entries whose surrogate keys are not in the index.
    pub unindexed_entries: bool,
}

impl InitialPurges {
    /// Returns the state at the start of a process, at the time `now` in seconds since the Unix epoch.
    ///
    /// Without a journal, the purges of earlier processes are unknown, but the store may still have entries of these
    /// processes. Then a purge of everything has the number `now`. The purge is hard if purge calls are possible. For
    /// an HTTP origin it is soft, because requests may have changed resources.
    pub fn of(sites: &Sites, now: u64) -> Self {
        let purge = &sites.edge.purge;
        let mut purges = Purges::default();
        let records = purge.journal.iter().flatten();
        records.for_each(|record| purges.apply(record));
        let may_purge = purge.feed.is_some()
            || purge.token.is_some()
            || sites.sites.iter().any(|site| site.purge_token.is_some());
        let is_http = |site: &Site| matches!(site.policy.origin, Origin::Http(_));
        let kind = if may_purge {
            Some(Kind::Hard)
        } else {
            sites.sites.iter().any(is_http).then_some(Kind::Soft)
        };
        if let (None, true, Some(kind)) = (&purge.journal, purge.warm, kind) {
            purges.apply(&Record {
                number: now,
                kind,
                scope: Scope::Everything,
            });
        }
        Self {
            purges,
            unindexed_entries: purge.journal.is_some() && purge.warm,
        }
    }
}

/// Value in shared data with the numbers, the prefixes and the purges of whole sites or of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PurgeHead {
    purges: Purges,
    /// Number of the hard purge of everything since which the surrogate keys of all entries are indexed.
    indexed_from: u64,
    /// Sites whose surrogate keys are indexed only since a later hard purge, with the number of that purge.
    lost: BTreeMap<String, u64>,
}

impl PurgeHead {
    fn decode(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let (first, records) = text.split_once('\n').unwrap_or_default();
        let mut purges = Purges::default();
        purges.apply_text(records);
        let mut words = first.split(' ');
        let indexed_from = words.next().and_then(|number| number.parse().ok());
        let lost = words.filter_map(|word| {
            let (site, number) = word.rsplit_once('=')?;
            Some((site.to_owned(), number.parse().ok()?))
        });
        Self {
            purges,
            indexed_from: indexed_from.unwrap_or(u64::MAX),
            lost: lost.collect(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let lost = self.lost.iter();
        let lost: String = lost
            .map(|(site, number)| format!(" {site}={number}"))
            .collect();
        let records = self.purges.to_text();
        format!("{}{lost}\n{records}", self.indexed_from).into_bytes()
    }

    fn number(&mut self, kind: Kind, scope: Scope, records: &mut Vec<Record>) {
        let record = Record {
            number: self.purges.newest() + 1,
            kind,
            scope,
        };
        let for_head = match record.scope {
            // These scopes are in the parts.
            Scope::Url { .. } | Scope::Part { .. } => Record {
                scope: Scope::Nothing,
                ..record.clone()
            },
            _ => record.clone(),
        };
        self.purges.apply(&for_head);
        records.push(record);
    }

    /// Returns the number of the hard purge of a whole site since which the site's surrogate keys are indexed.
    fn indexed_from(&self, site: &str) -> u64 {
        let lost = self.lost.get(site).copied().unwrap_or(0);
        self.indexed_from.max(lost)
    }
}

/// One part of the URLs of each site.
type SharedPart = SiteRecords<UrlPart>;

impl SharedPart {
    /// Adds purges of URLs of the part, or of the whole part. Drops the purges that `head` covers. If a site has more
    /// than `bound` URLs, purges of the whole part replace them and are returned. Each has the number of the newest
    /// purge that it replaces, so later responses are not purged again.
    fn apply(
        &mut self,
        number: u8,
        records: &[&Record],
        head: &Purges,
        bound: usize,
    ) -> Vec<Record> {
        let mut touched = BTreeSet::new();
        for record in records {
            if let Scope::Url { site, .. } | Scope::Part { site, .. } = &record.scope {
                let part = self.0.entry(site.clone()).or_default();
                match record.scope {
                    Scope::Url { hash, .. } => part.note(hash, record.kind, record.number),
                    _ => part.note_all(record.kind, record.number),
                }
                touched.insert(site);
            }
        }
        let mut folded = Vec::new();
        for site in touched {
            let Some(part) = self.0.get_mut(site) else {
                continue;
            };
            part.drop_covered(head.whole_site(site));
            for (kind, newest) in part.fold(bound) {
                part.note_all(kind, newest);
                folded.push(Record {
                    number: newest,
                    kind,
                    scope: Scope::Part {
                        site: site.clone(),
                        part: number,
                    },
                });
            }
            if part.is_empty() {
                self.0.remove(site);
            }
        }
        folded
    }
}

/// Purges in shared data.
#[derive(Debug)]
pub struct SharedPurges<'a> {
    store: &'a dyn SharedStore,
    /// Number of sites of the edge.
    sites: usize,
}

impl<'a> SharedPurges<'a> {
    /// Opens the purges in `store`, for an edge with `sites` sites.
    pub fn new(store: &'a dyn SharedStore, sites: usize) -> Self {
        Self { store, sites }
    }

    /// Writes the state at the start, unless another VM of this process has written it.
    ///
    /// # Errors
    /// The host refused a call, or other workers changed the same value too often.
    pub fn start(&mut self, initial: &InitialPurges) -> Result<(), SharedError> {
        if !shared_value::read(self.store, HEAD)?.is_empty() {
            return Ok(());
        }
        let mut records: Vec<Record> = initial.purges.records().collect();
        let mut purges = Purges::default();
        let for_head = records.iter().filter(|record| part_of(record).is_none());
        for_head.for_each(|record| purges.apply(record));
        // NB: write the parts first, because a head means that everything is written.
        self.write_parts(&mut records, &purges)?;
        let everything = initial.purges.everything().hard;
        let head = PurgeHead {
            purges,
            indexed_from: everything + u64::from(initial.unindexed_entries),
            lost: BTreeMap::new(),
        };
        shared_value::update(self.store, HEAD, |bytes| {
            (bytes.is_empty().then(|| head.encode()), ())
        })
    }

    /// Reads all purges.
    ///
    /// # Errors
    /// The host refused a call.
    pub fn load(&self) -> Result<Purges, SharedError> {
        let mut purges = self.head()?.purges;
        let parts = self.parts();
        for number in 0..=u8::MAX {
            for (site, part) in parts.read(u64::from(number))?.0 {
                purges.insert_part(&site, number, part);
            }
        }
        purges.drop_covered();
        Ok(purges)
    }

    /// Gives numbers to the purges of `scopes` and writes them. Returns the records for every worker. If a site has
    /// too many prefixes or URLs, the records cover more of this site than `scopes`, but no other site.
    ///
    /// # Errors
    /// The host refused a call, or other workers changed the same value too often. Some of the purges may be written.
    pub fn commit(&mut self, kind: Kind, scopes: &[Scope]) -> Result<Vec<Record>, SharedError> {
        let prefixes = share(PREFIXES, self.sites, LEAST_PREFIXES);
        let (mut records, head) = shared_value::update(self.store, HEAD, |bytes| {
            let mut head = PurgeHead::decode(bytes);
            let mut records = Vec::with_capacity(scopes.len());
            for scope in scopes {
                head.number(kind, scope.clone(), &mut records);
                while let Some((kind, wider)) = head.purges.fold(prefixes) {
                    head.number(kind, wider, &mut records);
                }
            }
            (Some(head.encode()), (records, head.purges))
        })?;
        self.write_parts(&mut records, &head)?;
        Ok(records)
    }

    /// Returns the last line of the purge feed that was applied; `None` if no feed was read.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn feed(&self) -> Result<Option<FeedPosition>, SharedError> {
        Ok(self.head()?.purges.feed())
    }

    /// Returns the number of the newest hard purge of a whole site; 0 if there is none.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn epoch(&self, site: &str) -> Result<u64, SharedError> {
        Ok(self.head()?.purges.whole_site(site).hard)
    }

    /// Whether the index has the surrogate keys of every reachable entry of a site.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn is_indexed(&self, site: &str) -> Result<bool, SharedError> {
        let head = self.head()?;
        Ok(head.purges.whole_site(site).hard >= head.indexed_from(site))
    }

    /// Records that entries of a site were stored whose surrogate keys are not in the index.
    ///
    /// # Errors
    /// As [`SharedPurges::commit`].
    pub fn lose_index(&mut self, site: &str) -> Result<(), SharedError> {
        shared_value::update(self.store, HEAD, |bytes| {
            let mut head = PurgeHead::decode(bytes);
            let lost = head.purges.whole_site(site).hard + 1;
            let news = head.indexed_from(site) < lost;
            head.lost.insert(site.to_owned(), lost);
            (news.then(|| head.encode()), ())
        })
    }

    fn head(&self) -> Result<PurgeHead, SharedError> {
        Ok(PurgeHead::decode(&shared_value::read(self.store, HEAD)?))
    }

    fn parts(&self) -> SharedTable<'a, SharedPart> {
        SharedTable::new(self.store, "sluice/purged-urls", PARTS)
    }

    /// Writes the purges of URLs in `records` to the parts, beside those of the `head`. If a site has too many URLs
    /// in one part, purges of the whole part are added to `records`.
    fn write_parts(&self, records: &mut Vec<Record>, head: &Purges) -> Result<(), SharedError> {
        let bound = share(URLS, self.sites, LEAST_URLS);
        let mut by_part: BTreeMap<u8, Vec<&Record>> = BTreeMap::new();
        for record in &*records {
            if let Some(part) = part_of(record) {
                by_part.entry(part).or_default().push(record);
            }
        }
        let (mut parts, mut folded) = (self.parts(), Vec::new());
        for (number, records) in by_part {
            let change = |part: &mut SharedPart| part.apply(number, &records, head, bound);
            folded.extend(parts.change(u64::from(number), change)?);
        }
        records.extend(folded);
        Ok(())
    }
}

/// Returns the part that holds a purge; `None` for the head.
fn part_of(record: &Record) -> Option<u8> {
    match record.scope {
        Scope::Url { hash, .. } => Some(hash.part()),
        Scope::Part { part, .. } => Some(part),
        _ => None,
    }
}
