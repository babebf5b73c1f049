// SPDX-License-Identifier: Apache-2.0
//! Changes the configuration of an edge that serves, or leaves all as it was.
//!
//! Envoy reads a file again when another one is renamed to its place, and takes all of it or nothing. `verdict` waits for
//! what Envoy makes of a file.

mod verdict;
mod watch;

use anyhow::{Context as _, bail, ensure};

pub use watch::FileWatch;

use crate::net::admin::Admin;
use crate::render::{Rendered, Resource};
use verdict::Verdict;

/// What Envoy would have to be started again for.
const NEEDS_RESTART: &str =
    "a restart is needed: the first or last token for purges makes or ends the listener for purges";

/// Changes what differs between the configuration that Envoy has and `new`, one resource after the other, so that none
/// names what Envoy does not know. Returns the resources that have changed.
///
/// Nothing that a request may be on its way to is removed: the `new` configuration still has the servers of sites that
/// are gone.
///
/// # Errors
/// Envoy has refused a resource, or not answered in time. All is as it was then.
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
                // NB: each is put back, whatever becomes of the others.
                let restored = self::put(old, resource, text(old, resource), admin);
                failures.extend(restored.err());
            }
            return match failures.pop() {
                None => Err(error),
                Some(failed) => Err(error.context(format!("not all is as it was ({failed:#})"))),
            };
        }
    }
    remove_unused(old, new);
    Ok(changed)
}

/// Puts one resource in place, and waits until Envoy has taken it. Without a text there was none.
fn put(
    rendered: &Rendered,
    resource: &Resource,
    text: Option<String>,
    admin: &Admin,
) -> anyhow::Result<()> {
    let path = resource.path(&rendered.folder);
    let Some(text) = text else {
        // Nothing names it any more.
        return std::fs::remove_file(&path).with_context(|| path.display().to_string());
    };
    let verdict = Verdict::before(resource, admin)?;
    let written = resource.write(&rendered.folder, &text);
    written.with_context(|| path.display().to_string())?;
    verdict.wait()
}

/// Removes the files that Envoy has no use for any more.
fn remove_unused(old: &Rendered, new: &Rendered) {
    for resource in old.files.keys() {
        if !new.files.contains_key(resource) {
            // Where this fails, a file stays that nobody reads.
            let _ = std::fs::remove_file(resource.path(&old.folder));
        }
    }
}

/// Checks that an Envoy which has just started has taken all of its configuration.
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
