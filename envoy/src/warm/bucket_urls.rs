// SPDX-License-Identifier: Apache-2.0
//! The URLs of a bucket's objects, page by page.

use std::io::Read as _;

use anyhow::{Context as _, anyhow, bail, ensure};
use sluice_core::http::url::escaping::escape_key;
use sluice_core::key::{Target, canonicalize, split_absolute};
use sluice_core::policy::{Policy, is_for_edges};
use sluice_core::sites::Sites;
use sluice_core::website::listing::{BucketList, ListedObject};
use ureq::Body;
use ureq::http::Response;

use crate::net::bucket_client::BucketClient;
use crate::origin::{Bucket, Origin};
use crate::render;
use crate::settings::Settings;
use crate::sites::own_bucket_keys;

/// Bound on a page, in bytes: 1,000 keys of 1,024 bytes, written as escapes.
const PAGE_BYTES: u64 = 16 << 20;

/// The objects of one site's bucket with names that begin alike, as URLs of the site.
pub struct BucketUrls {
    client: BucketClient,
    /// The sites of the edge.
    sites: Sites,
    /// The number of the site with the bucket.
    site: usize,
    bucket: Bucket,
    /// The beginning of the objects' names, behind the bucket's prefix.
    beginning: String,
    /// The URL below which the names are, without a slash at its end.
    base: String,
    /// The token of the next page.
    token: Option<String>,
    /// Whether the last page has been read.
    is_read: bool,
    /// The keys that no URL names.
    pub skipped: SkippedKeys,
}

/// The keys that no URL of the site names.
#[derive(Clone, Debug, Default)]
pub struct SkippedKeys {
    /// Number of the keys.
    pub number: usize,
    /// The first of them.
    pub first: Option<String>,
}

impl BucketUrls {
    /// Finds the bucket of the site at `base`, by the settings of the edge.
    ///
    /// # Errors
    /// No site is at `base`, it has no bucket, or the settings name no keys.
    pub fn new(settings: &Settings, base: &str, beginning: &str) -> anyhow::Result<Self> {
        let rendered = render::sites(settings, None)?;
        let sites = render::filter_sites(settings, &rendered)?;
        let base = base.trim_end_matches('/').to_owned();
        let below = format!("{base}/");
        let target = target_of(&below).context("--base: expected a URL")?;
        let site = sites.find(&target, || None);
        let site = site.map_err(|_| anyhow!("--base: {base:?}: expected a URL of a site"))?;
        let found = rendered.sites.get(site).context("no such site")?;
        let Origin::Bucket(bucket) = &found.origin else {
            bail!("--bucket-prefix: expected a site with a bucket, s3://BUCKET");
        };
        let lookup = |name: &str| settings.secrets.variable(name);
        let keys = own_bucket_keys(&found.credentials, &lookup)?;
        Ok(Self {
            client: BucketClient::new(bucket, keys, settings.aws_ca_file.as_deref())?,
            sites,
            site,
            bucket: bucket.clone(),
            beginning: beginning.to_owned(),
            base,
            token: None,
            is_read: false,
            skipped: SkippedKeys::default(),
        })
    }

    /// The URLs of the next page, which may be none; `None` after the last page.
    ///
    /// # Errors
    /// The bucket does not answer, refuses, or answers with another document.
    pub fn next_page(&mut self) -> anyhow::Result<Option<Vec<String>>> {
        if self.is_read {
            return Ok(None);
        }
        let Bucket { name, prefix, .. } = &self.bucket;
        let slash = if prefix.is_empty() { "" } else { "/" };
        let prefix = format!("{prefix}{slash}");
        let beginning = format!("{prefix}{}", self.beginning);
        let page = self.client.list(&self.beginning, self.token.as_deref());
        let page = page.and_then(|answer| read_page(answer, name, &beginning));
        let page = page.with_context(|| format!("s3://{name}/{beginning}"))?;
        let is_next = page.next_token.is_some() && page.next_token != self.token;
        (self.is_read, self.token) = (!is_next, page.next_token);
        let mut urls = Vec::with_capacity(page.objects.len());
        for ListedObject { key, .. } in page.objects {
            let Some(object) = key.strip_prefix(&prefix) else {
                continue;
            };
            match self.url(object) {
                Some(url) => urls.push(url),
                // Only edges read such an object.
                None if is_for_edges(object.as_bytes()) => {}
                None => {
                    self.skipped.number += 1;
                    self.skipped.first.get_or_insert(key);
                }
            }
        }
        Ok(Some(urls))
    }

    /// Whether another page follows.
    pub const fn has_more(&self) -> bool {
        !self.is_read
    }

    /// The URL of an object, if the edge understands exactly this object by it.
    fn url(&self, object: &str) -> Option<String> {
        let policy: &Policy = &self.sites.sites.get(self.site)?.policy;
        let object = escape_key(object);
        let url = format!("{}/{object}", self.base);
        let canonical = canonicalize(policy, &target_of(&url)?).ok()?;
        let prefix = match &policy.origin {
            sluice_core::policy::Origin::Bucket(bucket) => bucket.path_prefix.as_str(),
            sluice_core::policy::Origin::Http(_) => "",
        };
        (canonical.path() == format!("{prefix}/{object}")).then_some(url)
    }
}

fn target_of(url: &str) -> Option<Target<'_>> {
    let (scheme, authority, path) = split_absolute(url.as_bytes())?;
    Some(Target {
        scheme: Some(scheme),
        authority,
        path,
    })
}

/// Reads a page of the bucket with this `name`: objects whose keys begin with `beginning`.
fn read_page(answer: Response<Body>, name: &str, beginning: &str) -> anyhow::Result<BucketList> {
    let status = answer.status();
    ensure!(
        status != 403,
        "status 403: the keys may not list the bucket: allow s3:ListBucket on arn:aws:s3:::{name}"
    );
    ensure!(
        status == 200,
        "the bucket cannot be listed: status {status}"
    );
    let mut document = Vec::new();
    let body = answer.into_body().into_reader();
    let read = body.take(PAGE_BYTES).read_to_end(&mut document);
    read.context("the listing could not be read")?;
    let page = BucketList::parse(&document, beginning);
    let page = page.map_err(|error| anyhow!("the listing cannot be used: {}", error.message()))?;
    ensure!(
        !page.is_truncated || page.next_token.is_some(),
        "the listing goes on, and has no NextContinuationToken"
    );
    Ok(page)
}
