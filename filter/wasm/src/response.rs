// SPDX-License-Identifier: Apache-2.0
//! What EDGE makes of a response: news for the coalescer, and what the client should see.

use std::rc::Rc;

use proxy_wasm::types::Action;
use sluice_core::cache_status::{CacheStatus, Forward};
use sluice_core::coalescer::{LeaderResponse, Release};
use sluice_core::entry::{ENTRY_HEADER, Entry};
use sluice_core::hints::Hint;
use sluice_core::link::Purpose;
use sluice_core::metrics::Metric;
use sluice_core::policy::StoreVersion;
use sluice_core::request::PassReason;

use crate::edge::{CACHE_STATUS, answer_failure};
use crate::host::{self, Map};
use crate::origin::STORED_CACHE_CONTROL;
use crate::stream::Stream;
use crate::worker;

/// A response to a request that went around the store by its own nature.
pub fn respond_passed(reason: PassReason) -> host::Result<Action> {
    let forward = match reason {
        PassReason::Method => Forward::Method,
        PassReason::Upgrade | PassReason::Grpc | PassReason::Body => Forward::Bypass,
        PassReason::Authorization | PassReason::Cookie => Forward::Bypass,
        PassReason::Range | PassReason::Conditional => Forward::Request,
    };
    add_cache_status(&CacheStatus::forwarded(forward).detail(reason.name()))?;
    Ok(Action::Continue)
}

/// A response to a request that EDGE took for cacheable.
pub fn respond_cached(stream: &Rc<Stream>) -> host::Result<Action> {
    let Some(value) = host::header(Map::Response, ENTRY_HEADER)? else {
        return respond_without_entry(stream);
    };
    let Some(entry) = std::str::from_utf8(&value).ok().and_then(Entry::parse) else {
        return respond_without_entry(stream);
    };
    if entry.key != stream.target.cache_key() {
        return refuse_mismatch(stream);
    }
    let nonce = worker::with(|worker| worker.nonce).unwrap_or_default();
    let mine = entry.fill.nonce == nonce && entry.fill.stream == stream.id.0;
    let counted = host::header(Map::Response, "age")?.and_then(|age| seconds(&age));
    // Envoy's v2 store drops the age that a response came with.
    let brought = if mine { entry.age } else { 0 };
    let remaining = remaining(&entry, counted.unwrap_or(brought));
    report(stream, &entry, mine, remaining)?;
    restore(&entry)?;
    if counted.is_none() && brought > 0 {
        host::set_header(Map::Response, "age", &entry.age.to_string())?;
    }
    add_cache_status(&describe(stream, &entry, mine, remaining))?;
    Ok(Action::Continue)
}

/// Tells the coalescer and the counters what came.
fn report(
    stream: &Stream,
    entry: &Entry<'_>,
    mine: bool,
    remaining: Option<u64>,
) -> host::Result<()> {
    let filled = if mine && entry.stored {
        Some(filling(stream)?)
    } else {
        None
    };
    worker::with(|worker| {
        worker.metrics.count(result_metric(stream, entry, mine), 1);
        worker.turn(stream.id.0, |coalescer, turn| {
            let until = turn
                .now
                .saturating_add(remaining.unwrap_or(0).saturating_mul(1_000));
            match filled {
                Some(filling) => coalescer.response(stream.id, filling.response(until), turn),
                None if entry.stored => {
                    coalescer.hints().set(stream.key, Hint::Fresh, until);
                    coalescer.response(stream.id, LeaderResponse::Readable { until }, turn);
                }
                // ORIGIN has told that this response is nobody else's.
                None => {}
            }
        });
    });
    Ok(())
}

/// What the store makes of the response of a fill.
#[derive(Clone, Copy, Debug)]
enum Filling {
    /// Others can join it.
    Joinable,
    /// It cannot be read before its end.
    Underway,
    /// The store has let it pass.
    Passed,
}

impl Filling {
    const fn response(self, until: u64) -> LeaderResponse {
        match self {
            Self::Joinable => LeaderResponse::Joinable { until },
            Self::Underway => LeaderResponse::Filling { until },
            Self::Passed => LeaderResponse::Unshared,
        }
    }
}

/// On v2 a fill can be joined from its headers on, unless the store has just learnt that the key is
/// cacheable and has let this response pass, which only Envoy's `response.code_details` tell.
fn filling(stream: &Stream) -> host::Result<Filling> {
    if stream.policy.policy.store == StoreVersion::V1 {
        return Ok(Filling::Underway);
    }
    let details = host::property("response\0code_details")?;
    let joinable = details.is_some_and(|details| details.starts_with(b"cache."));
    Ok(if joinable {
        Filling::Joinable
    } else {
        Filling::Passed
    })
}

