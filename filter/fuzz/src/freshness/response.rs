// SPDX-License-Identifier: Apache-2.0
//! Fuzzes responses. A stored response has a lifetime. A directive that forbids storing is never overlooked. An error
//! that its request may have caused is not stored. A status that is not cacheable by default is not stored without a
//! directive of the origin. The text of a bucket's error is a short line in the log.
//!
//! Input: the status in two bytes, then a line for each header.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_core::bucket_error::{BucketError, ErrorHeaders};
use sluice_core::freshness::{ResponseFacts, Verdict, judge};
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_fuzz::policy;

const NOW: i64 = 1_800_000_000;
const POLICY: &str = r#"{"origin": {"kind": "http"}}"#;
/// Statuses that are stored without a directive of the origin.
const LASTING: [u16; 8] = [200, 203, 204, 300, 301, 308, 404, 410];
/// Some of the errors that a request may have caused by headers that its key lacks.
const CAUSED: [u16; 11] = [400, 401, 403, 405, 407, 413, 415, 417, 425, 429, 431];

fuzz_target!(|input: &[u8]| {
    let Some((status, text)) = input.split_first_chunk::<2>() else {
        return;
    };
    let mut lines = text
        .split(|byte| *byte == b'\n')
        .map(|line| (!line.is_empty()).then_some(FieldValue::new(line)));
    let mut line = || lines.next().flatten();
    let targeted = line().map(|value| [("cdn-cache-control", value)]);
    let facts = ResponseFacts {
        status: 100 + u16::from_le_bytes(*status) % 500,
        cache_control: line(),
        expires: line(),
        date: line(),
        last_modified: line(),
        targeted: targeted.as_ref().map_or(&[], |fields| fields.as_slice()),
        age: line(),
        vary: line(),
        has_unreadable_key: line().is_some(),
        is_stream: line().is_some(),
        has_set_cookie: line().is_some(),
        answers_cookie: line().is_some(),
        has_validator: line().is_some(),
        freshens: None,
        authenticated: false,
        content_length: line().and_then(FieldValue::number),
    };
    check_bucket_error(facts.status, text);
    let policy = policy(&[POLICY], 0);
    if let Verdict::Store(storage) = judge(policy, &policy.cache.default, &facts, NOW) {
        assert!(
            storage.lifetime.must_be_validated() || storage.age < storage.lifetime.ttl,
            "stored without a lifetime"
        );
        assert!(!facts.has_set_cookie && !facts.has_unreadable_key);
        assert!(facts.vary.is_none_or(|vary| vary.text().is_ok()));
        let said = String::from_utf8_lossy(text).to_ascii_lowercase();
        let for_all = said.contains("public") || said.contains("s-maxage");
        assert!(for_all || !facts.answers_cookie);
        assert!(
            !CAUSED.contains(&facts.status),
            "{} was stored",
            facts.status
        );
        let explicit =
            facts.cache_control.is_some() || facts.expires.is_some() || !facts.targeted.is_empty();
        assert!(
            explicit || LASTING.contains(&facts.status),
            "{} was stored",
            facts.status
        );
        // Without quotes a directive cannot be hidden. A plain directive counts in any position, unless another
        // directive or field overrides it.
        let control = facts.cache_control.map_or(&[][..], FieldValue::bytes);
        assert!(
            !facts.targeted.is_empty() || std::str::from_utf8(control).is_ok(),
            "what cannot be read was stored"
        );
        let control = String::from_utf8_lossy(control);
        let overruled = facts.targeted.len()
            + control
                .to_ascii_lowercase()
                .matches("must-understand")
                .count();
        if overruled == 0 && !control.contains('"') {
            let forbids = |directive: &str| {
                let name = directive.split('=').next().unwrap_or_default().trim();
                ["no-store", "private"]
                    .iter()
                    .any(|known| name.eq_ignore_ascii_case(known))
            };
            assert!(
                !control.split([',', ';']).any(forbids),
                "{control:?} was stored"
            );
        }
    }
});

fn check_bucket_error(status: u16, text: &[u8]) {
    let lines = text.split(|byte| *byte == b'\n');
    let mut lines = lines.map(|line| Some(FieldValue::new(line)));
    let mut line = || lines.next().flatten();
    let headers = ErrorHeaders {
        body: line(),
        code: line(),
        region: line(),
    };
    let Some(error) = BucketError::of(status, headers) else {
        return;
    };
    let Some(trouble) = error.trouble() else {
        return;
    };
    let message = error.message(trouble);
    assert!(message.len() < 400, "{message}");
    assert!(
        message.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
        "{message}"
    );
    assert!(trouble.client_status(status) >= 400);
}
