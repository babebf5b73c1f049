// SPDX-License-Identifier: Apache-2.0
//! The text of an explanation: one fact on each line, behind its name.

use std::fmt::Write as _;
use std::time::SystemTime;

use super::table::printable;
use super::units::{bytes, duration, site_name};
use crate::cache::{StoredResponse, StoredSlices};
use crate::control::answers::{
    AdmissionDecision, CoveringPurges, Explanation, HotCopy, Lesson, OnlineAnswer,
    WorkerExplanation,
};
use crate::metrics::epoch_millis;

/// The text of an explanation.
pub fn text(explanation: &Explanation) -> String {
    text_at(explanation, epoch_millis(SystemTime::now()))
}

fn text_at(explanation: &Explanation, now_ms: u64) -> String {
    let mut facts = Facts::default();
    let decision = &explanation.shared.decision;
    facts.add_decision(decision);
    let found = explanation.stored.as_ref();
    let stored = found.map_or(&[][..], |found| &found.stored);
    let slices = found.map_or_else(Default::default, |found| found.slices);
    let purges = CoveringPurges::of_all(explanation.workers.values());
    for response in stored {
        facts.add("stored", stored_text(response, &purges, now_ms));
    }
    if slices.count > 0 {
        facts.add("slices", slices_text(slices));
    }
    if stored.is_empty() && slices.count == 0 && found.is_some() {
        facts.add("stored", "nothing");
    }
    for (worker, known) in &explanation.workers {
        facts.add_worker(*worker, known);
    }
    facts.add_purges(&purges);
    if let Some(online) = &explanation.shared.online {
        facts.add_online(online);
    }
    facts.add("next", explanation.next.text());
    facts.0
}

/// The lines of the text.
#[derive(Default)]
struct Facts(String);

impl Facts {
    fn add(&mut self, name: &str, fact: impl AsRef<str>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{name:<9} {}", printable(fact.as_ref()));
    }

    fn add_decision(&mut self, decision: &AdmissionDecision) {
        self.add(
            "site",
            site_name(decision.site.as_deref().unwrap_or_default()),
        );
        for (name, fact) in [
            ("rule", &decision.policy_rule),
            ("key", &decision.key),
            ("origin", &decision.bucket_path),
        ] {
            if let Some(fact) = fact {
                self.add(name, fact);
            }
        }
        let status = decision.status.map(|status| format!(" with {status}"));
        let reason = decision.reason.as_ref().map(|reason| format!(": {reason}"));
        let (status, reason) = (status.unwrap_or_default(), reason.unwrap_or_default());
        self.add("request", format!("{}{status}{reason}", decision.admission));
    }

    fn add_worker(&mut self, worker: u32, known: &WorkerExplanation) {
        if let Some(copy) = &known.hot {
            self.add("hot", format!("worker {worker}: {}", hot_text(copy)));
        }
        if let Some(lesson) = &known.learnt {
            self.add(
                "learnt",
                format!("worker {worker}: {}", lesson_text(lesson)),
            );
        }
        if let Some(flight) = &known.flight {
            let since = duration(flight.since_ms);
            let fact = format!(
                "worker {worker}: for {since}, {} requests wait",
                flight.waiting
            );
            self.add("flight", fact);
        }
    }

    fn add_purges(&mut self, purges: &CoveringPurges) {
        let known = [
            ("hard purge", purges.hard),
            ("soft purge", purges.soft),
            ("change by a request", purges.changed),
        ];
        let known = known
            .into_iter()
            .filter_map(|(kind, number)| number.map(|number| format!("{kind} {number}")));
        match known.collect::<Vec<_>>().as_slice() {
            [] => {}
            known => self.add("purges", known.join(", ")),
        }
    }

