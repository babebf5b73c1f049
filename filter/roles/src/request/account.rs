// SPDX-License-Identifier: Apache-2.0
//! Facts about a request for the access log and traces, as Envoy's filter state: `wasm.sluice.result` and others.

use std::cell::{Cell, RefCell};

use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_core::workers::KeyHash;

use sluice_host::{self as host, Host};

/// The result of a request that was answered with an error.
pub const FAILED: &str = "failed";
/// The result of a request that went to the origin by itself, as its leader made no progress.
pub const WAIT_TIMEOUT: &str = "wait_timeout";
/// The result of an `only-if-cached` request that the store could not satisfy.
pub const NOT_STORED: &str = "not_stored";

/// The facts about one request so far.
#[derive(Debug, Default)]
pub struct Account {
    result: Cell<Option<&'static str>>,
    led: Cell<bool>,
    /// Since when it waits.
    parked: Cell<Option<u64>>,
    waited_millis: Cell<Option<u64>>,
    /// When the origin was asked last.
    asked: Cell<u64>,
    origin_millis: Cell<Option<u64>>,
    attempts: Cell<u32>,
    bucket_error: RefCell<Option<Box<str>>>,
    uncacheable: Cell<Option<UncacheableReason>>,
    told: Cell<bool>,
}

/// The last part of the name of the metric that counts such requests.
pub fn result_of(metric: Metric) -> &'static str {
    let name = metric.name();
    name.strip_prefix("sluice_requests_").unwrap_or(name)
}

impl Account {
    /// It has come to this.
    pub fn results_in(&self, result: &'static str) {
        self.result.set(Some(result));
    }

    /// The same, if it has not come to anything yet.
    pub fn results_at_least_in(&self, result: &'static str) {
        self.result.set(self.result.get().or(Some(result)));
    }

    /// It fetches for others.
    pub fn leads(&self) {
        self.led.set(true);
    }

    /// It begins to wait.
    pub fn parks(&self, now: u64) {
        self.parked.set(Some(now));
    }

    /// It has waited so long.
    pub fn has_waited(&self, millis: u64) {
        self.parked.set(None);
        let before = self.waited_millis.get().unwrap_or(0);
        self.waited_millis.set(Some(before.saturating_add(millis)));
    }

    /// The origin is asked because of it.
    pub fn asks(&self, now: u64) {
        self.asked.set(now);
        self.attempts.set(self.attempts.get().saturating_add(1));
    }

    /// The origin has begun to answer.
    pub fn is_answered(&self, now: u64) {
        self.origin_millis
            .set(Some(now.saturating_sub(self.asked.get())));
    }

    /// The bucket has answered with an error that has this code.
    pub fn meets_bucket_error(&self, code: &str) {
        *self.bucket_error.borrow_mut() = Some(code.into());
    }

    /// Its response is not stored, for this reason.
    pub fn is_not_stored(&self, reason: UncacheableReason) {
        self.uncacheable.set(Some(reason));
    }

    /// The reason for which its response is not stored, if it is not.
    pub fn uncacheable(&self) -> Option<UncacheableReason> {
        self.uncacheable.get()
    }

    /// Tells Envoy, once: what is not so is not told. A hit is told by its result and its key.
    pub fn tell(&self, host: &dyn Host, key: KeyHash) -> host::Result<()> {
        if self.told.replace(true) {
            return Ok(());
        }
        if let Some(since) = self.parked.get() {
            self.has_waited(host.monotonic_millis().saturating_sub(since));
        }
        if let Some(result) = self.result.get() {
            tell_result(host, result)?;
        }
        tell_key(host, key)?;
        let waited = self.waited_millis.get();
        if self.led.get() {
            host.set_property("sluice.role", "leader")?;
        } else if waited.is_some() {
            host.set_property("sluice.role", "follower")?;
        }
        if let Some(millis) = waited {
            host.set_property("sluice.wait_ms", &millis.to_string())?;
        }
        if let Some(millis) = self.origin_millis.get() {
            host.set_property("sluice.origin_ms", &millis.to_string())?;
        }
        if let Some(code) = &*self.bucket_error.borrow() {
            host.set_property("sluice.bucket_error", code)?;
        }
        if let Some(reason) = self.uncacheable.get() {
            host.set_property("sluice.uncacheable", reason.name())?;
        }
        match self.attempts.get() {
            0 => Ok(()),
            attempts => host.set_property("sluice.attempts", &attempts.to_string()),
        }
    }
}

/// Tells Envoy the site that a request is for, and the host that its client has named: the store is asked with another.
pub fn tell_site(host: &dyn Host, site: &str, authority: &str) -> host::Result<()> {
    host.set_property("sluice.site", site)?;
    host.set_property("sluice.host", authority)
}

/// Tells Envoy of a hit that nothing else is to be said of.
pub fn tell_hit(host: &dyn Host, key: KeyHash) -> host::Result<()> {
    tell_result(host, result_of(Metric::RequestsHit))?;
    tell_key(host, key)
}

fn tell_key(host: &dyn Host, key: KeyHash) -> host::Result<()> {
    host.set_property("sluice.key", &format!("{:016x}", key.0))
}

/// Tells Envoy what the effective context's request has come to.
pub fn tell_result(host: &dyn Host, result: &'static str) -> host::Result<()> {
    host.set_property("sluice.result", result)
}
