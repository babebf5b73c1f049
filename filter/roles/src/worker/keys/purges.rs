// SPDX-License-Identifier: Apache-2.0
//! Effects of purges on keys and stored responses.

use sluice_core::key::CanonicalTarget;
use sluice_core::key::qualifiers::{DECLARED, GENERATION, is_for_slice};
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::policy::purge::{Record, Scope, UrlHash};
use sluice_core::purge::{
    Confirmations, FeedPosition, FeedTold, Generations, SharedPurges, TagHash, TagIndexing, Tags,
    url_of,
};
use sluice_core::workers::{KeyHash, Roster};
use sluice_store::Entry;

use super::Keys;

impl Keys {
    /// Joins the roster and loads all purges, and the line of the feed that peers have told. Has an effect only once.
    pub fn join_roster(&mut self) {
        if self.joined {
            return;
        }
        let store = &*self.host;
        let joined = Roster::new(store)
            .join(self.identity.worker)
            .and_then(|_| SharedPurges::new(store, self.site_count()).load())
            .and_then(|purges| Ok((purges, FeedTold::new(store).read()?)));
        match joined {
            Ok((purges, told)) => {
                self.purges = purges;
                self.joined = true;
                told.map(|told| self.hear_of_feed(told));
            }
            Err(error) => self.metrics.fault("purges could not be read", error.into()),
        }
    }

    /// Joins the roster again if the other workers expelled this worker for being slow. Loads the purges that it has
    /// missed.
    pub fn stay_listed(&mut self) {
        if !matches!(
            Roster::new(&*self.host).join(self.identity.worker),
            Ok(false)
        ) {
            self.joined = false;
            self.join_roster();
        }
    }

    /// Applies purges.
    pub fn apply(&mut self, records: &[Record]) {
        for record in records {
            self.purges.apply(record);
        }
    }

    /// The number of sites of the edge, which share the bounded tables of purges.
    pub fn site_count(&self) -> usize {
        self.sites.as_ref().map_or(1, |sites| sites.sites.len())
    }

    /// The scope of a purge of a URL. The URL has the form that [`url_of`] returns.
    pub fn scope_of(&self, url: &str) -> Scope {
        Scope::of_url(url, &self.identity.store_secret)
    }

    /// The purges that cover a URL. The URL has the form that [`url_of`] returns.
    fn generations(&self, url: &str) -> Generations {
        self.purges.generations(url, &self.identity.store_secret)
    }

    /// The purges that this worker knows to cover the URL of a target.
    pub fn purges_of(&self, policy: &Policy, target: &CanonicalTarget) -> Generations {
        self.generations(url_of(policy, target.url()))
    }

    /// The number of the newest purge or change that this worker knows.
    pub fn newest_purge(&self) -> u64 {
        self.purges.newest()
    }

    /// The last line of the purge feed that this worker has applied; `None` if it knows none.
    pub fn feed_position(&self) -> Option<FeedPosition> {
        self.purges.feed()
    }

    /// Notes the last line of the purge feed that a peer has applied. Returns whether it is news that this worker lacks
    /// it.
    pub fn hear_of_feed(&mut self, told: FeedPosition) -> bool {
        let lacks = self.lacks_lines();
        let is_news = self.peers_feed.is_none_or(|known| {
            // A line that is lacking counts until it is read, whatever a peer with another feed tells.
            (known.id == told.id && known.number < told.number) || (known.id != told.id && !lacks)
        });
        if is_news {
            self.peers_feed = Some(told);
        }
        is_news && self.lacks_lines()
    }

    /// Whether a peer has applied later lines of the same purge feed, or this worker knows no line.
    pub fn lacks_lines(&self) -> bool {
        self.peers_feed.is_some_and(|told| {
            let own = self.feed_position();
            own.is_none_or(|own| own.id == told.id && own.number < told.number)
        })
    }

    /// Adds the number of the newest hard purge that covers a URL to its key, and the number that its policy declares.
    pub fn qualify_generation(&mut self, policy: &Policy, target: &mut CanonicalTarget) {
        self.join_roster();
        let hard = match self.purges.is_empty() {
            true => 0,
            false => self.generations(url_of(policy, target.url())).hard,
        };
        let declared = policy.declared_hard(target.path());
        for (name, number) in [(GENERATION, hard), (DECLARED, declared)] {
            if number > 0 {
                target.qualify(name, number.to_string());
            }
        }
    }

