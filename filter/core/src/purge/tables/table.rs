// SPDX-License-Identifier: Apache-2.0
//! The purges that one worker knows, read on every request.

use std::collections::BTreeMap;

use crate::key::secret::StoreSecret;
use crate::key::site_of;
use crate::policy::purge::{FeedPosition, Kind, Record, Scope};
use crate::purge::tables::generations::Generations;
use crate::purge::tables::site_purges::SitePurges;
use crate::purge::tables::url_part::UrlPart;

/// Longest prefix in bytes, with its authority.
pub const MAX_PREFIX_BYTES: usize = 2_048;

/// All purges that still have an effect. The result does not depend on the order of the records, or on repeated ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purges {
    newest: u64,
    everything: Generations,
    /// Purges by the names of their sites. Each site has a purge.
    sites: BTreeMap<String, SitePurges>,
    /// Position in the purge feed, with the number of the record that has told it.
    feed: Option<(u64, FeedPosition)>,
}

impl Purges {
    /// Whether the table has no purge.
    pub fn is_empty(&self) -> bool {
        self.everything.is_none() && self.sites.is_empty()
    }

    /// Returns the greatest number so far.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Returns the last line of the purge feed that was applied; `None` if no feed was read.
    pub fn feed(&self) -> Option<FeedPosition> {
        self.feed.map(|(_, position)| position)
    }

    /// Returns the purges of everything.
    pub fn everything(&self) -> Generations {
        self.everything
    }

    /// Returns the purges that cover a whole site.
    pub fn whole_site(&self, name: &str) -> Generations {
        let site = self.sites.get(name);
        site.map_or(self.everything, |site| self.everything.raised(site.all))
    }

    /// Returns the purges that cover a URL, given as a cache key without qualifiers. `secret` is the secret of the
    /// URL's hash. A purge that a stronger and newer one replaces is left out.
    pub fn generations(&self, url: &str, secret: &StoreSecret) -> Generations {
        let mut found = self.everything;
        if let Some(site) = self.sites.get(site_of(url)) {
            found = found.raised(site.generations(url, secret));
        }
        found.in_effect()
    }

    /// Adds a purge.
    pub fn apply(&mut self, record: &Record) {
        self.insert(record);
        let everything = self.everything;
        let name = match &record.scope {
            Scope::Nothing | Scope::Feed(_) => return,
            Scope::Everything => return self.drop_covered(),
            Scope::Prefix(path) => site_of(path),
            Scope::Url { site, .. } | Scope::Part { site, .. } | Scope::Site(site) => site,
        };
        let Some(site) = self.sites.get_mut(name) else {
            return;
        };
        match &record.scope {
            Scope::Url { hash, .. } => site.drop_covered_in(hash.part(), everything),
            Scope::Part { part, .. } => site.drop_covered_in(*part, everything),
            Scope::Prefix(_) => site.drop_covered_prefixes(everything),
            Scope::Nothing | Scope::Site(_) | Scope::Everything | Scope::Feed(_) => {
                site.drop_covered(everything)
            }
        }
        if site.is_empty() {
            self.sites.remove(name);
        }
    }

    fn insert(&mut self, record: &Record) {
        let Record { number, kind, .. } = *record;
        self.newest = self.newest.max(number);
        let generations = Generations::of(kind, number);
        match &record.scope {
            Scope::Nothing => {}
            Scope::Feed(position) => self.feed = self.feed.max(Some((number, *position))),
            Scope::Everything => self.everything = self.everything.raised(generations),
            Scope::Site(name) => {
                let site = self.site(name);
                site.all = site.all.raised(generations);
            }
            Scope::Prefix(path) => self.site(site_of(path)).note_prefix(path, generations),
            Scope::Url { site, hash } => self.site(site).note_url(*hash, kind, number),
            Scope::Part { site, part } => self.site(site).note_part(*part, kind, number),
        }
    }

    /// Sets all purges of one part of a site's URLs. The caller must call [`Purges::drop_covered`] afterwards.
    pub(in crate::purge) fn insert_part(&mut self, site: &str, number: u8, part: UrlPart) {
        self.site(site).note_whole_part(number, part);
    }

    /// Returns the purges of a site, which are added if they are missing.
    fn site(&mut self, name: &str) -> &mut SitePurges {
        self.sites.entry(name.to_owned()).or_default()
    }

    /// Drops each purge that a wider and newer one covers.
    pub(in crate::purge) fn drop_covered(&mut self) {
        let everything = self.everything;
        self.sites.retain(|_, site| {
            site.drop_covered(everything);
            !site.is_empty()
        });
    }

    /// Returns a purge that covers two prefixes of a site with more than `bound` prefixes. It covers that site only.
    pub fn fold(&self, bound: usize) -> Option<(Kind, Scope)> {
        let mut sites = self.sites.iter();
        sites.find_map(|(name, site)| site.fold_prefixes(name, bound))
    }

    /// Returns records that make the same table.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let newest = Record {
            number: self.newest,
            kind: Kind::Hard,
            scope: Scope::Nothing,
        };
        let sites = self.sites.iter();
        let feed = self.feed.map(|(number, position)| Record {
            number,
            kind: Kind::Hard,
            scope: Scope::Feed(position),
        });
        std::iter::once(newest)
            .chain(feed)
            .chain(self.everything.records(Scope::Everything))
            .chain(sites.flat_map(|(name, site)| site.records(name)))
    }

    /// Returns all purges as text, one record in each line.
    pub fn to_text(&self) -> String {
        self.records().map(|record| format!("{record}\n")).collect()
    }

    /// Adds every record of a text; false if a line is not a record.
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
