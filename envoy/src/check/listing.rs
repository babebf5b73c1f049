// SPDX-License-Identifier: Apache-2.0
//! The permission that the listings of a site need.

use serde_json::{Value, json};
use sluice_core::policy::{self, ListingPolicy, Policy};
use sluice_core::sites::Sites;
use sluice_core::website::listing::listed_keys;

use super::Finding;
use crate::origin::Origin;
use crate::sites::Site;

/// The statement that the policy of a site's bucket, or of the edge's role, needs for the listings of the site.
pub fn check(site: &Site, policies: &Sites) -> Option<Finding> {
    let Origin::Bucket(bucket) = &site.origin else {
        return None;
    };
    let policy = &policies.sites.get(policies.named(&site.name)?)?.policy;
    let listing = policy.website.listing.as_ref()?;
    let of = match site.name.as_str() {
        "" => String::new(),
        name => format!(" of the site {name}"),
    };
    let statement = statement(&bucket.name, policy, listing)?;
    Some(Finding::note(format!(
        "website.listing{of} needs this statement in the policy of the edge's role or user: {statement}"
    )))
}

/// The statement for the listed prefixes of a bucket. `None` if the origin is not a bucket.
fn statement(name: &str, policy: &Policy, listing: &ListingPolicy) -> Option<Value> {
    let policy::Origin::Bucket(bucket) = &policy.origin else {
        return None;
    };
    let keys = listed_keys(bucket, listing).into_iter();
    let prefixes: Vec<_> = keys.map(|key| key + "*").collect();
    Some(json!({
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": format!("arn:aws:s3:::{name}"),
        "Condition": {"StringLike": {"s3:prefix": prefixes}},
    }))
}
