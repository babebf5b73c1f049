// SPDX-License-Identifier: Apache-2.0
//! The configuration of the serving edge, and its change at SIGHUP.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Signal, getpid, kill_process};

use crate::cache::{MostVariants, Shares};
use crate::log::{say, warn};
use crate::metrics::EdgeStatus;
use crate::net::admin::Admin;
use crate::origin::Origin;
use crate::reload::{FileWatch, reload};
use crate::render::{Rendered, Resource, Run, sites};
use crate::settings::Settings;
use crate::system::service_manager;

/// The beginning of the lines about a refused reload.
const REFUSED: &str = "reload refused, nothing has changed";

/// The configuration of the serving edge.
pub struct Configuration<'a> {
    /// The settings at the edge's start.
    pub settings: &'a Settings,
    /// The origin of the demo.
    pub demo: Option<Origin>,
    /// The parts of the configuration that depend on this run.
    pub run: Run<'a>,
    /// The configuration that Envoy has.
    pub rendered: Rendered,
    /// The weights of the sites, for the keeper of the cache.
    pub shares: Shares,
    /// The bound on the variants of a URL.
    pub most_variants: MostVariants,
    /// The watch over the user's files, and the watched files.
    pub watch: Option<(FileWatch, Vec<PathBuf>)>,
    /// The state of the configuration for the metrics.
    pub status: EdgeStatus,
    /// Whether the watch has reported a change that no reload has read yet.
    pub watch_has_told: Arc<AtomicBool>,
}

impl Configuration<'_> {
    /// Reads the files that the settings name again, and changes the edge's configuration accordingly. If a file
    /// has a problem, nothing changes, and the log, a metric and the service manager's status report it.
    pub fn reload(&mut self) {
        let by_watch = self.watch_has_told.swap(false, Ordering::Relaxed);
        let cause = if by_watch { "WATCH" } else { "SIGHUP" };
        service_manager::report_reloading();
        let reloaded = self.try_reload();
        let status = match &reloaded {
            Ok(changed) => {
                let status = reloaded_status(changed);
                if !(by_watch && changed.is_empty()) {
                    say(&format!("{status} ({cause})"));
                }
                status
            }
            Err(error) => {
                for line in format!("{error:#}").lines() {
                    warn(&format!("{REFUSED}: {line} ({cause})"));
                }
                format!("{REFUSED}: {error:#}")
            }
        };
        let accepted = reloaded.is_ok().then_some(self.rendered.policy_hash);
        self.status.note_reload(accepted, &status);
        service_manager::report_ready(&status);
    }

    fn try_reload(&mut self) -> anyhow::Result<Vec<Resource>> {
        let lookup = |name: &str| -> Option<OsString> { std::env::var_os(name) };
        // The limits of the machine are those at the start.
        let settings = Settings::on_machine(self.settings.machine, &lookup)?;
        let sites = sites(&settings, self.demo.as_ref())?;
        let new = Rendered::new(&settings, &sites, self.run, Some(&self.rendered))?;
        let admin = Admin::new(self.settings.admin_socket());
        let changed = reload(&self.rendered, &new, &admin)?;
        self.rendered = new;
        self.shares.publish(sites.shares());
        self.most_variants.publish(self.rendered.variants_per_url);
        self.watch_files(&settings.files_of_the_user());
        Ok(changed)
    }

    /// Watches the user's files from now on, if the settings ask for it. When a file is replaced, this process gets
    /// SIGHUP.
    pub fn watch_files(&mut self, files: &[PathBuf]) {
        let watched = self.watch.as_ref().map(|(_, watched)| watched.as_slice());
        if !self.settings.watches || watched == Some(files) {
            return;
        }
        let has_told = Arc::clone(&self.watch_has_told);
        let tell = move || {
            has_told.store(true, Ordering::Relaxed);
            // The process exists, because it is this process, so the signal arrives.
            let _ = kill_process(getpid(), Signal::HUP);
        };
        match FileWatch::start(files, tell) {
            Ok(watch) => self.watch = Some((watch, files.to_owned())),
            Err(error) => warn(&format!(
                "SLUICE_WATCH=1: the files cannot be watched: {error}"
            )),
        }
    }
}

/// A line about a reload that has changed these resources.
fn reloaded_status(changed: &[Resource]) -> String {
    if changed.is_empty() {
        return "reloaded: nothing has changed".to_owned();
    }
    let mut parts: Vec<_> = changed.iter().map(Resource::part).collect();
    parts.dedup();
    format!("reloaded: {}", parts.join(", "))
}
