// SPDX-License-Identifier: Apache-2.0
//! Changes the configuration of a serving edge, or leaves it unchanged.
//!
//! Envoy reads a file again when another file is renamed to its place, and accepts the whole file or none of it.
//! `verdict` waits until Envoy has accepted or refused a file.

mod verdict;
mod watch;

use anyhow::{Context as _, bail, ensure};

pub use watch::FileWatch;

use crate::net::admin::Admin;
use crate::render::{Rendered, Resource};
use verdict::Verdict;

/// The reason why a change needs a restart of Envoy.
const NEEDS_RESTART: &str =
    "a restart is needed: the first or last token for purges adds or removes a listener";

/// Puts the files that differ between `old` and `new` in place, one resource after the other, so that no resource
/// names another one that Envoy does not know yet. Returns the changed resources.
///
/// Requests under way keep their servers: the `new` configuration still has the servers of removed sites.
///
/// # Errors
/// Envoy has refused a resource, or not answered in time. The old configuration is restored then.
pub fn reload(old: &Rendered, new: &Rendered, admin: &Admin) -> anyhow::Result<Vec<Resource>> {
    let text = |rendered: &'_ Rendered, resource| rendered.files.get(resource).cloned();
    let changed = new.files.iter();
    let changed = changed.filter(|(resource, text)| old.files.get(*resource) != Some(*text));
    let changed: Vec<_> = changed.map(|(resource, _)| resource.clone()).collect();
    ensure!(!changed.contains(&Resource::Bootstrap), NEEDS_RESTART);
    for (index, resource) in changed.iter().enumerate() {
        let put = put(new, resource, text(new, resource), admin);
        if let Err(error) = put {
            let done = changed.iter().take(index + 1).rev();
            let mut failures = Vec::new();
            for resource in done {
                // NB: each resource is put back, even if another one fails.
                let restored = self::put(old, resource, text(old, resource), admin);
                failures.extend(restored.err());
            }
            return match failures.pop() {
                None => Err(error),
                Some(failed) => Err(error.context(format!(
                    "the former configuration is only partly restored ({failed:#})"
                ))),
            };
        }
    }
    remove_unused(old, new);
    Ok(changed)
}

/// Puts one resource in place, and waits until Envoy has accepted it. Without a text the resource is removed.
fn put(
    rendered: &Rendered,
    resource: &Resource,
    text: Option<String>,
    admin: &Admin,
) -> anyhow::Result<()> {
    let path = resource.path(&rendered.folder);
    let Some(text) = text else {
        // No other resource names this one any more.
        return std::fs::remove_file(&path).with_context(|| path.display().to_string());
    };
    let verdict = Verdict::before(resource, admin)?;
    let written = resource.write(&rendered.folder, &text);
    written.with_context(|| path.display().to_string())?;
    verdict.wait()
}

/// Removes the files that Envoy does not need any more.
fn remove_unused(old: &Rendered, new: &Rendered) {
    for resource in old.files.keys() {
        if !new.files.contains_key(resource) {
            // If this fails, an unused file remains.
            let _ = std::fs::remove_file(resource.path(&old.folder));
        }
    }
}

/// Checks that a newly started Envoy has accepted all of its configuration.
///
/// # Errors
/// Envoy has refused a resource.
pub fn check_start(rendered: &Rendered, admin: &Admin) -> anyhow::Result<()> {
    for resource in rendered.files.keys() {
        if verdict::is_refused(resource, admin)? {
            bail!(
                "Envoy has refused {}; its reason is above",
                rendered.describe(resource)
            );
        }
    }
    Ok(())
}
