// SPDX-License-Identifier: Apache-2.0
//! From what a call orders to what every worker is told.

use super::invalidations::SharedInvalidations;
use super::order::{Order, What};
use super::shared::SharedPurges;
use super::tags::{TagHash, Tags};
use super::url::everything_of;
use crate::host::SharedStore;
use crate::policy::Policy;
use crate::policy::purge::{Kind, Record, Scope};
use crate::workers::KeyHash;
use crate::workers::shared_value::SharedError;

/// URLs of one purge by surrogate key; of more, all that its caller may purge is purged.
const MAX_URLS: usize = 4_096;

/// Writes the purges that `order` asks for. What comes back is for every worker and for the journal.
///
/// # Errors
/// The host refused a call, or other workers were faster too often. Some may have been written.
pub fn carry_out(store: &dyn SharedStore, order: &Order) -> Result<Vec<Record>, SharedError> {
    let (tags, unless_known) = match &order.what {
        What::Scopes(scopes) => return SharedPurges::new(store).commit(order.kind, scopes),
        What::Tags { tags, unless_known } => (tags, unless_known),
    };
    // NB: the number first. A response that comes between the look into the index and the purge of what
    // is found there, then sees in the index that it is too old.
    let mut records = SharedPurges::new(store).commit(order.kind, &[Scope::Nothing])?;
    let number = records.last().map_or(0, |record| record.number);
    let scopes = urls_with(store, tags, number)?.unwrap_or_else(|| vec![unless_known.clone()]);
    records.extend(SharedPurges::new(store).commit(order.kind, &scopes)?);
    Ok(records)
}

/// The URLs that the index has for `tags`; `None` if it cannot tell.
fn urls_with(
    store: &dyn SharedStore,
    tags: &[TagHash],
    number: u64,
) -> Result<Option<Vec<Scope>>, SharedError> {
    let shared = SharedPurges::new(store);
    let (indexed, epoch) = (shared.is_indexed()?, shared.epoch()?);
    let mut index = Tags::new(store, epoch);
    let mut buckets = Vec::new();
    let mut complete = indexed;
    for &tag in tags {
        match index.purge(tag, number)? {
            Some(found) => buckets.extend(found),
            None => complete = false,
        }
    }
    buckets.sort_unstable();
    buckets.dedup();
    complete &= buckets.len() <= MAX_URLS;
    Ok(complete.then(|| buckets.into_iter().map(Scope::Bucket).collect()))
}

/// Has the stored responses of these URLs revalidated, as unsafe requests have changed them. The number of the change
/// is for every worker.
///
/// # Errors
/// As [`carry_out`].
pub fn invalidate(store: &dyn SharedStore, urls: &[KeyHash]) -> Result<u64, SharedError> {
    let records = SharedPurges::new(store).commit(Kind::Soft, &[Scope::Nothing])?;
    let number = records.last().map_or(0, |record| record.number);
    let mut shared = SharedInvalidations::new(store);
    urls.iter().try_for_each(|url| shared.note(*url, number))?;
    Ok(number)
}

/// Has the stored responses of these cache groups of a site revalidated, as the response to an unsafe request wants it
/// (RFC 9875, 3): of too many URLs, all of the site's. What comes back is for every worker.
///
/// # Errors
/// As [`carry_out`].
pub fn invalidate_groups(
    store: &dyn SharedStore,
    policy: &Policy,
    groups: &[TagHash],
) -> Result<Vec<Record>, SharedError> {
    let mut shared = SharedPurges::new(store);
    let mut records = shared.commit(Kind::Soft, &[Scope::Nothing])?;
    let number = records.last().map_or(0, |record| record.number);
    let mut index = Tags::new(store, shared.epoch()?);
    let mut buckets = Vec::new();
    for &group in groups {
        buckets.extend(index.invalidate(group, number)?);
    }
    buckets.sort_unstable();
    buckets.dedup();
    let scopes = if buckets.len() > MAX_URLS {
        vec![everything_of(policy)]
    } else {
        buckets.into_iter().map(Scope::Bucket).collect()
    };
    records.extend(shared.commit(Kind::Soft, &scopes)?);
    Ok(records)
}

/// Puts what the store has spoilt out of reach. What comes back is for every worker.
///
/// # Errors
/// As [`carry_out`].
pub fn discard(store: &dyn SharedStore, bucket: u16) -> Result<Vec<Record>, SharedError> {
    SharedPurges::new(store).commit(Kind::Hard, &[Scope::Bucket(bucket)])
}
