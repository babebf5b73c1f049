// SPDX-License-Identifier: Apache-2.0
//! Problems of the purge feed: whether it can be read, and whether its bucket keeps writers at one time apart.

use anyhow::Context as _;

use super::Finding;
use crate::net::bucket_client::{BucketClient, Precondition};
use crate::purge_feed::{FeedPlace, FeedWriter};
use crate::settings::Settings;
use crate::system::random;

/// An entity tag that no object has.
const NO_TAG: &str = "\"00000000000000000000000000000000\"";

/// Reads the feed. If the keys may write, also tries conditional writes of another object of its folder.
pub fn check(settings: &Settings, place: &FeedPlace) -> Vec<Finding> {
    let asked = || -> anyhow::Result<Vec<Finding>> {
        let client = place.client(settings)?;
        let feed = FeedWriter(&client)
            .read()
            .with_context(|| place.to_string())?;
        let missing = feed.is_none().then(|| {
            Finding::note(format!(
                "{place}: there is no feed yet: the first purge makes it"
            ))
        });
        let unsafe_writes = tries_conditions(&client)?.then(|| {
            Finding::warning(format!(
                "{place}: the bucket ignores If-Match or If-None-Match, so two writers at one time lose purges: let only \
                 one write"
            ))
        });
        Ok(missing.into_iter().chain(unsafe_writes).collect())
    };
    asked().unwrap_or_else(|error| vec![Finding::problem(format!("{error:#}"))])
}

/// Whether the bucket accepts a write whose condition does not hold. `false` if the keys may not write.
fn tries_conditions(client: &BucketClient) -> anyhow::Result<bool> {
    let name = random::hex().context("random bits")?;
    let name = format!(".sluice/check-{name}");
    let put = |condition: Precondition<'_>| -> anyhow::Result<bool> {
        let response = client.put(&name, condition, b"a scratch object of `sluice check`\n")?;
        Ok(response.status().is_success())
    };
    if !put(Precondition::IsMissing)? {
        return Ok(false);
    }
    let ignores = put(Precondition::IsMissing)? || put(Precondition::HasTag(NO_TAG))?;
    client.delete(&name)?;
    Ok(ignores)
}
