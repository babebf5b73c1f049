// SPDX-License-Identifier: Apache-2.0
//! Requests objects that do not exist from the buckets, through a running edge, and reports problems.

use std::time::Duration;

use anyhow::{Context as _, bail};

use super::health::local_address;
use crate::log::warn;
use crate::net::http;
use crate::origin::Origin;
use crate::render;
use crate::settings::Settings;
use crate::sites::{Site, Sites};
use crate::system::random;

/// Bound on the time until the answer. A failing bucket needs the time for retries.
const PATIENCE: Duration = Duration::from_secs(20);

/// Checks the buckets in another thread, and logs the problems. The edge serves in any case.
pub fn check_bucket_beside(settings: &Settings) {
    let sites = render::sites(settings, None)
        .ok()
        // With the PROXY protocol the listeners for clients are closed to this machine.
        .filter(|_| settings.checks_bucket && settings.proxy_protocol.is_none());
    let Some(Sites { sites, .. }) = sites else {
        return;
    };
    let settings = settings.clone();
    // The thread ends with the process. If it cannot be started, the buckets are not checked.
    let _ = std::thread::Builder::new()
        .name("bucket-check".into())
        .spawn(move || {
            let buckets = sites
                .iter()
                .filter(|site| matches!(site.origin, Origin::Bucket(_)));
            for site in buckets {
                if let Err(error) = check_bucket(&settings, site) {
                    let of_site = match site.name.as_str() {
                        "" => String::new(),
                        name => format!("site {name}: "),
                    };
                    warn(&format!("{of_site}{error:#}"));
                }
            }
        });
}

/// Requests an object that a site's bucket cannot have from the edge with these settings, which runs on this
/// machine.
///
/// # Errors
/// The edge does not answer, or the bucket's answer says that the edge cannot read it.
pub fn check_bucket(settings: &Settings, site: &Site) -> anyhow::Result<()> {
    let edge = local_address(settings.bind, settings.edge_port);
    let name = random::hex().context("random bits")?;
    let path = site.path.as_deref().unwrap_or_default();
    let uri = format!("http://{edge}{path}/.well-known/sluice-check-{name}");
    let mut request = http::client().get(uri);
    if let Some(host) = site.hosts.first() {
        // A `*` matches any label.
        request = request.header("host", host.replacen('*', "sluice-check", 1));
    }
    let request = request.config().timeout_global(Some(PATIENCE)).build();
    let answer = request
        .call()
        .with_context(|| format!("the bucket could not be checked through http://{edge}/"))?;
    match answer.status().as_u16() {
        403 => bail!(
            "the bucket answers 403 for an object that does not exist: the credentials may not list the bucket \
             (s3:ListBucket), or may not read it at all"
        ),
        status @ (400 | 429 | 500..) => bail!(
            "the bucket cannot be read (status {status}): the filter's lines in the edge's log say why, and what to do"
        ),
        _ => Ok(()),
    }
}
