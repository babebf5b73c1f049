// SPDX-License-Identifier: Apache-2.0
//! The objects of the origin. Their versions follow from the time alone, so that the origin, the clients and the
//! judge know when each was current.

use super::adornment::Adornment;
use super::clock::Moment;
use super::content::Content;
use crate::chance::rng::mix;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Number of objects.
const OBJECTS: usize = 64;
/// The bytes of the largest object that the edge stores as a whole.
pub const LARGEST_WHOLE: usize = 1 << 20;
/// The bytes of a slice of a larger object.
pub const SLICE: usize = 256 << 10;
/// Numbers of the objects that are stored in slices. Some never change, others change often or from time to time. The
/// origin cuts bodies, sends errors, resets connections or refuses requests for some of them.
const LARGE: [usize; 7] = [5, 16, 20, 26, 33, 40, 60];
/// The name of the request header by which some objects vary.
pub const VARIES_BY: &str = "x-variant";
/// The values that clients send in it.
pub const VARIANTS: [&str; 3] = ["a", "b", "c"];

/// Kind of an object's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 200, with a lifetime.
    Stored,
    /// 200, with a lifetime; varies by [`VARIES_BY`].
    Varying,
    /// 404, with a lifetime.
    Missing,
    /// 200 with `no-store`.
    NoStore,
    /// 200 with `private`.
    Private,
    /// 200 with `Set-Cookie` and a lifetime.
    SetCookie,
}

impl Kind {
    /// Whether a shared cache may store it.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::Stored | Self::Varying | Self::Missing)
    }
}

/// How the origin fails for an object, sometimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// The origin does not fail.
    None,
    /// One of six bodies is cut.
    Cuts,
    /// One of five answers is a 5xx.
    Errors,
    /// One of five connections is reset before an answer.
    Resets,
    /// Requests with padding are refused.
    Refusals,
}

/// An object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Path of its URL.
    pub path: String,
    /// Kind of its response.
    pub kind: Kind,
    /// How the origin fails for it.
    pub weakness: Weakness,
    /// Sizes of its versions.
    pub sizes: RangeInclusive<usize>,
    /// Whether its length is not announced.
    pub chunked: bool,
    /// The size of the pieces in which it is sent, and the time between them.
    pub pace: Option<(usize, Duration)>,
    /// Its lifetime, in seconds.
    pub lifetime: u64,
    /// Whether `Expires` says the lifetime, and not `Cache-Control`.
    pub expires: bool,
    /// `stale-while-revalidate` and `stale-if-error`, in seconds.
    pub windows: (u64, u64),
    /// How long each version is current.
    pub interval: Option<Duration>,
    /// Whether only `Last-Modified` distinguishes its versions.
    pub dated: bool,
    /// The headers that it has in addition to the usual ones.
    pub adornment: Option<Adornment>,
}

impl Object {
    /// All objects of a run, of an origin that fails or does not.
    #[must_use]
    pub fn all(faults: bool) -> Vec<Self> {
        (0..OBJECTS)
            .map(|number| Self::new(number, faults))
            .collect()
    }

    fn new(number: usize, faults: bool) -> Self {
        let kind = match number % 16 {
            7 => Kind::Varying,
            11 if number < 16 => Kind::NoStore,
            11 if number < 32 => Kind::Private,
            11 if number < 48 => Kind::SetCookie,
            11 => Kind::Missing,
            _ => Kind::Stored,
        };
        let weakness = match number % 9 {
            _ if !faults => Weakness::None,
            2 => Weakness::Refusals,
            4 => Weakness::Cuts,
            6 if number.is_multiple_of(2) => Weakness::Errors,
            6 => Weakness::Resets,
            _ => Weakness::None,
        };
        let largest = [32, 700, 4_096, 10_000, 30_000, 70_000, 150_000, 300_000][number % 8];
        let (sizes, pace) = match number {
            33 => (
                2_000_000..=3_000_000,
                Some((64 << 10, Duration::from_millis(3))),
            ),
            n if LARGE.contains(&n) => (2_000_000..=5_000_000, None),
            24 => (LARGEST_WHOLE / 2..=LARGEST_WHOLE, None),
            n if n % 5 == 3 => (
                largest / 2..=largest,
                Some((largest / 8 + 1, Duration::from_millis(12))),
            ),
            _ => (largest / 2..=largest, None),
        };
        let interval = match number % 8 {
            // Only a body can be cut, and an unchanged object is answered without one.
            _ if weakness == Weakness::Cuts => Some(Duration::from_millis(300)),
            1 if number < 32 => Some(Duration::from_millis(30)),
            2 | 6 => Some(Duration::from_secs(1 + number as u64 % 7)),
            4 => Some(Duration::from_millis(400)),
            _ if !kind.is_shared() => Some(Duration::from_millis(100)),
            _ => None,
        };
        Self {
            path: format!("/o{}/{number}{}", number % 4, ending(number)),
            kind,
            weakness,
            sizes,
            chunked: number % 5 == 2,
            pace,
            lifetime: match weakness {
                Weakness::None => [1, 1, 2, 3, 5, 8, 13, 30][number * 5 % 8],
                _ => 1 + number as u64 % 2,
            },
            expires: number % 7 == 1 && kind.is_shared(),
            windows: match number % 6 {
                3 => (2, 0),
                4 => (0, 4),
                5 => (1, 3),
                _ => (0, 0),
            },
            interval,
            dated: number % 8 == 6 && weakness != Weakness::Cuts,
            adornment: Adornment::ALL.get(number % 13).copied(),
        }
    }

