// SPDX-License-Identifier: Apache-2.0
//! Links whose signatures a worker has verified. A further request for such a link needs no hash.
//!
//! The signature covers a function of the policy, the class of the method, and the target as it was received. Two
//! requests in which all of these are equal have the same verdict about the signature. Its times, its network and
//! its key are checked with each request.

use std::hash::{DefaultHasher, Hasher as _};
use std::rc::Rc;

use super::credentials::SignedPath;
use crate::key::Target;

/// The number of links that a worker remembers at most.
pub const MOST_LINKS: usize = SETS * WAYS;
/// The longest link that a worker remembers, in bytes of its authority and path.
pub const LONGEST_LINK: usize = 1_024;

const SETS: usize = 256;
/// The places of a set. A link has its place in one set.
const WAYS: usize = 4;

/// A link as it was received.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedLink<'a> {
    policy: u32,
    target: Target<'a>,
}

impl<'a> ReceivedLink<'a> {
    /// The link of a request under the policy of this number. `target` has the signature. `None` if such a link is not
    /// remembered: it is too long, or the method is another than GET and HEAD.
    pub fn of(policy: u32, method: &str, target: Target<'a>) -> Option<Self> {
        let reads = matches!(method, "GET" | "HEAD");
        let is_short = target.authority.len() + target.path.len() <= LONGEST_LINK;
        (reads && is_short).then_some(Self { policy, target })
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u32(self.policy);
        hasher.write(self.target.authority);
        hasher.write(self.target.path);
        hasher.finish()
    }
}

/// A link that was verified.
#[derive(Debug)]
struct VerifiedLink {
    hash: u64,
    policy: u32,
    scheme: Option<String>,
    authority: Vec<u8>,
    path: Vec<u8>,
    signed: Rc<SignedPath>,
}

impl VerifiedLink {
    /// Whether the link is the received one, whose hash is `hash`.
    fn is(&self, link: &ReceivedLink<'_>, hash: u64) -> bool {
        // NB: the hash is compared first. Its comparison does not show how much of a signature is right.
        self.hash == hash
            && self.policy == link.policy
            && self.scheme.as_deref() == link.target.scheme
            && self.authority == link.target.authority
            && self.path == link.target.path
    }
}

/// The verified links of a worker: at most [`MOST_LINKS`], each with at most [`LONGEST_LINK`] bytes.
#[derive(Debug, Default)]
pub struct VerifiedLinks {
    /// The places of all sets; none before the first link.
    places: Vec<Option<VerifiedLink>>,
    /// The number of links that were remembered.
    remembered: usize,
}

impl VerifiedLinks {
    /// The path with the signature of a link that was verified.
    pub fn find(&self, link: &ReceivedLink<'_>) -> Option<&Rc<SignedPath>> {
        if self.places.is_empty() {
            return None;
        }
        let hash = link.hash();
        let set = self.places.chunks_exact(WAYS).nth(set_of(hash))?;
        let mut known = set.iter().flatten();
        known
            .find(|known| known.is(link, hash))
            .map(|known| &known.signed)
    }

    /// Remembers a link that was verified and has this signed path. The link replaces another one if its set is full.
    pub fn remember(&mut self, link: &ReceivedLink<'_>, signed: &Rc<SignedPath>) {
        if self.places.is_empty() {
            self.places.resize_with(MOST_LINKS, || None);
        }
        let hash = link.hash();
        self.remembered = self.remembered.wrapping_add(1);
        let replaced = self.remembered % WAYS;
        let set = self.places.chunks_exact_mut(WAYS).nth(set_of(hash));
        let Some(set) = set else { return };
        let free = set.iter().position(Option::is_none);
        if let Some(place) = set.get_mut(free.unwrap_or(replaced)) {
            *place = Some(VerifiedLink {
                hash,
                policy: link.policy,
                scheme: link.target.scheme.map(str::to_owned),
                authority: link.target.authority.to_vec(),
                path: link.target.path.to_vec(),
                signed: Rc::clone(signed),
            });
        }
    }
}

/// The set of a link with this hash.
const fn set_of(hash: u64) -> usize {
    (hash % SETS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(policy: u32, path: &str) -> ReceivedLink<'_> {
        let target = Target {
            scheme: Some("http"),
            authority: b"edge.test",
            path: path.as_bytes(),
        };
        ReceivedLink::of(policy, "GET", target).unwrap()
    }

    fn signed(path: &str) -> Rc<SignedPath> {
        Rc::new(SignedPath::of(path.as_bytes()).unwrap())
    }

    #[test]
    fn only_the_same_link_under_the_same_policy_is_known() {
        let path = "/a?sluice-key=a";
        let mut links = VerifiedLinks::default();
        assert!(links.find(&link(1, path)).is_none());
        links.remember(&link(1, path), &signed(path));
        assert_eq!(links.find(&link(1, path)).unwrap().rest, b"/a");
        assert!(links.find(&link(2, path)).is_none());
        assert!(links.find(&link(1, "/a?sluice-key=b")).is_none());
        let same = link(1, path);
        for target in [
            Target {
                scheme: Some("https"),
                ..same.target
            },
            Target {
                authority: b"edge.test:80",
                ..same.target
            },
            // Authority and path, joined, are equal.
            Target {
                authority: b"edge.test/a",
                path: b"?sluice-key=a",
                ..same.target
            },
        ] {
            let other = ReceivedLink::of(1, "HEAD", target).unwrap();
            assert!(links.find(&other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn a_long_link_and_an_unsafe_method_are_not_remembered() {
        let path = "a".repeat(LONGEST_LINK - 9);
        let target = link(1, &path).target;
        assert!(ReceivedLink::of(1, "HEAD", target).is_some());
        assert!(ReceivedLink::of(1, "POST", target).is_none());
        let longer = "a".repeat(LONGEST_LINK - 8);
        let path = longer.as_bytes();
        assert!(ReceivedLink::of(1, "GET", Target { path, ..target }).is_none());
    }

    #[test]
    fn a_new_link_is_always_remembered_and_the_table_does_not_grow() {
        let mut links = VerifiedLinks::default();
        let paths = (0..8 * MOST_LINKS).map(|number| format!("/{number}?sluice-key=a"));
        let paths: Vec<_> = paths.collect();
        for path in &paths {
            links.remember(&link(1, path), &signed(path));
            assert!(links.find(&link(1, path)).is_some());
        }
        let known = paths
            .iter()
            .filter(|path| links.find(&link(1, path)).is_some());
        let known = known.count();
        assert!(known > MOST_LINKS / 2 && known <= MOST_LINKS, "{known}");
        assert_eq!(links.places.len(), MOST_LINKS);
    }
}
