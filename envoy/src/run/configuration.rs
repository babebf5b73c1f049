// SPDX-License-Identifier: Apache-2.0
//! The configuration of the serving edge, and its change at SIGHUP.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Signal, getpid, kill_process};

use crate::cache::{MostVariants, Shares};
use crate::log::say;
use crate::net::admin::Admin;
use crate::origin::Origin;
use crate::reload::{FileWatch, reload};
use crate::render::{Rendered, Resource, Run, sites};
use crate::settings::Settings;

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
    /// Whether the watch has reported a change that no reload has read yet.
    pub watch_has_told: Arc<AtomicBool>,
}

impl Configuration<'_> {
    /// Reads the files that the settings name again, and changes the edge's configuration accordingly. If a file
    /// has a problem, nothing changes, and the log and a metric report it.
    pub fn reload(&mut self) {
        let by_watch = self.watch_has_told.swap(false, Ordering::Relaxed);
        let refused = match &self.try_reload() {
            Ok(changed) if changed.is_empty() => {
                if !by_watch {
                    say("reloaded: nothing has changed");
                }
                false
            }
            Ok(changed) => {
                let mut parts: Vec<_> = changed.iter().map(Resource::part).collect();
                parts.dedup();
                say(&format!("reloaded: {}", parts.join(", ")));
                false
            }
            Err(error) => {
                for line in format!("{error:#}").lines() {
                    say(&format!("reload refused, nothing has changed: {line}"));
                }
                true
            }
        };
        let text = if refused { "1" } else { "0" };
        // If this fails, the error has been logged.
        let _ = Resource::Refused.write(&self.rendered.folder, text);
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
            Err(error) => say(&format!(
                "SLUICE_WATCH=on: the files cannot be watched: {error}"
            )),
        }
    }
}
