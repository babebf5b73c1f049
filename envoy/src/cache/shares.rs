// SPDX-License-Identifier: Apache-2.0
//! The weights of the sites, by which they share the cache, and the bound on the variants of a URL.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::entries::SiteId;

/// Bound on the variants of a URL in the cache. The keeper reads the number, and a reload replaces it.
#[derive(Clone, Debug)]
pub struct MostVariants(Arc<AtomicUsize>);

impl MostVariants {
    /// Sets the bound to `most`.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(most)))
    }

    /// Replaces the number.
    pub fn publish(&self, most: usize) {
        self.0.store(most, Ordering::Relaxed);
    }

    /// The present number.
    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The weights of the sites in use. The keeper reads them, and a reload replaces them.
#[derive(Clone, Debug, Default)]
pub struct Shares(Arc<Mutex<Published>>);

#[derive(Debug, Default)]
struct Published {
    weights: Arc<Weights>,
    names: Arc<[(String, SiteId)]>,
}

impl Shares {
    /// The weights of these sites, each with its name.
    pub fn new<'a>(sites: impl IntoIterator<Item = (&'a str, u32)>) -> Self {
        let shares = Self::default();
        shares.publish(sites);
        shares
    }

    /// Replaces the weights by those of `sites`, all sites in use, each with its name.
    pub fn publish<'a>(&self, sites: impl IntoIterator<Item = (&'a str, u32)>) {
        let sites = sites.into_iter();
        let sites =
            sites.map(|(name, share)| (name.to_owned(), SiteId::of(name.as_bytes()), share));
        let sites: Vec<_> = sites.collect();
        let weights = sites.iter().map(|(_, site, share)| (*site, *share));
        let published = Published {
            weights: Arc::new(Weights(weights.collect())),
            names: sites
                .into_iter()
                .map(|(name, site, _)| (name, site))
                .collect(),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = published;
    }

    /// The present weights; `None`: the edge has at most one site, which does not share the cache.
    pub(super) fn weights(&self) -> Option<Arc<Weights>> {
        let published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (published.names.len() > 1).then(|| Arc::clone(&published.weights))
    }

    /// The share of each site in use of this many `bytes`, by the name of the site.
    pub fn of_bytes(&self, bytes: u64) -> Vec<(String, u64)> {
        let weights = {
            let published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&published.weights)
        };
        let names = self.names();
        let all: u128 = names
            .iter()
            .map(|(_, site)| u128::from(weights.of(*site)))
            .sum();
        let share = |site: SiteId| {
            let part = u128::from(bytes) * u128::from(weights.of(site));
            part.checked_div(all)
        };
        let shares = names.iter().map(|(name, site)| {
            let share = share(*site).and_then(|share| share.try_into().ok());
            (name.clone(), share.unwrap_or(0))
        });
        shares.collect()
    }

    /// The names of the sites in use.
    pub(super) fn names(&self) -> Arc<[(String, SiteId)]> {
        let published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&published.names)
    }
}

/// The weights of the sites in use.
#[derive(Debug, Default)]
pub(super) struct Weights(HashMap<SiteId, u32>);

impl Weights {
    /// The weight of a site; 0 for a site that is not in use any more.
    pub fn of(&self, site: SiteId) -> u32 {
        self.0.get(&site).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_published_last_count() {
        let shares = Shares::new([("a", 2), ("b", 1)]);
        let keeper = shares.clone();
        let of = |name: &str| keeper.weights().unwrap().of(SiteId::of(name.as_bytes()));
        assert_eq!((of("a"), of("b"), of("c")), (2, 1, 0));
        shares.publish([("a", 1), ("c", 3)]);
        assert_eq!((of("a"), of("b"), of("c")), (1, 0, 3));
    }

    #[test]
    fn a_share_is_the_part_of_the_weight() {
        let shares = Shares::new([("a", 3), ("b", 1)]);
        let expected = [("a".to_owned(), 75), ("b".to_owned(), 25)];
        assert_eq!(shares.of_bytes(100), expected);
        assert_eq!(
            Shares::new([("", 1)]).of_bytes(u64::MAX),
            [(String::new(), u64::MAX)]
        );
        assert_eq!(Shares::default().of_bytes(100), []);
    }

    #[test]
    fn one_site_has_the_cache_for_itself() {
        assert!(Shares::default().weights().is_none());
        assert!(Shares::new([("", 1)]).weights().is_none());
    }
}
