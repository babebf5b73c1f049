// SPDX-License-Identifier: Apache-2.0
//! Carrying out of an order: the purges that are written, and the records for all workers.

use super::shared::SharedPurges;
use super::tags::{TagHash, Tags};
use crate::host::SharedStore;
use crate::policy::purge::{Kind, Record, Scope, UrlHash};
use crate::purge::orders::order::{PurgeOrder, PurgeSubject};
use crate::workers::shared_value::SharedError;

/// Greatest number of URLs in one purge by surrogate key. If there are more, the whole site is purged.
const MAX_URLS: usize = 4_096;

/// Writes the purges of `order`, for an edge with `sites` sites. Returns the records for every worker and for the
/// journal.
///
/// # Errors
/// The host refused a call, or other workers changed the same value too often. Some of the purges may be written.
pub fn carry_out(
    store: &dyn SharedStore,
    order: &PurgeOrder,
    sites: usize,
) -> Result<Vec<Record>, SharedError> {
    let mut shared = SharedPurges::new(store, sites);
    let (site, tags) = match &order.what {
        PurgeSubject::Scopes(scopes) => return shared.commit(order.kind, scopes),
        PurgeSubject::Tags { site, tags } => (site, tags),
    };
    // NB: take the number first. A response may arrive between the lookup in the index and the purge of the URLs
    // found there. The index then shows that the response is older than the purge.
    let (mut records, number) = take_number(&mut shared, order.kind)?;
    let mut index = Tags::new(store, site, shared.epoch(site)?, sites);
    let mut urls = Vec::new();
    let mut complete = shared.is_indexed(site)?;
    for &tag in tags {
        match index.purge(tag, number)? {
            Some(found) => urls.extend(found),
            None => complete = false,
        }
    }
    records.extend(shared.commit(order.kind, &scopes_of(site, urls, complete))?);
    Ok(records)
}

/// Marks the stored responses of these cache groups of a site for revalidation, because the response to an unsafe
/// request asks for it (RFC 9875, 3). If there are too many URLs, all URLs of the site are marked. Returns the
/// records for every worker.
///
/// # Errors
/// As [`carry_out`].
pub fn invalidate_groups(
    store: &dyn SharedStore,
    site: &str,
    groups: &[TagHash],
    sites: usize,
) -> Result<Vec<Record>, SharedError> {
    let mut shared = SharedPurges::new(store, sites);
    let (mut records, number) = take_number(&mut shared, Kind::Changed)?;
    let mut index = Tags::new(store, site, shared.epoch(site)?, sites);
    let mut urls = Vec::new();
    for &group in groups {
        urls.extend(index.invalidate(group, number)?);
    }
    records.extend(shared.commit(Kind::Changed, &scopes_of(site, urls, true))?);
    Ok(records)
}

fn take_number(
    shared: &mut SharedPurges<'_>,
    kind: Kind,
) -> Result<(Vec<Record>, u64), SharedError> {
    let records = shared.commit(kind, &[Scope::Nothing])?;
    let number = records.last().map_or(0, |record| record.number);
    Ok((records, number))
}

/// Returns the scopes of these URLs of a site; the whole site if the list is incomplete or too long.
fn scopes_of(site: &str, mut urls: Vec<UrlHash>, complete: bool) -> Vec<Scope> {
    urls.sort_unstable();
    urls.dedup();
    if !complete || urls.len() > MAX_URLS {
        return vec![Scope::all_of(site)];
    }
    let of_site = |hash| Scope::Url {
        site: site.to_owned(),
        hash,
    };
    urls.into_iter().map(of_site).collect()
}
