// SPDX-License-Identifier: Apache-2.0
//! What has been purged of one site. No purge of a site takes room from another site, or covers more than its own.

use std::collections::BTreeMap;

use crate::key::secret::StoreSecret;
use crate::policy::purge::{Kind, Record, Scope, UrlHash};
use crate::purge::tables::generations::{Generations, KINDS};
use crate::purge::tables::url_part::UrlPart;

/// The purges of all URLs that begin so.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prefix {
    path: String,
    generations: Generations,
}

/// The purges of one site that still mean something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SitePurges {
    /// Those of the whole site.
    pub all: Generations,
    /// In the order of their paths; what another covers and is not older is left out.
    prefixes: Vec<Prefix>,
    /// By their numbers, none of them empty.
    parts: BTreeMap<u8, UrlPart>,
}

impl SitePurges {
    /// Whether nothing has been purged.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.prefixes.is_empty() && self.parts.is_empty()
    }

    /// What covers a URL of the site.
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

    /// Takes in the purge of one URL.
    pub fn note_url(&mut self, hash: UrlHash, kind: Kind, number: u64) {
        let part = self.parts.entry(hash.part()).or_default();
        part.note(hash, kind, number);
    }

    /// Takes in the purge of one part of the URLs.
    pub fn note_part(&mut self, part: u8, kind: Kind, number: u64) {
        self.parts.entry(part).or_default().note_all(kind, number);
    }

    /// Takes in all that is known of one part of the URLs.
    pub fn note_whole_part(&mut self, number: u8, part: UrlPart) {
        self.parts.insert(number, part);
    }

    /// Takes in the purge of a prefix.
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

    /// Forgets what something wider and newer covers; `everything` covers the site with all others.
    pub fn drop_covered(&mut self, everything: Generations) {
        self.all = self.all.beside(everything);
        let wider = everything.raised(self.all);
        self.parts.retain(|_, part| {
            part.drop_covered(wider);
            !part.is_empty()
        });
        self.drop_covered_prefixes(wider);
    }

    /// The same for one part of the URLs.
    pub fn drop_covered_in(&mut self, number: u8, everything: Generations) {
        let wider = everything.raised(self.all);
        if let Some(part) = self.parts.get_mut(&number) {
            part.drop_covered(wider);
            if part.is_empty() {
                self.parts.remove(&number);
            }
        }
    }

    /// The same for the prefixes.
    pub fn drop_covered_prefixes(&mut self, wider_than_all: Generations) {
        let outer = wider_than_all.raised(self.all);
        let mut kept: Vec<Prefix> = Vec::with_capacity(self.prefixes.len());
        // In the order of paths a prefix comes after all that cover it, and nothing else between: these
        // are they, by position, each with what it and those before it come to.
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

    /// With more than `bound` prefixes, a purge of the site of that `name` that covers two of them: of all pairs the one
    /// with the longest common beginning.
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
        // Without a slash it is not even of one host.
        let scope = match common.contains('/') {
            true => Scope::Prefix(common.to_owned()),
            false => Scope::all_of(name),
        };
        Some((kind, scope))
    }

    /// Records that make the same table of the site of that `name`.
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
    // All of it is ASCII.
    one.get(..length).unwrap_or_default()
}