    /// The number of the newest soft purge or change that covers the URL of a key. It is 0 if there is none, or if a
    /// newer hard purge covers the URL. It does not cover slices: the index of their object is validated instead.
    pub fn soft_generation(&self, cache_key: &str) -> u64 {
        if self.purges.is_empty() || is_for_slice(cache_key) {
            return 0;
        }
        self.generations(self.url_of(cache_key)).revalidates()
    }

    /// The soft number that the newest policy declares for a key; 0 if there is none.
    pub fn declared_soft(&self, cache_key: &str) -> u64 {
        let sites = self.sites.as_ref().filter(|_| self.declares_soft);
        let policy = sites.and_then(|sites| sites.policy_of_key(cache_key));
        policy.map_or(0, |policy| policy.declared_soft(cache_key))
    }

    /// Whether a response was requested before the newest soft purge of its URL.
    pub fn predates_soft_purge(&self, entry: &Entry<'_>) -> bool {
        self.was_purged_since(entry.key, entry.purge, entry.declared)
    }

    /// Whether a URL was purged softly after the purge with number `began`, or after the policy declared the soft
    /// number `declared` for it.
    pub fn was_purged_since(&self, cache_key: &str, began: u64, declared: u64) -> bool {
        self.soft_generation(cache_key) > began || self.declared_soft(cache_key) != declared
    }

    /// Notes whether the purge feed was not read yet.
    pub fn await_feed(&mut self, awaits: bool) {
        self.awaits_feed = awaits;
    }

    /// Whether the stored response may be used only after a revalidation: a soft purge covers it, and no worker has
    /// confirmed it since, or the purge feed was not read yet. `key` is the hash of `cache_key` at the arrival of the
    /// request.
    pub fn must_revalidate(&self, cache_key: &str, key: KeyHash) -> bool {
        if self.awaits_feed {
            return true;
        }
        // A hard purge replaces a soft one. A request that arrived between them still has the key from before the
        // hard one, so the soft purge still counts for it.
        let purged = key != self.entry_hash(cache_key);
        if !purged && self.soft_generation(cache_key) == 0 {
            return false;
        }
        let confirmed = Confirmations::new(&*self.host).has(key);
        if confirmed.is_err() {
            self.metrics.count(Metric::HostErrors, 1);
        }
        !confirmed.unwrap_or(false)
    }

    /// Whether an unsafe request has changed the URL of a key and the stored response was not validated since. Such a
    /// response must not be served, even if the origin fails (RFC 9111, 4.4).
    pub fn is_invalidated(&self, cache_key: &str) -> bool {
        if self.purges.is_empty() {
            return false;
        }
        let generations = self.generations(self.url_of(cache_key));
        generations.changed > 0 && self.must_revalidate(cache_key, self.key_hash(cache_key))
    }

    /// Records for all workers that the response was received from the origin, or validated by it, after the soft
    /// purge.
    pub fn confirm(&self, key: KeyHash) {
        if let Err(error) = Confirmations::new(&*self.host).add(key) {
            let consequence = "a response will be revalidated again";
            self.metrics.fault(consequence, error.into());
        }
    }

    /// Calls [`Keys::confirm`] if a soft purge covers the target and `key` is its hash since the newest one.
    pub fn confirm_current(&self, key: KeyHash, target: &CanonicalTarget) {
        let cache_key = target.cache_key();
        let is_soft = self.soft_generation(cache_key) > 0 || self.declared_soft(cache_key) > 0;
        if is_soft && self.key_hash(cache_key) == key {
            self.confirm(key);
        }
    }

    /// Indexes the surrogate keys of a response of a site. `began` is the number of the newest purge when the request
    /// was sent. Returns false if the response may have been purged since.
    pub fn note_tags(
        &self,
        policy: &Policy,
        url: &str,
        tags: Option<&[TagHash]>,
        began: u64,
    ) -> bool {
        let (site, sites) = (policy.site.name.as_str(), self.site_count());
        let epoch = self.purges.whole_site(site).hard;
        let store = &*self.host;
        let hash = UrlHash::of(url, &self.identity.store_secret);
        let noted = match tags {
            Some(tags) => Tags::new(store, site, epoch, sites).note(tags, hash, began),
            None => SharedPurges::new(store, sites)
                .lose_index(site)
                .map(|()| TagIndexing::Indexed),
        };
        match noted {
            Ok(noted) => noted == TagIndexing::Indexed,
            Err(error) => {
                self.metrics
                    .fault("a response was not indexed", error.into());
                // A response that is not indexed could not be purged.
                false
            }
        }
    }
}
