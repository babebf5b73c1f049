// SPDX-License-Identifier: Apache-2.0
//! Checks of the behavior that all hosts share, to be run in callbacks of a host: values that are empty, long, or not
//! text. Each check returns the claims that do not hold.

use std::sync::Arc;
use std::time::Duration;

use sluice_core::host::HostError;
use sluice_core::metrics::{Metric, MetricKind};
use sluice_core::workers::KeyHash;

use super::{Half, Host, Level, Map, Queue, Result};

/// A value above the size of small buffers, in bytes.
const LONG: usize = 20_000;
/// Bytes that are not UTF-8.
const NO_TEXT: &[u8] = b"\xe9\x00\xff";
/// A key of shared data that nothing else uses.
const KEY: &str = "sluice.conformance";

/// Claims that do not hold.
#[derive(Debug, Default)]
pub struct Findings(Vec<&'static str>);

impl Findings {
    fn claim(&mut self, claim: &'static str, holds: bool) {
        if !holds {
            self.0.push(claim);
        }
    }

    /// Adds the findings of another check.
    pub fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// All findings in one line; `ok` if there are none.
    pub fn line(&self) -> String {
        match self.0.as_slice() {
            [] => "ok".to_owned(),
            claims => claims.join(", "),
        }
    }
}

/// Number of lines with that name in a map.
fn lines(host: &dyn Host, map: Map, name: &str) -> Option<usize> {
    let headers = host.headers(map).ok()?;
    Some(headers.iter().filter(|(known, _)| *known == name).count())
}

/// Checks all calls about a header map, and leaves the map unchanged.
pub fn check_map(host: &dyn Host, map: Map) -> Findings {
    const NAME: &str = "x-conformance-name";
    let mut found = Findings::default();
    let value = || host.header(map, NAME).ok().flatten();
    found.claim("an absent header is none", value().is_none());
    found.claim(
        "an absent header is removed",
        host.remove_header(map, NAME).is_ok(),
    );
    found.claim(
        "an absent header is set to nothing",
        host.set_header(map, NAME, "").is_ok(),
    );
    found.claim("which leaves none", lines(host, map, NAME) == Some(0));
    found.claim("nothing is added", host.add_header(map, NAME, "").is_ok());
    found.claim("which adds no line", lines(host, map, NAME) == Some(0));
    let long = vec![0xe9; LONG];
    for added in [&b"1"[..], b"", &long] {
        let done = host.add_header(map, NAME, added);
        found.claim("a value is added", done.is_ok());
    }
    let joined = [b"1", &long[..]].join(&b", "[..]);
    found.claim("lines are joined by commas", value() == Some(joined));
    found.claim("each value is a line", lines(host, map, NAME) == Some(2));
    found.claim("a value is set", host.set_header(map, NAME, "2").is_ok());
    found.claim("in the place of all", value() == Some(b"2".to_vec()));
    found.claim("as one line", lines(host, map, NAME) == Some(1));
    let done = host.set_header(map, NAME, &long);
    found.claim("a long value is set", done.is_ok());
    found.claim("which is read as it was", value() == Some(long));
    let all = host.headers(map).ok();
    let all = all.as_ref().and_then(|all| all.get(NAME));
    found.claim(
        "also among all",
        all.map(|all| all.bytes().len()) == Some(LONG),
    );
    found.claim("nothing is set", host.set_header(map, NAME, "").is_ok());
    found.claim(
        "which removes the header",
        lines(host, map, NAME) == Some(0),
    );
    found
}

/// Checks that a header with bytes that are not text is read unchanged, and that an empty header counts as missing.
pub fn check_received(host: &dyn Host, map: Map) -> Findings {
    let mut found = Findings::default();
    let read = |name| host.header(map, name).ok().flatten();
    found.claim(
        "bytes are read",
        read("x-bytes").is_none_or(|value| value == b"\xe9"),
    );
    let all = host.headers(map).ok();
    let bytes = all.as_ref().and_then(|all| all.get("x-bytes"));
    found.claim(
        "bytes are read among all",
        bytes.is_none_or(|value| value.bytes() == b"\xe9"),
    );
    found.claim("an empty header is none", read("x-empty").is_none());
    found
}

/// Checks the calls about the response's body, after its last `size` bytes have arrived. Writes the findings and a
/// space in front of these bytes.
///
/// # Errors
/// The body cannot be replaced.
pub fn check_body(host: &dyn Host, size: usize) -> Result<()> {
    let mut found = Findings::default();
    let body = host.response_body(0..size)?;
    let read = |from, to| {
        host.response_body(from..to)
            .unwrap_or_else(|_| b"?".to_vec())
    };
    found.claim("all of the body is there", body.len() == size);
    found.claim("nothing is an empty part", read(0, 0).is_empty());
    found.claim(
        "beyond the end is nothing",
        read(size, size + LONG).is_empty(),
    );
    let long = vec![b'l'; LONG];
    let mut there = size;
    for part in [&b""[..], NO_TEXT, &long, b"", &body] {
        let replaced = host.replace_response_body(there, part);
        found.claim("the body is replaced", replaced.is_ok());
        there = part.len();
        found.claim("by these bytes", read(0, there) == part);
    }
    let told = [found.line().as_bytes(), b" ", &body].concat();
    host.replace_response_body(there, &told)
}

/// Checks the calls that do not concern a message, in the callback for the headers of a request without a body.
pub fn check_request(host: &dyn Host) -> Findings {
    let mut found = Findings::default();
    check_contexts(host, &mut found);
    check_shared(host, &mut found);
    check_metrics(host, &mut found);
    let body = host.request_body(LONG);
    found.claim(
        "a body that has not come is empty",
        body.is_ok_and(|body| body.is_empty()),
    );
    let answer = host.headers(Map::CallResponse);
    let answer = answer.map_or(0, |headers| headers.iter().count());
    found.claim("no call has been answered", answer == 0);
    for cluster in ["", "no such cluster"] {
        let called = host.call(cluster, &[], None, Duration::from_secs(1));
        found.claim("nothing is called", called.is_err());
    }
    for name in ["", "no such variable"] {
        let variable = host.environment(name);
        found.claim("an absent variable is none", variable == Ok(None));
    }
    let (one, other) = (host.random::<16>(), host.random::<16>());
    found.claim("random bytes differ", one.is_ok() && one != other);
    found.claim("no random bytes", host.fill_random(&mut []).is_ok());
    let before = host.monotonic_millis();
    found.claim(
        "time passes",
        before > 0 && host.monotonic_millis() >= before,
    );
    found.claim("it is late", host.unix_millis() > 1_600_000_000_000);
    let body: Arc<[u8]> = NO_TEXT.into();
    let shared = host.share_body(KeyHash(1), Arc::clone(&body));
    found.claim("a body is shared", shared == body);
    host.log(Level::Debug, "");
    host.log(Level::Debug, &"\u{fc}".repeat(LONG));
    found
}

/// Checks the calls about contexts and attributes.
fn check_contexts(host: &dyn Host, found: &mut Findings) {
    found.claim("there is no such context", host.act_as(u32::MAX).is_err());
    let attribute = host.property("no\0such\0attribute");
    let absent = attribute.is_ok_and(|value| value.is_none_or(|value| value.is_empty()));
    found.claim("an absent attribute is none", absent);
    let long = "l".repeat(LONG);
    for (name, value) in [("empty", ""), ("bytes", "\u{fc}"), ("long", &long)] {
        let set = host.set_property(&["sluice.conformance.", name].concat(), value);
        found.claim("filter state is set", set.is_ok());
    }
}

/// Checks the calls about data and queues that workers share.
fn check_shared(host: &dyn Host, found: &mut Findings) {
    let read = || host.get(KEY).ok().flatten();
    let long = vec![0xff; LONG];
    for value in [&b""[..], NO_TEXT, &long] {
        let token = read().map(|(_, token)| token);
        let written = host.compare_and_set(KEY, value, token);
        found.claim("shared data is written", written == Ok(true));
        let value_read = read().map(|(value, _)| value);
        found.claim("and read", value_read.as_deref() == Some(value));
        let again = host.compare_and_set(KEY, b"again", token);
        found.claim("but not written twice", again == Ok(false));
    }
    let absent: Result<_> = host.get("sluice.conformance.absent");
    found.claim(
        "absent data is none",
        absent.is_ok_and(|absent| absent.is_none()),
    );
    let nowhere = Queue(u32::MAX);
    for message in [&b""[..], &long] {
        let sent = host.enqueue(nowhere, message);
        found.claim("no message goes nowhere", sent.is_err());
    }
    let message = host.dequeue(nowhere);
    found.claim(
        "no message comes from nowhere",
        !matches!(message, Ok(Some(_))),
    );
    for name in ["", "no such queue"] {
        let queue = host.resolve_queue("", name);
        found.claim("there is no such queue", queue.is_err());
    }
}

/// Checks the calls about metrics.
fn check_metrics(host: &dyn Host, found: &mut Findings) {
    let metric = host.define_metric(MetricKind::Counter, Metric::HostErrors.name());
    let counted = metric.and_then(|metric| host.increment_metric(metric, 0));
    found.claim("a metric is found", counted.is_ok());
    let nothing: [std::result::Result<(), HostError>; 2] = [
        host.increment_metric(u32::MAX, 1),
        host.record_metric(u32::MAX, 1),
    ];
    found.claim("no metric is counted", nothing.iter().all(Result::is_err));
}

/// Answers the request with the findings, in a reply that has headers and bytes of all kinds.
pub fn reply(host: &dyn Host, status: u16, found: &Findings) -> Result<()> {
    let (line, long) = (found.line(), "l".repeat(LONG));
    let headers: [(&str, &[u8]); 6] = [
        (FINDINGS, line.as_bytes()),
        ("content-type", b"text/x-conformance"),
        ("x-empty", b""),
        ("x-bytes", b"\xe9"),
        ("x-long", long.as_bytes()),
        ("x-twice", b"1"),
    ];
    let twice: (&str, &[u8]) = ("x-twice", b"2");
    let headers = headers.into_iter().chain([twice]);
    let headers = super::serialize(headers);
    host.respond_with(status, "sluice_conformance", &headers, NO_TEXT)
}

/// Name of the request header that requests checks, and of the response header with their findings.
pub const FINDINGS: &str = "x-conformance";

/// Resets a request that cannot be answered.
pub fn give_up(host: &dyn Host) {
    let _ = host.reset(Half::Request);
}
