// SPDX-License-Identifier: Apache-2.0
//! The servers for the operator: the metrics, and the control socket.

use std::net::TcpListener;
use std::sync::Arc;

use anyhow::Context as _;

use crate::cache::{CacheFolder, Inventory, SharedState, Usage};
use crate::control::{ControlServer, Filter};
use crate::metrics::{self, EdgeStatus, MetricsDocument};
use crate::net::admin::Admin;
use crate::net::local_socket::LocalSocket;
use crate::settings::Settings;
use crate::system::private::at;

/// Serves the metrics, if the settings ask for it, until the process ends, and the control socket until the result is
/// dropped.
///
/// # Errors
/// An address is in use, or a socket cannot be bound.
pub fn serve(
    settings: &Settings,
    status: &EdgeStatus,
    shared: &SharedState,
    cache: &CacheFolder,
) -> anyhow::Result<LocalSocket> {
    let document = Arc::new(MetricsDocument {
        admin: Admin::new(settings.admin_socket()),
        status: status.clone(),
        reports: shared.reports.clone(),
        shares: shared.shares.clone(),
        bound: Usage {
            bytes: settings.cache.max_bytes,
            files: settings.cache.max_entries,
        },
        by_site: settings.stats_of_sites,
    });
    if let Some(address) = settings.metrics {
        let document = Arc::clone(&document);
        let listener = TcpListener::bind(address);
        let served = listener.and_then(|listener| metrics::serve(listener, settings, document));
        served.with_context(|| format!("SLUICE_METRICS_PORT={}", address.port()))?;
    }
    let control = ControlServer {
        filter: Filter::new(settings.filter_control_socket()),
        inventory: Inventory {
            folder: cache.entries.clone(),
            bound: document.bound,
            shares: shared.shares.clone(),
        },
        purge_log: cache.purge_log.clone(),
        document,
    };
    let socket = settings.control_socket();
    control.serve(socket.clone()).map_err(at(&socket))
}
