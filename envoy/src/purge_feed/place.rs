// SPDX-License-Identifier: Apache-2.0
//! The place of the feed: the bucket that has it, by the settings of the edges.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, bail};
use sluice_core::policy::purge::{FEED_NAME, USUAL_EVERY};

use crate::net::bucket_client::BucketClient;
use crate::origin::{Bucket, Origin};
use crate::render;
use crate::settings::Settings;
use crate::sites::{Credentials, Site, own_bucket_keys};

/// The bucket with the feed.
#[derive(Clone, Debug)]
pub struct FeedPlace {
    /// The bucket.
    pub bucket: Bucket,
    /// The time between two readings of an edge.
    pub every: Duration,
    credentials: Credentials,
}

impl FeedPlace {
    /// Finds the feed of the edges with these settings. Without `purge.feed` in the policy it is the feed of their only
    /// site.
    ///
    /// # Errors
    /// The settings are not valid, or the site with the feed has no bucket.
    pub fn of(settings: &Settings) -> anyhow::Result<Self> {
        let sites = render::sites(settings, None)?;
        let read = render::filter_sites(settings, &sites)?;
        let feed = read.edge.purge.feed.as_ref();
        let site = match (read.feed_site(), &sites.sites[..]) {
            (Some(index), all) => all.get(index),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        let site = site.context(
            "purge.feed: must be in the policy section of SLUICE_SITES, because it names the site whose bucket has the \
             feed",
        )?;
        let every = feed.map_or(USUAL_EVERY, |feed| feed.every);
        Self::of_site(site, every)
    }

    /// The feed that the edges with these settings read, if their policy has `purge.feed` and the settings name the
    /// keys of its bucket.
    pub fn read_by_edges(settings: &Settings) -> Option<Self> {
        let sites = render::sites(settings, None).ok()?;
        let read = render::filter_sites(settings, &sites).ok()?;
        let every = read.edge.purge.feed.as_ref()?.every;
        let place = Self::of_site(sites.sites.get(read.feed_site()?)?, every).ok()?;
        (place.credentials != Credentials::Chain).then_some(place)
    }

    /// The feed in the bucket of a site.
    ///
    /// # Errors
    /// The site has an HTTP origin.
    fn of_site(site: &Site, every: Duration) -> anyhow::Result<Self> {
        let Origin::Bucket(bucket) = &site.origin else {
            bail!(
                "the feed of an HTTP origin is at /{FEED_NAME}: expected s3://BUCKET in SLUICE_ORIGIN, because an HTTP \
                 origin has its own way to replace a file"
            );
        };
        Ok(Self {
            bucket: bucket.clone(),
            every,
            credentials: site.credentials.clone(),
        })
    }

    /// A client of the bucket with the keys of the settings.
    ///
    /// # Errors
    /// The settings name no keys, or there are no CA certificates for the bucket's endpoint.
    pub fn client(&self, settings: &Settings) -> anyhow::Result<BucketClient> {
        let keys = own_bucket_keys(&self.credentials, &|name| settings.secrets.variable(name))?;
        BucketClient::new(&self.bucket, keys, settings.aws_ca_file.as_deref())
    }
}

impl fmt::Display for FeedPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bucket { name, prefix, .. } = &self.bucket;
        let slash = if prefix.is_empty() { "" } else { "/" };
        write!(out, "s3://{name}/{prefix}{slash}{FEED_NAME}")
    }
}
