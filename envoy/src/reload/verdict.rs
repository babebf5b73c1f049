// SPDX-License-Identifier: Apache-2.0
//! Envoy's verdict on a file of its configuration, read from its statistics.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::net::admin::Admin;
use crate::render::Resource;

/// Bound on the time in which Envoy reads a file.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bound on the time for warming an accepted resource, in which for example the name of an origin is looked up.
const WARMING: Duration = Duration::from_secs(10);
/// The time between two reads of the statistics.
const POLL: Duration = Duration::from_millis(20);
/// The statistics of one resource.
const COUNTED: &str = "update_success|update_rejected|update_failure";
/// The statistics of warming resources, for all resources.
const WARM: &str = "^(cluster_manager.warming_clusters|listener_manager.total_listeners_warming)$";

/// A pending verdict on one resource.
pub struct Verdict<'a> {
    admin: &'a Admin,
    resource: &'a Resource,
    before: Option<Counts>,
}

/// The numbers of accepted and refused files of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    taken: u64,
    refused: u64,
}

impl<'a> Verdict<'a> {
    /// Reads the statistics of the resource before its file is changed.
    ///
    /// # Errors
    /// Envoy does not answer.
    pub fn before(resource: &'a Resource, admin: &'a Admin) -> anyhow::Result<Self> {
        let before = Counts::of(resource, admin)?;
        Ok(Self {
            admin,
            resource,
            before,
        })
    }

    /// Waits until Envoy has accepted the changed file and uses it. A file that Envoy has not asked for yet is not
    /// waited for.
    ///
    /// # Errors
    /// Envoy has refused the file, or has not read it in time.
    pub fn wait(self) -> anyhow::Result<()> {
        let Some(before) = self.before else {
            return Ok(());
        };
        let start = Instant::now();
        loop {
            // Envoy does not answer while it reads a large file.
            let now = Counts::of(self.resource, self.admin).ok().flatten();
            let now = now.unwrap_or(before);
            if now.refused > before.refused {
                bail!("Envoy has refused {:?}; its reason is above", self.resource);
            }
            if now.taken > before.taken {
                self.wait_until_warm();
                return Ok(());
            }
            ensure!(
                start.elapsed() < PATIENCE,
                "Envoy has not read {:?} within {} s",
                self.resource,
                PATIENCE.as_secs()
            );
            sleep(POLL);
        }
    }

    fn wait_until_warm(&self) {
        let start = Instant::now();
        while start.elapsed() < WARMING {
            let warming = self.admin.statistics(WARM);
            if warming.is_some_and(|warming| warming.values().all(|count| *count == 0)) {
                break;
            }
            sleep(POLL);
        }
    }
}

impl Counts {
    /// `None`: Envoy does not know the resource yet, or has no statistics for it.
    fn of(resource: &Resource, admin: &Admin) -> anyhow::Result<Option<Self>> {
        let Some(prefix) = prefix(resource) else {
            return Ok(None);
        };
        let filter = format!("^{}.({COUNTED})$", prefix.replace('.', "[.]"));
        let found = admin.statistics(&filter).context("no statistics")?;
        if found.is_empty() {
            return Ok(None);
        }
        let count = |name: &str| value(&found, &format!("{prefix}.{name}"));
        Ok(Some(Self {
            taken: count("update_success"),
            refused: count("update_rejected") + count("update_failure"),
        }))
    }
}

fn value(found: &BTreeMap<String, u64>, name: &str) -> u64 {
    found.get(name).copied().unwrap_or(0)
}

/// Whether Envoy has refused a file of the resource.
///
/// # Errors
/// Envoy does not answer.
pub fn is_refused(resource: &Resource, admin: &Admin) -> anyhow::Result<bool> {
    let counts = Counts::of(resource, admin)?;
    Ok(counts.is_some_and(|counts| counts.refused > 0))
}

/// The prefix of the names of a resource's statistics.
fn prefix(resource: &Resource) -> Option<String> {
    let name = match resource {
        Resource::Clusters => "cluster_manager.cds",
        Resource::Routes => "http.origin.rds.origin",
        Resource::Listeners => "listener_manager.lds",
        Resource::Header(name) | Resource::Certificate(name) => return Some(format!("sds.{name}")),
        Resource::Purge => "extension_config_discovery.http_filter.sluice.purge",
        Resource::Edge => "extension_config_discovery.http_filter.sluice.edge",
        Resource::Peer => "extension_config_discovery.http_filter.sluice.peer",
        Resource::Front => "extension_config_discovery.http_filter.sluice.front",
        Resource::Credentials(_) | Resource::Bootstrap => return None,
    };
    Some(name.to_owned())
}