fn result_metric(stream: &Stream, entry: &Entry<'_>, mine: bool) -> Metric {
    match (stream.purpose.get(), mine) {
        (_, true) if entry.revalidated => Metric::RequestsRevalidated,
        (_, true) => Metric::RequestsMiss,
        (Purpose::Collapsed, false) => Metric::RequestsCollapsed,
        (_, false) => Metric::RequestsHit,
    }
}

/// Undoes what ORIGIN did to the response so that Envoy's cache would store it.
fn restore(entry: &Entry<'_>) -> host::Result<()> {
    host::remove_header(Map::Response, ENTRY_HEADER)?;
    // The cache filter's own client adds it.
    host::remove_header(Map::Response, "x-envoy-upstream-service-time")?;
    if entry.disguised {
        host::set_header(Map::Response, ":status", &entry.status.to_string())?;
    }
    match host::header(Map::Response, STORED_CACHE_CONTROL)? {
        Some(value) => {
            let value = String::from_utf8_lossy(&value);
            host::set_header(Map::Response, "cache-control", &value)?;
            host::remove_header(Map::Response, STORED_CACHE_CONTROL)?;
        }
        None => host::remove_header(Map::Response, "cache-control")?,
    }
    if entry.neutral_validators {
        host::remove_header(Map::Response, "etag")?;
    }
    Ok(())
}

fn describe(
    stream: &Stream,
    entry: &Entry<'_>,
    mine: bool,
    remaining: Option<u64>,
) -> CacheStatus<'static> {
    let ttl = i64::try_from(remaining.unwrap_or(0)).unwrap_or(i64::MAX);
    if mine && entry.revalidated {
        return CacheStatus::forwarded(Forward::Stale)
            .forward_status(304)
            .ttl(ttl);
    }
    if mine {
        let status = CacheStatus::forwarded(Forward::UriMiss).forward_status(entry.status);
        return if entry.stored {
            status.stored().ttl(ttl)
        } else {
            status
        };
    }
    if stream.released.get() == Some(Release::Collapsed) {
        return CacheStatus::forwarded(Forward::UriMiss)
            .collapsed()
            .ttl(ttl);
    }
    CacheStatus::hit().ttl(ttl)
}

/// A response that ORIGIN has not marked: it went around the store, or is Envoy's own.
fn respond_without_entry(stream: &Rc<Stream>) -> host::Result<Action> {
    let status = host::header(Map::Response, ":status")?;
    let status = status.and_then(|status| std::str::from_utf8(&status).ok()?.parse().ok());
    let status: u16 = status.unwrap_or(502);
    let bypass = stream.purpose.get() == Purpose::Bypass;
    worker::with(|worker| {
        if !bypass {
            worker.metrics.count(Metric::RequestsMiss, 1);
        }
        worker.turn(stream.id.0, |coalescer, turn| {
            let response = if status >= 400 {
                LeaderResponse::Failed { status }
            } else {
                LeaderResponse::Unshared
            };
            coalescer.response(stream.id, response, turn);
        });
    });
    let forward = if bypass {
        Forward::Bypass
    } else {
        Forward::UriMiss
    };
    let mut description = CacheStatus::forwarded(forward).forward_status(status);
    if bypass {
        description = description.detail(match stream.released.get() {
            Some(Release::WaitTimeout) => "wait-timeout",
            _ => "hit-for-miss",
        });
    }
    add_cache_status(&description)?;
    Ok(Action::Continue)
}

/// Envoy's disk store names files by a short hash, so an entry can be of another key.
fn refuse_mismatch(stream: &Stream) -> host::Result<Action> {
    worker::with(|worker| {
        worker.metrics.count(Metric::KeyMismatches, 1);
        worker.warn(|| "sluice: the store gave the response of another key".to_owned());
        worker.turn(stream.id.0, |coalescer, turn| {
            coalescer.response(stream.id, LeaderResponse::Failed { status: 503 }, turn);
        });
    });
    stream.answered.set(true);
    answer_failure(503, false)?;
    Ok(Action::Pause)
}

fn add_cache_status(status: &CacheStatus<'_>) -> host::Result<()> {
    host::add_header(Map::Response, CACHE_STATUS, &status.to_string())
}

/// Seconds for which a stored response of this entry and age is fresh; `None` if it is not stored.
pub fn remaining_seconds(entry: &[u8], age: Option<&[u8]>) -> Option<u64> {
    let entry = Entry::parse(std::str::from_utf8(entry).ok()?)?;
    remaining(&entry, age.and_then(seconds).unwrap_or(0))
}

fn remaining(entry: &Entry<'_>, age: u64) -> Option<u64> {
    entry.stored.then(|| entry.ttl.saturating_sub(age))
}

fn seconds(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