    fn add_online(&mut self, online: &OnlineAnswer) {
        if let Some(error) = &online.error {
            self.add("online", error);
            if online.status.is_none() {
                return;
            }
        }
        let status = online
            .status
            .map_or("-".to_owned(), |status| status.to_string());
        let verdict = online.verdict.as_deref().unwrap_or_default();
        let ttl = online.ttl_ms.map(|ttl| format!(" for {}", duration(ttl)));
        let reasons = match online.reasons.as_slice() {
            [] => String::new(),
            reasons => format!(": {}", reasons.join("; ")),
        };
        let ttl = ttl.unwrap_or_default();
        self.add("online", format!("{status}, {verdict}{ttl}{reasons}"));
        if let Some(remedy) = &online.remedy {
            self.add("to change", remedy);
        }
        for (name, value) in &online.headers {
            self.add("", format!("{name}: {value}"));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounded to one decimal")]
fn stored_text(response: &StoredResponse, purges: &CoveringPurges, now_ms: u64) -> String {
    let status = response.status.map(|status| status.to_string());
    let mut facts: Vec<_> = status.into_iter().collect();
    facts.push(bytes(response.body_bytes as f64));
    facts.extend(response.content_type.clone());
    facts.extend(response.etag.as_ref().map(|etag| format!("ETag {etag}")));
    if let Some(at) = response.stored_at_ms {
        facts.push(format!(
            "stored {} ago",
            duration(now_ms.saturating_sub(at))
        ));
    }
    facts.push(match response.fresh_until_ms {
        _ if purges.covers(response) => "purged".to_owned(),
        _ if purges.must_revalidate(response) => "validated at the next use".to_owned(),
        Some(until) if until > now_ms => format!("fresh for {}", duration(until - now_ms)),
        Some(until) => format!("stale for {}", duration(now_ms.saturating_sub(until))),
        None => "validated at each use".to_owned(),
    });
    if response.for_head {
        facts.push("for HEAD only".to_owned());
    }
    if !response.surrogate_keys.is_empty() {
        facts.push(format!(
            "surrogate keys {}",
            response.surrogate_keys.join(" ")
        ));
    }
    match response.variant.as_str() {
        "" => facts.join(", "),
        variant => format!("{variant}: {}", facts.join(", ")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounded to one decimal")]
fn slices_text(slices: StoredSlices) -> String {
    let size = bytes(slices.body_bytes as f64);
    format!("{} stored, {size}", slices.count)
}

#[expect(clippy::cast_precision_loss, reason = "rounded to one decimal")]
fn hot_text(copy: &HotCopy) -> String {
    let facts = [
        copy.bytes.map(|size| bytes(size as f64)),
        copy.stored_ms_ago
            .map(|ago| format!("stored {} ago", duration(ago))),
        copy.fresh_ms_left
            .map(|left| format!("fresh for {}", duration(left))),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn lesson_text(lesson: &Lesson) -> String {
    let reason = lesson.reason.as_ref().map(|reason| format!(": {reason}"));
    let left = lesson
        .left_ms
        .map(|left| format!(", for {} more", duration(left)));
    format!(
        "{}{}{}",
        lesson.kind.replace('_', "-"),
        reason.unwrap_or_default(),
        left.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn lines(explanation: Value) -> Vec<String> {
        let explanation = serde_json::from_value(explanation).unwrap();
        text_at(&explanation, 100_000)
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn stored(fresh_until_ms: u64) -> Value {
        json!({
            "site": "assets", "host": "a.example", "path": "/app.css", "variant": "ae=br", "for_head": false,
            "status": 200, "bytes": 15000, "body_bytes": 14336, "stored_at_ms": 40000, "used_at_ms": 90000,
            "fresh_until_ms": fresh_until_ms, "served_until_ms": null, "purge": 3, "etag": "\"9a\"",
            "content_type": "text/css", "surrogate_keys": ["app", "home"],
        })
    }

    #[test]
    fn a_stored_response_has_its_variant_its_age_and_its_keys() {
        let explanation = |until: u64| {
            json!({
                "decision": {"site": "assets", "policy_rule": "*.css", "admission": "cached",
                    "key": "assets!a.example/app.css", "store_key": "assets!a.example/app.css",
                    "bucket_path": "/site/app.css"},
                "stored": {"stored": [stored(until)], "cut": false},
                "workers": {"0": {"purges": {"soft": 3}}}, "next": "hit", "silent": [],
            })
        };
        let expected = [
            "site      assets",
            "rule      *.css",
            "key       assets!a.example/app.css",
            "origin    /site/app.css",
            "request   cached",
            "stored    ae=br: 200, 14.0 KiB, text/css, ETag \"9a\", stored 1m00s ago, fresh for 20.00 s, surrogate \
             keys app home",
            "purges    soft purge 3",
            "next      a hit, if a stored variant fits its headers",
        ];
        assert_eq!(lines(explanation(120_000)), expected);
        let stale = lines(explanation(70_000));
        assert!(stale[5].contains("stale for 30.00 s"), "{stale:?}");
    }

    #[test]
    fn slices_are_one_line() {
        let found = lines(json!({
            "decision": {"site": null, "admission": "cached", "key": "k", "store_key": "k"},
            "stored": {"stored": [], "slices": {"count": 24, "body_bytes": 25_165_824}, "cut": false},
            "workers": {}, "next": "slices", "silent": [],
        }));
        let expected = [
            "slices    24 stored, 24.0 MiB",
            "next      in slices: a hit for each slice that is stored",
        ];
        assert_eq!(found[3..], expected, "{found:?}");
    }

    #[test]
    fn a_response_that_is_not_stored_has_its_reasons() {
        let found = lines(json!({
            "decision": {"site": "shop", "admission": "cached", "key": "k", "store_key": "k"},
            "online": {"status": 200, "verdict": "not stored", "reasons": ["set-cookie", "private"],
                "remedy": "Send no cookie.", "headers": {"cache-control": "private"}},
            "stored": {"stored": [], "cut": false},
            "workers": {"1": {"learnt": {"kind": "hit_for_miss", "reason": "set-cookie", "left_ms": 72000}}},
            "next": "hit_for_miss", "silent": [],
        }));
        let expected = [
            "site      shop",
            "key       k",
            "request   cached",
            "stored    nothing",
            "learnt    worker 1: hit-for-miss: set-cookie, for 1m12s more",
            "online    200, not stored: set-cookie; private",
            "to change Send no cookie.",
            "          cache-control: private",
            "next      to the origin, around the cache and without waiting (hit-for-miss)",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_refused_request_has_its_status_and_its_reason() {
        let found = lines(json!({
            "decision": {"site": null, "admission": "refused", "status": 400, "reason": "a path with .."},
            "workers": {}, "next": "refused", "silent": [],
        }));
        let expected = [
            "site      -",
            "request   refused with 400: a path with ..",
            "next      refused",
        ];
        assert_eq!(found, expected);
    }
}
