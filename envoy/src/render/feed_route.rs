// SPDX-License-Identifier: Apache-2.0
//! The way by which the entry point reads and replaces the purge feed: the server with its object, and the object's path.

use anyhow::{Context as _, bail};
use minijinja::{Value, context};
use sluice_core::key::feed_target;
use sluice_core::policy::Origin;
use sluice_core::policy::purge::FEED_NAME;

use super::filter::FilterConfiguration;
use super::server::Server;
use crate::settings::{FEED_WRITE, Settings};

/// The values of the way, if the edge writes to the feed.
///
/// # Errors
/// The policy has no feed, or the feed is that of an HTTP origin.
pub fn feed_route(
    settings: &Settings,
    filter: &FilterConfiguration,
    servers: &[Server],
) -> anyhow::Result<Option<Value>> {
    if !settings.writes_feed {
        return Ok(None);
    }
    let site = filter.feed_site.with_context(|| {
        format!(
            "{FEED_WRITE}=on: expected off, or purge.feed in the policy: it says where the feed is"
        )
    })?;
    let (Some(document), Some(server)) = (filter.policies.get(site), servers.get(site)) else {
        bail!("{FEED_WRITE}=on: expected off, or the site of purge.feed among the sites");
    };
    if !matches!(document.policy.origin, Origin::Bucket(_)) {
        bail!(
            "{FEED_WRITE}=on: expected off, or s3://BUCKET as the origin of the site of purge.feed: an HTTP origin has its \
             own way to replace a file"
        );
    }
    Ok(Some(context! {
        socket => settings.feed_socket(),
        server => server.values.get_attr("server")?,
        name => format!("/{FEED_NAME}"),
        path => feed_target(&document.policy).origin_path(),
    }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::render::render;
    use crate::settings::{PolicyChoice, Settings};

    fn rendered(origin: &str, policy: &str) -> Result<String, String> {
        let lookup = |name: &str| match name {
            "SLUICE_ORIGIN" => Some(origin.into()),
            "SLUICE_PURGE_TOKEN" => Some("0123456789abcdef".into()),
            "SLUICE_PURGE_FEED_WRITE" => Some("on".into()),
            "SLUICE_S3_ENDPOINT" if origin.starts_with("s3://") => {
                Some("http://127.0.0.1:9000".into())
            }
            _ => None,
        };
        let mut settings = Settings::from_lookup(&lookup).unwrap();
        settings.policy = Some(PolicyChoice {
            name: "test".to_owned(),
            text: policy.to_owned(),
        });
        let origin = settings.origin.clone().unwrap();
        let rendered = render(&settings, &origin, Path::new("/cache"));
        rendered.map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn an_edge_without_a_feed_of_a_bucket_has_nothing_to_write_to() {
        let feed = "purge: {feed: {}}";
        assert!(rendered("s3://site", feed).is_ok());
        for (origin, policy, expected) in [
            (
                "s3://site",
                "cache: {}",
                "expected off, or purge.feed in the policy",
            ),
            (
                "http://127.0.0.1:1",
                feed,
                "expected off, or s3://BUCKET as the origin",
            ),
        ] {
            let error = rendered(origin, policy).unwrap_err();
            assert!(error.starts_with("SLUICE_PURGE_FEED_WRITE=on: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }
}
