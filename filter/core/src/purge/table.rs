// SPDX-License-Identifier: Apache-2.0
//! What has been purged, as one worker knows it: asked at every request.

use std::collections::HashMap;

use crate::key::NAME_END;
use crate::policy::purge::{Kind, Record, Scope, bucket_of};

/// Prefixes that are kept apart. One more, and the two that have most in common become one.
pub const MAX_PREFIXES: usize = 256;
/// Longest prefix, authority included.
pub const MAX_PREFIX_BYTES: usize = 2_048;

/// The newest purges that cover a URL; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generations {
    /// Number of the newest hard one.
    pub hard: u64,
    /// Number of the newest soft one.
    pub soft: u64,
}

impl Generations {
    fn raise(&mut self, other: Self) {
        self.hard = self.hard.max(other.hard);
        self.soft = self.soft.max(other.soft);
    }

    fn of(kind: Kind, number: u64) -> Self {
        let mut only = Self::default();
        match kind {
            Kind::Hard => only.hard = number,
            Kind::Soft => only.soft = number,
        }
        only
    }

    /// Without what `wider` covers anyhow.
    fn beside(self, wider: Self) -> Self {
        let unless = |covered: bool, number: u64| if covered { 0 } else { number };
        Self {
            hard: unless(self.hard <= wider.hard, self.hard),
            soft: unless(self.soft <= wider.hard.max(wider.soft), self.soft),
        }
    }

    fn is_none(self) -> bool {
        self == Self::default()
    }

    fn records(self, scope: Scope) -> impl Iterator<Item = Record> {
        [(Kind::Hard, self.hard), (Kind::Soft, self.soft)]
            .into_iter()
            .filter(|(_, number)| *number > 0)
            .map(move |(kind, number)| Record {
                number,
                kind,
                scope: scope.clone(),
            })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Prefix {
    path: String,
    generations: Generations,
}

/// All purges that still mean something. In whatever order records come, and however often, the result
/// is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purges {
    newest: u64,
    everything: Generations,
    buckets: HashMap<u16, Generations>,
    /// In the order of their paths; what another covers and is not older is left out.
    prefixes: Vec<Prefix>,
}

impl Purges {
    /// Whether nothing has been purged.
    pub fn is_empty(&self) -> bool {
        self.everything.is_none() && self.buckets.is_empty() && self.prefixes.is_empty()
    }

    /// The highest number so far.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// The purges of everything.
    pub fn everything(&self) -> Generations {
        self.everything
    }

    /// What covers a URL, given as a cache key without qualifiers. A soft purge that a hard one has
    /// overtaken is none.
    pub fn generations(&self, url: &str) -> Generations {
        let mut found = self.everything;
        if !self.buckets.is_empty()
            && let Some(bucket) = self.buckets.get(&bucket_of(url))
        {
            found.raise(*bucket);
        }
        for prefix in &self.prefixes {
            if url.starts_with(&prefix.path) {
                found.raise(prefix.generations);
            }
        }
        if found.soft < found.hard {
            found.soft = 0;
        }
        found
    }

    /// Takes a purge in.
    pub fn apply(&mut self, record: &Record) {
        self.insert(record);
        match record.scope {
            Scope::Nothing | Scope::Bucket(_) => {}
            Scope::Prefix(_) => self.drop_covered_prefixes(),
            Scope::Everything => self.drop_covered(),
        }
    }

    fn insert(&mut self, record: &Record) {
        self.newest = self.newest.max(record.number);
        let generations = Generations::of(record.kind, record.number);
        match &record.scope {
            Scope::Nothing => {}
            Scope::Everything => self.everything.raise(generations),
            Scope::Bucket(bucket) => {
                let generations = generations.beside(self.everything);
                if !generations.is_none() {
                    self.buckets.entry(*bucket).or_default().raise(generations);
                }
            }
            Scope::Prefix(path) => self.raise_prefix(path, generations),
        }
    }

