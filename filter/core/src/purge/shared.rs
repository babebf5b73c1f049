// SPDX-License-Identifier: Apache-2.0
//! The purges in shared data: what a worker's replica starts from, and where numbers are given out.

use std::collections::BTreeMap;

use super::table::Purges;
use crate::host::SharedStore;
use crate::policy::Origin;
use crate::policy::purge::{Kind, Record, Scope};
use crate::sites::{Site, Sites};
use crate::workers::shared_value;
use crate::workers::shared_value::SharedError;

const HEAD: &str = "sluice/purges/head";
/// Buckets are spread over so many values, so that a purge of one URL writes little.
const SHARDS: u16 = 64;

/// What holds when the process starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Initial {
    /// The purges of former processes.
    pub purges: Purges,
    /// Whether the store may hold entries whose surrogate keys nobody has indexed.
    pub unindexed_entries: bool,
}

impl Initial {
    /// What holds at the start of a process, at that time (seconds since the Unix epoch).
    ///
    /// Where no journal says what former processes have purged, but entries of theirs may be there,
    /// purges begin with the number `now`: where calls can be made, a hard one of everything; for an
    /// HTTP origin, of which requests may have changed resources, a soft one.
    pub fn of(sites: &Sites, now: u64) -> Self {
        let purge = &sites.edge.purge;
        let mut purges = Purges::default();
        let records = purge.journal.iter().flatten();
        records.for_each(|record| purges.apply(record));
        let has_token =
            purge.token.is_some() || sites.sites.iter().any(|site| site.purge_token.is_some());
        let is_http = |site: &Site| matches!(site.policy.origin, Origin::Http(_));
        let kind = if has_token {
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

/// The head: numbers, prefixes, everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Head {
    purges: Purges,
    /// The surrogate keys of all entries are indexed from the hard purge of everything with this number
    /// on.
    indexed_from: u64,
}

impl Head {
    fn decode(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let (first, records) = text.split_once('\n').unwrap_or_default();
        let mut purges = Purges::default();
        purges.apply_text(records);
        Self {
            purges,
            indexed_from: first.parse().unwrap_or(u64::MAX),
        }
    }

    fn encode(&self) -> Vec<u8> {
        format!("{}\n{}", self.indexed_from, self.purges.to_text()).into_bytes()
    }
}

/// The purges in `store`.
#[derive(Debug)]
pub struct SharedPurges<'a> {
    store: &'a dyn SharedStore,
}

impl<'a> SharedPurges<'a> {
    /// The purges in `store`.
    pub fn new(store: &'a dyn SharedStore) -> Self {
        Self { store }
    }

    /// Writes what holds at the start, unless another VM of this process has.
    ///
    /// # Errors
    /// The host refused a call, or other workers were faster too often.
    pub fn start(&mut self, initial: &Initial) -> Result<(), SharedError> {
        if !shared_value::read(self.store, HEAD)?.is_empty() {
            return Ok(());
        }
        let records: Vec<Record> = initial.purges.records().collect();
        // NB: the shards first: with the head all of it is taken for written.
        self.write_shards(&records)?;
        let everything = initial.purges.everything().hard;
        let head = Head {
            purges: without_buckets(&records),
            indexed_from: everything + u64::from(initial.unindexed_entries),
        };
        shared_value::update(self.store, HEAD, |bytes| {
            (bytes.is_empty().then(|| head.encode()), ())
        })
    }

    /// Every purge so far.
    ///
    /// # Errors
    /// The host refused a call.
    pub fn load(&self) -> Result<Purges, SharedError> {
        let mut purges = Head::decode(&shared_value::read(self.store, HEAD)?).purges;
        for shard in 0..SHARDS {
            let bytes = shared_value::read(self.store, &shard_name(shard))?;
            purges.apply_text(std::str::from_utf8(&bytes).unwrap_or_default());
        }
        Ok(purges)
    }

    /// Numbers the purges of `scopes` and writes them. What comes back is for every worker; it covers
    /// more than `scopes` where there were too many prefixes.
    ///
    /// # Errors
    /// The host refused a call, or other workers were faster too often. Some may have been written.
    pub fn commit(&mut self, kind: Kind, scopes: &[Scope]) -> Result<Vec<Record>, SharedError> {
        let records = shared_value::update(self.store, HEAD, |bytes| {
            let mut head = Head::decode(bytes);
            let mut records = Vec::with_capacity(scopes.len());
            for scope in scopes {
                head.number(kind, scope.clone(), &mut records);
                while let Some((kind, wider)) = head.purges.fold() {
                    head.number(kind, wider, &mut records);
                }
            }
            (Some(head.encode()), records)
        })?;
        self.write_shards(&records)?;
        Ok(records)
    }

    /// The number of the newest hard purge of everything; 0 is none.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn epoch(&self) -> Result<u64, SharedError> {
        let head = Head::decode(&shared_value::read(self.store, HEAD)?);
        Ok(head.purges.everything().hard)
    }

    /// Whether every entry that can be reached has its surrogate keys in the index.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn is_indexed(&self) -> Result<bool, SharedError> {
        let head = Head::decode(&shared_value::read(self.store, HEAD)?);
        Ok(head.purges.everything().hard >= head.indexed_from)
    }

    /// Entries were stored whose surrogate keys are not in the index.
    ///
    /// # Errors
    /// As [`SharedPurges::commit`].
    pub fn lose_index(&mut self) -> Result<(), SharedError> {
        shared_value::update(self.store, HEAD, |bytes| {
            let mut head = Head::decode(bytes);
            let lost = head.purges.everything().hard + 1;
            let news = head.indexed_from < lost;
            head.indexed_from = head.indexed_from.max(lost);
            (news.then(|| head.encode()), ())
        })
    }

    fn write_shards(&mut self, records: &[Record]) -> Result<(), SharedError> {
        let mut shards: BTreeMap<u16, Vec<&Record>> = BTreeMap::new();
        for record in records {
            if let Scope::Bucket(bucket) = record.scope {
                shards.entry(bucket % SHARDS).or_default().push(record);
            }
        }
        for (shard, records) in shards {
            shared_value::update(self.store, &shard_name(shard), |bytes| {
                let mut purges = Purges::default();
                purges.apply_text(std::str::from_utf8(bytes).unwrap_or_default());
                for record in &records {
                    purges.apply(record);
                }
                (Some(purges.to_text().into_bytes()), ())
            })?;
        }
        Ok(())
    }
}

impl Head {
    fn number(&mut self, kind: Kind, scope: Scope, records: &mut Vec<Record>) {
        let record = Record {
            number: self.purges.newest() + 1,
            kind,
            scope,
        };
        let for_head = match record.scope {
            // Those are in the shards.
            Scope::Bucket(_) => Record {
                scope: Scope::Nothing,
                ..record.clone()
            },
            Scope::Nothing | Scope::Prefix(_) | Scope::Everything => record.clone(),
        };
        self.purges.apply(&for_head);
        records.push(record);
    }
}

fn without_buckets(records: &[Record]) -> Purges {
    let mut purges = Purges::default();
    records
        .iter()
        .filter(|record| !matches!(record.scope, Scope::Bucket(_)))
        .for_each(|record| purges.apply(record));
    purges
}

fn shard_name(shard: u16) -> String {
    format!("sluice/purges/{shard}")
}
