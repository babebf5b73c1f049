// SPDX-License-Identifier: Apache-2.0
//! Envoy's configuration: the templates in `templates/`, filled in from the settings and the sites.
//!
//! | what | where |
//! |---|---|
//! | the one site of `SLUICE_ORIGIN` | `one_site` |
//! | a site's policy, completed | `policy_document` |
//! | the configuration of the filter, with all sites | `filter` |
//! | a site's virtual host in the hop, and its server | `server`, `compression` |
//! | the second origin of a site | `second_server` |
//! | the secrets of access rules | `access_secrets` |
//! | credentials in a file for Envoy | `credentials` |
//! | the servers that are asked about clients | `checker` |
//! | the way of writers to the purge feed | `feed_route` |
//! | the certificates of the listener for TLS | `certificates` |
//! | the access log | `access_log` |
//! | bounds on headers | `header_bounds` |
//! | the templates, and their other values | `template` |
//! | the files of a running edge | `resource`, `rendered` |

mod access_log;
mod access_secrets;
mod certificates;
mod checker;
mod compression;
mod credentials;
mod feed_route;
mod filter;
mod header_bounds;
mod one_site;
mod origin_headers;
mod policy_document;
mod rendered;
mod resource;
mod second_server;
mod server;
mod server_address;
mod template;

use std::path::Path;
use std::time::Duration;

use sluice_core::key::secret::StoreSecret;

pub use one_site::{one_site, sites};
pub use rendered::Rendered;
pub use resource::Resource;
pub use template::access_log_bootstrap;

use crate::cache::EarlierRuns;
use crate::origin::Origin;
use crate::settings::Settings;
use crate::sites::Sites;

/// The parts of the configuration that depend neither on the settings nor on the sites.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The folder of the cache's entries.
    pub cache_dir: &'a Path,
    /// The file to which Envoy appends a line for each purge.
    pub purge_log: Option<&'a Path>,
    /// The facts about earlier runs for the filter.
    pub earlier_runs: &'a EarlierRuns,
    /// The socket at which messages of SNS are verified.
    pub sns: Option<&'a Path>,
    /// The socket at which purges are written to the purge feed.
    pub feed: Option<&'a Path>,
    /// The secret under which the filter gets the keys of signed URLs. `None`: it gets none, so that it refuses the
    /// configuration.
    pub secret: Option<StoreSecret>,
}

/// Renders the configuration for `settings` and `origin` as one document, with the cache's entries in `cache_dir`.
///
/// # Errors
/// The errors of [`render_whole`].
pub fn render(settings: &Settings, origin: &Origin, cache_dir: &Path) -> anyhow::Result<String> {
    let run = Run {
        cache_dir,
        purge_log: None,
        earlier_runs: &EarlierRuns::default(),
        sns: None,
        feed: None,
        secret: None,
    };
    render_whole(settings, &one_site(settings, origin)?, run)
}

/// Renders the configuration as one document, which cannot change while Envoy runs.
///
/// # Errors
/// A policy cannot be used, or there are no CA certificates to verify an origin with.
pub fn render_whole(settings: &Settings, sites: &Sites, run: Run<'_>) -> anyhow::Result<String> {
    template::Templates::new(settings, sites, run, None, None)?.render("envoy.yaml.j2")
}

/// The sites as the filter reads them.
///
/// # Errors
/// A policy cannot be used.
pub fn filter_sites(
    settings: &Settings,
    sites: &Sites,
) -> anyhow::Result<sluice_core::sites::Sites> {
    let run = Run {
        cache_dir: Path::new(""),
        purge_log: None,
        earlier_runs: &EarlierRuns::default(),
        sns: None,
        feed: None,
        secret: None,
    };
    let certificates = certificates::NamedCertificate::all(sites);
    let filter = filter::FilterConfiguration::new(settings, sites, &certificates, run)?;
    Ok(sluice_core::sites::Sites::parse(
        filter.json.to_string().as_bytes(),
    )?)
}

/// A duration as Envoy's configuration writes it.
fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}