    fn raise_prefix(&mut self, path: &str, generations: Generations) {
        let found = self
            .prefixes
            .binary_search_by(|prefix| prefix.path.as_str().cmp(path));
        match found {
            Ok(position) => {
                if let Some(prefix) = self.prefixes.get_mut(position) {
                    prefix.generations.raise(generations);
                }
            }
            Err(position) => {
                let path = path.to_owned();
                self.prefixes.insert(position, Prefix { path, generations });
            }
        }
    }

    /// Forgets what something wider and newer covers.
    fn drop_covered(&mut self) {
        let everything = self.everything;
        self.buckets.retain(|_, generations| {
            *generations = generations.beside(everything);
            !generations.is_none()
        });
        self.drop_covered_prefixes();
    }

    fn drop_covered_prefixes(&mut self) {
        let mut kept: Vec<Prefix> = Vec::with_capacity(self.prefixes.len());
        // In the order of paths a prefix comes after all that cover it, and nothing else between: these
        // are they, by position, each with what it and those before it come to.
        let mut covering: Vec<(usize, Generations)> = Vec::new();
        for mut prefix in std::mem::take(&mut self.prefixes) {
            let covers = |&(position, _): &(usize, Generations)| {
                let wider = kept.get(position);
                wider.is_some_and(|wider| prefix.path.starts_with(&wider.path))
            };
            while covering.last().is_some_and(|last| !covers(last)) {
                covering.pop();
            }
            let mut wider = covering.last().map_or(self.everything, |(_, all)| *all);
            prefix.generations = prefix.generations.beside(wider);
            if !prefix.generations.is_none() {
                wider.raise(prefix.generations);
                covering.push((kept.len(), wider));
                kept.push(prefix);
            }
        }
        self.prefixes = kept;
    }

    /// With too many prefixes, a purge that covers two of them: of all pairs the one with the longest
    /// common beginning.
    pub fn fold(&self) -> Option<(Kind, Scope)> {
        if self.prefixes.len() <= MAX_PREFIXES {
            return None;
        }
        let (common, one, other) = self
            .prefixes
            .iter()
            .zip(self.prefixes.iter().skip(1))
            .map(|(one, other)| (common_prefix(&one.path, &other.path), one, other))
            .max_by_key(|(common, _, _)| common.len())?;
        let kind = if one.generations.hard.max(other.generations.hard) > 0 {
            Kind::Hard
        } else {
            Kind::Soft
        };
        // Without a slash it is not even of one host, and perhaps not of one site.
        let site = common.find(NAME_END).and_then(|end| common.get(..=end));
        let scope = match (common.contains('/'), site) {
            (true, _) => Scope::Prefix(common.to_owned()),
            (false, Some(site)) => Scope::Prefix(site.to_owned()),
            (false, None) => Scope::Everything,
        };
        Some((kind, scope))
    }

    /// Records that make the same table.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let newest = Record {
            number: self.newest,
            kind: Kind::Hard,
            scope: Scope::Nothing,
        };
        let buckets = self
            .buckets
            .iter()
            .flat_map(|(bucket, generations)| generations.records(Scope::Bucket(*bucket)));
        let prefixes = self.prefixes.iter().flat_map(|prefix| {
            prefix
                .generations
                .records(Scope::Prefix(prefix.path.clone()))
        });
        std::iter::once(newest)
            .chain(self.everything.records(Scope::Everything))
            .chain(prefixes)
            .chain(buckets)
    }

    /// All of it as text, one record in each line.
    pub fn to_text(&self) -> String {
        self.records().map(|record| format!("{record}\n")).collect()
    }

    /// Takes in every record of a text; false if a line is none.
    pub fn apply_text(&mut self, text: &str) -> bool {
        let mut understood = true;
        for line in text.lines() {
            match Record::parse(line) {
                Some(record) => self.insert(&record),
                None => understood = false,
            }
        }
        self.drop_covered();
        understood
    }
}

fn common_prefix<'a>(one: &'a str, other: &str) -> &'a str {
    let length = one
        .bytes()
        .zip(other.bytes())
        .take_while(|(one, other)| one == other)
        .count();
    // All of it is ASCII.
    one.get(..length).unwrap_or_default()
}
