// SPDX-License-Identifier: Apache-2.0
//! The purges of one site. A purge of a site takes no room from another site, and covers only URLs of its site.

use std::collections::BTreeMap;

use crate::key::secret::StoreSecret;
use crate::policy::purge::{Kind, Record, Scope, UrlHash};
use crate::purge::tables::generations::{Generations, KINDS};
use crate::purge::tables::url_part::UrlPart;

/// Purges of all URLs that begin with `path`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prefix {
    path: String,
    generations: Generations,
}

/// Purges of one site that still have an effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SitePurges {
    /// Purges of the whole site.
    pub all: Generations,
    /// Purges of prefixes, in the order of their paths, unless another purge that is not older covers them.
    prefixes: Vec<Prefix>,
    /// Parts by their numbers. Each has a purge.
    parts: BTreeMap<u8, UrlPart>,
}

impl SitePurges {
    /// Whether the site has no purge.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.prefixes.is_empty() && self.parts.is_empty()
    }

    /// Returns the purges that cover a URL of the site.
    pub fn generations(&self, url: &str, secret: &StoreSecret) -> Generations {
        let mut found = self.all;
        if !self.parts.is_empty() {
            let hash = UrlHash::of(url, secret);
            if let Some(part) = self.parts.get(&hash.part()) {
                found = found.raised(part.generations(hash));
            }
        }
        let covering = self.prefixes.iter();
        covering
            .filter(|prefix| url.starts_with(&prefix.path))
            .fold(found, |found, prefix| found.raised(prefix.generations))
    }

    /// Adds the purge of one URL.
    pub fn note_url(&mut self, hash: UrlHash, kind: Kind, number: u64) {
        let part = self.parts.entry(hash.part()).or_default();
        part.note(hash, kind, number);
    }

    /// Adds the purge of one part of the URLs.
    pub fn note_part(&mut self, part: u8, kind: Kind, number: u64) {
        self.parts.entry(part).or_default().note_all(kind, number);
    }

    /// Sets all purges of one part of the URLs.
    pub fn note_whole_part(&mut self, number: u8, part: UrlPart) {
        self.parts.insert(number, part);
    }

    /// Adds the purge of a prefix.
    pub fn note_prefix(&mut self, path: &str, generations: Generations) {
        let found = self
            .prefixes
            .binary_search_by(|prefix| prefix.path.as_str().cmp(path));
        match found {
            Ok(place) => {
                if let Some(prefix) = self.prefixes.get_mut(place) {
                    prefix.generations = prefix.generations.raised(generations);
                }
            }
            Err(place) => {
                let path = path.to_owned();
                self.prefixes.insert(place, Prefix { path, generations });
            }
        }
    }

    /// Drops each purge that a wider and newer one covers. `everything` has the purges of all sites.
    pub fn drop_covered(&mut self, everything: Generations) {
        self.all = self.all.beside(everything);
        let wider = everything.raised(self.all);
        self.parts.retain(|_, part| {
            part.drop_covered(wider);
            !part.is_empty()
        });
        self.drop_covered_prefixes(wider);
    }

    /// Drops each covered purge in one part of the URLs.
    pub fn drop_covered_in(&mut self, number: u8, everything: Generations) {
        let wider = everything.raised(self.all);
        if let Some(part) = self.parts.get_mut(&number) {
            part.drop_covered(wider);
            if part.is_empty() {
                self.parts.remove(&number);
            }
        }
    }

    /// Drops each covered purge of a prefix.
    pub fn drop_covered_prefixes(&mut self, wider_than_all: Generations) {
        let outer = wider_than_all.raised(self.all);
        let mut kept: Vec<Prefix> = Vec::with_capacity(self.prefixes.len());
        // In the order of paths, a prefix follows all prefixes that cover it. `covering` has the positions of these
        // prefixes. Each has the result of its purges and of those of the prefixes that cover it.
        let mut covering: Vec<(usize, Generations)> = Vec::new();
        for mut prefix in std::mem::take(&mut self.prefixes) {
            let covers = |&(place, _): &(usize, Generations)| {
                let wider = kept.get(place);
                wider.is_some_and(|wider| prefix.path.starts_with(&wider.path))
            };
            while covering.last().is_some_and(|last| !covers(last)) {
                covering.pop();
            }
            let wider = covering.last().map_or(outer, |(_, all)| *all);
            prefix.generations = prefix.generations.beside(wider);
            if !prefix.generations.is_none() {
                covering.push((kept.len(), wider.raised(prefix.generations)));
                kept.push(prefix);
            }
        }
        self.prefixes = kept;
    }

    /// Returns a purge that covers two prefixes if there are more than `bound`: of all pairs, the one with the
    /// longest common beginning. `name` is the name of the site.
    pub fn fold_prefixes(&self, name: &str, bound: usize) -> Option<(Kind, Scope)> {
        if self.prefixes.len() <= bound {
            return None;
        }
        let (common, one, other) = self
            .prefixes
            .iter()
            .zip(self.prefixes.iter().skip(1))
            .map(|(one, other)| (common_prefix(&one.path, &other.path), one, other))
            .max_by_key(|(common, _, _)| common.len())?;
        let both = one.generations.raised(other.generations);
        let kind = KINDS.into_iter().find(|kind| both.get(*kind) > 0)?;
        // Without a slash, the common beginning is only part of a host.
        let scope = match common.contains('/') {
            true => Scope::Prefix(common.to_owned()),
            false => Scope::all_of(name),
        };
        Some((kind, scope))
    }

    /// Returns records that make the same table of the site with this `name`.
    pub fn records<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Record> {
        let prefixes = self.prefixes.iter().flat_map(|prefix| {
            let scope = Scope::Prefix(prefix.path.clone());
            prefix.generations.records(scope)
        });
        let parts = self.parts.iter();
        let parts = parts.flat_map(move |(number, part)| part.records(name, *number));
        let all = self.all.records(Scope::all_of(name));
        all.chain(prefixes).chain(parts)
    }
}

fn common_prefix<'a>(one: &'a str, other: &str) -> &'a str {
    let length = one
        .bytes()
        .zip(other.bytes())
        .take_while(|(one, other)| one == other)
        .count();
    // The common part is ASCII.
    one.get(..length).unwrap_or_default()
}