    /// Whether it is stored in slices.
    #[must_use]
    pub const fn is_sliced(&self) -> bool {
        *self.sizes.start() > LARGEST_WHOLE
    }

    /// The version that is current at a moment.
    #[must_use]
    pub fn version(&self, at: Moment) -> u64 {
        self.interval.map_or(0, |interval| {
            u64::try_from(at.as_nanos() / interval.as_nanos()).unwrap_or(u64::MAX)
        })
    }

    /// The moment at which a version became current.
    #[must_use]
    pub fn since(&self, version: u64) -> Moment {
        let version = u32::try_from(version).unwrap_or(u32::MAX);
        self.interval
            .map_or(Moment::ZERO, |interval| interval.saturating_mul(version))
    }

    /// The moment at which another version replaced this one.
    #[must_use]
    pub fn replaced(&self, version: u64) -> Moment {
        self.interval
            .map_or(Moment::MAX, |_| self.since(version.saturating_add(1)))
    }

    /// Size of a version.
    #[must_use]
    pub fn size(&self, version: u64) -> usize {
        let spread = (self.sizes.end() - self.sizes.start() + 1) as u64;
        self.sizes.start() + usize::try_from(mix(version ^ 0x5133) % spread).unwrap()
    }

    /// Its entity tag, with its quotes.
    #[must_use]
    pub fn etag(&self, version: u64) -> Option<String> {
        (!self.dated).then(|| format!("\"{version}\""))
    }

    /// The key of the bytes for a request with this value of [`VARIES_BY`].
    #[must_use]
    pub fn key(&self, variant: &str) -> String {
        match self.kind {
            Kind::Varying => format!("{} {variant}", self.path),
            _ => self.path.clone(),
        }
    }

    /// The bytes of a version.
    #[must_use]
    pub fn content(&self, variant: &str, version: u64) -> Content {
        Content::new(&self.key(variant), version)
    }

    /// How long the origin takes to send the longest version.
    #[must_use]
    pub fn fill_time(&self) -> Duration {
        self.pace.map_or(Duration::ZERO, |(bytes, every)| {
            every * u32::try_from(self.sizes.end() / bytes + 1).unwrap_or(u32::MAX)
        })
    }

    /// For how long after its validation a response may be served.
    #[must_use]
    pub fn reach(&self) -> Duration {
        Duration::from_secs(self.lifetime + self.windows.0.max(self.windows.1))
    }

    /// Its `Cache-Control`.
    #[must_use]
    pub fn cache_control(&self) -> String {
        match self.kind {
            Kind::NoStore => "no-store".to_owned(),
            Kind::Private => "private".to_owned(),
            _ if self.expires => format!(
                "stale-while-revalidate={}, stale-if-error={}",
                self.windows.0, self.windows.1
            ),
            _ => format!(
                "max-age={}, stale-while-revalidate={}, stale-if-error={}",
                self.lifetime, self.windows.0, self.windows.1
            ),
        }
    }
}

/// The end of an object's path. The edge knows by it that half of the large objects are large.
fn ending(number: usize) -> &'static str {
    if LARGE.contains(&number) && number.is_multiple_of(4) {
        ".iso"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_objects_have_all_that_slices_need() {
        let objects = Object::all(true);
        let sliced = || objects.iter().filter(|object| object.is_sliced());
        assert_eq!(sliced().count(), LARGE.len());
        assert!(sliced().all(|object| object.kind == Kind::Stored));
        assert!(sliced().all(|object| !object.chunked && !object.dated));
        let is_known = |object: &&Object| object.path.ends_with(".iso");
        assert_eq!(sliced().filter(is_known).count(), 4);
        let never = |object: &Object| object.interval.is_none();
        assert!(sliced().any(never) && !sliced().all(never));
    }

    #[test]
    fn versions_follow_from_the_time() {
        for object in Object::all(true) {
            let now = Duration::from_millis(12_345);
            let version = object.version(now);
            assert!(object.since(version) <= now && now < object.replaced(version));
            assert!(object.sizes.contains(&object.size(version)));
        }
    }
}
