// SPDX-License-Identifier: Apache-2.0
//! Facts about a request for the access log and traces, as Envoy's filter state: `wasm.sluice.result` and others.

use std::cell::{Cell, RefCell};

use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_core::workers::KeyHash;

use sluice_host::{self as host, Host};

/// The result of a request that was answered with an error.
pub const FAILED: &str = "failed";
/// The result of a request that was sent to the origin alone because its leader made no progress.
pub const WAIT_TIMEOUT: &str = "wait_timeout";
/// The result of an `only-if-cached` request that the store could not satisfy.
pub const NOT_STORED: &str = "not_stored";

/// The facts about one request so far.
#[derive(Debug, Default)]
pub struct Account {
    result: Cell<Option<&'static str>>,
    led: Cell<bool>,
    /// The time at which the current wait began.
    parked: Cell<Option<u64>>,
    waited_millis: Cell<Option<u64>>,
    /// The time of the last request to the origin.
    asked: Cell<u64>,
    origin_millis: Cell<Option<u64>>,
    attempts: Cell<u32>,
    bucket_error: RefCell<Option<Box<str>>>,
    bucket_request_id: RefCell<Option<Box<str>>>,
    uncacheable: Cell<Option<UncacheableReason>>,
    told: Cell<bool>,
}

/// The result that the metric of such requests counts: the last part of its name.
pub fn result_of(metric: Metric) -> &'static str {
    let name = metric.name();
    name.strip_prefix("sluice_requests_").unwrap_or(name)
}

impl Account {
    /// Sets the result.
    pub fn results_in(&self, result: &'static str) {
        self.result.set(Some(result));
    }

    /// Sets the result unless it is set already.
    pub fn results_at_least_in(&self, result: &'static str) {
        self.result.set(self.result.get().or(Some(result)));
    }

    /// The result, if it is known.
    pub fn result(&self) -> Option<&'static str> {
        self.result.get()
    }

    /// The time in milliseconds that the request has waited, with a wait that goes on. `None` if it has not waited.
    pub fn waited(&self, now: u64) -> Option<u64> {
        let current = self.parked.get().map(|since| now.saturating_sub(since));
        match (self.waited_millis.get(), current) {
            (None, None) => None,
            (before, current) => Some(before.unwrap_or(0).saturating_add(current.unwrap_or(0))),
        }
    }

    /// The time in milliseconds from the last request to the origin to the start of its response.
    pub fn origin_millis(&self) -> Option<u64> {
        self.origin_millis.get()
    }

    /// Records that the request fetches for others.
    pub fn leads(&self) {
        self.led.set(true);
    }

    /// Records that the request begins to wait.
    pub fn parks(&self, now: u64) {
        self.parked.set(Some(now));
    }

    /// Adds to the time that the request has waited.
    pub fn has_waited(&self, millis: u64) {
        self.parked.set(None);
        let before = self.waited_millis.get().unwrap_or(0);
        self.waited_millis.set(Some(before.saturating_add(millis)));
    }

    /// Records that the request waits no longer.
    pub fn stops_waiting(&self, now: u64) {
        if let Some(since) = self.parked.get() {
            self.has_waited(now.saturating_sub(since));
        }
    }

    /// Records a request to the origin.
    pub fn asks(&self, now: u64) {
        self.asked.set(now);
        self.attempts.set(self.attempts.get().saturating_add(1));
    }

    /// Records the start of the origin's answer.
    pub fn is_answered(&self, now: u64) {
        self.origin_millis
            .set(Some(now.saturating_sub(self.asked.get())));
    }

    /// The histogram for the time to the first byte of the response. `None`: the edge itself has made the response.
    pub fn first_byte_metric(&self) -> Option<Metric> {
        if self.attempts.get() > 0 {
            Some(Metric::FirstByteMiss)
        } else if self.waited_millis.get().is_some() {
            Some(Metric::FirstByteCollapsed)
        } else {
            let result = self.result.get()?;
            (result != NOT_STORED).then_some(Metric::FirstByteHit)
        }
    }

    /// Records the code of the bucket's error.
    pub fn meets_bucket_error(&self, code: &str) {
        *self.bucket_error.borrow_mut() = Some(code.into());
    }

    /// Records the bucket's name for the last request to it.
    pub fn learns_bucket_request_id(&self, id: &str) {
        *self.bucket_request_id.borrow_mut() = Some(id.into());
    }

    /// Records the reason for which the response is not stored.
    pub fn is_not_stored(&self, reason: UncacheableReason) {
        self.uncacheable.set(Some(reason));
    }

    /// The reason for which the response is not stored, if it is not.
    pub fn uncacheable(&self) -> Option<UncacheableReason> {
        self.uncacheable.get()
    }

    /// Writes the facts that are set into Envoy's filter state, once per request. A hit has only its result and its
    /// key.
    pub fn tell(&self, host: &dyn Host, key: KeyHash) -> host::Result<()> {
        if self.told.replace(true) {
            return Ok(());
        }
        if self.parked.get().is_some() {
            self.stops_waiting(host.monotonic_millis());
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
        if let Some(id) = &*self.bucket_request_id.borrow() {
            host.set_property("sluice.bucket_request_id", id)?;
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

/// Writes the site and the host that the client has named into the filter state, because the store is asked with
/// another host.
pub fn tell_site(host: &dyn Host, site: &str, authority: &str) -> host::Result<()> {
    host.set_property("sluice.site", site)?;
    host.set_property("sluice.host", authority)
}

/// Writes the facts about a hit without further properties into the filter state.
pub fn tell_hit(host: &dyn Host, key: KeyHash) -> host::Result<()> {
    tell_result(host, result_of(Metric::RequestsHit))?;
    tell_key(host, key)
}

fn tell_key(host: &dyn Host, key: KeyHash) -> host::Result<()> {
    host.set_property("sluice.key", &format!("{:016x}", key.0))
}

/// Writes the number of slices of a response that have begun, and the number of slices that came from the origin for
/// it, into the filter state.
pub fn tell_slices(host: &dyn Host, begun: u64, led: u64) -> host::Result<()> {
    host.set_property("sluice.slices", &format!("{begun}/{led}"))
}

/// Writes the reason for which a client may not read the site into the filter state.
pub fn tell_access(host: &dyn Host, refusal: &'static str) -> host::Result<()> {
    host.set_property("sluice.access", refusal)
}

/// Writes the name of the key whose signature the request has into the filter state.
pub fn tell_signing_key(host: &dyn Host, key: &str) -> host::Result<()> {
    host.set_property("sluice.signing_key", key)
}

/// Writes the result of the effective context's request into the filter state.
pub fn tell_result(host: &dyn Host, result: &'static str) -> host::Result<()> {
    host.set_property("sluice.result", result)
}

/// Tells the name of the user whose password or token has admitted the request.
pub fn tell_access_user(host: &dyn Host, user: &str) -> host::Result<()> {
    host.set_property("sluice.access_user", user)
}
