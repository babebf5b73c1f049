// SPDX-License-Identifier: Apache-2.0
//! From what a call orders to what every worker is told.

use super::shared::SharedPurges;
use super::tags::{TagHash, Tags};
use crate::host::SharedStore;
use crate::policy::purge::{Kind, Record, Scope, UrlHash};
use crate::purge::orders::order::{PurgeOrder, PurgeSubject};
use crate::workers::shared_value::SharedError;

/// URLs of one purge by surrogate key; of more, all of the site is purged.
const MAX_URLS: usize = 4_096;

/// Writes the purges that `order` asks for, where the edge has so many `sites`. What comes back is for every worker and for
/// the journal.
///
/// # Errors
/// The host refused a call, or other workers were faster too often. Some may have been written.
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
    // NB: the number first. A response that comes between the look into the index and the purge of what
    // is found there, then sees in the index that it is too old.
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

/// Has the stored responses of these cache groups of a site revalidated, as the response to an unsafe request wants it
/// (RFC 9875, 3): of too many URLs, all of the site's. What comes back is for every worker.
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

/// These URLs of a site; all of the site if there are more, or too many.
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
