// SPDX-License-Identifier: Apache-2.0
//! Fuzzes conditions and ranges against any validators. The delivered part is the requested one, and a request
//! without a condition never gets a 304.
//!
//! Input: the body's length and the sizes of its pieces, then a line for each field.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_core::http::conditional::conditions::Validators;
use sluice_core::http::conditional::demand::{Delivery, Demand, WholeResponse};
use sluice_core::http::conditional::range::{Part, Slice, Slicer};

fuzz_target!(|input: &[u8]| {
    let Some(([length, piece], text)) = input.split_first_chunk::<2>() else {
        return;
    };
    let mut lines = text
        .split(|byte| *byte == b'\n')
        .map(|line| (!line.is_empty()).then_some(line));
    let mut line = || lines.next().flatten();
    let mut demand = Demand::default();
    let names = [
        "range",
        "if-range",
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "range",
    ];
    for name in names {
        if let Some(value) = line() {
            demand.observe(name, value);
        }
    }
    let mut stored = || line().and_then(|value| std::str::from_utf8(value).ok());
    let candidate = WholeResponse {
        status: 200,
        validators: Validators {
            etag: stored(),
            last_modified: stored(),
            date: stored(),
        },
        length: Some(u64::from(*length)),
    };
    check(&demand, &candidate, usize::from(*piece));
});

fn check(demand: &Demand, candidate: &WholeResponse<'_>, piece: usize) {
    let asked = |wanted: &[&str]| demand.fields().any(|(name, _)| wanted.contains(&name));
    match demand.delivery(candidate, false) {
        Delivery::Whole => {}
        Delivery::Part { slice, length } => {
            assert!(asked(&["range"]));
            assert_eq!(Some(length), candidate.length);
            check_slice(slice, length, piece.max(1));
        }
        Delivery::Unsatisfiable { .. } => assert!(asked(&["range"])),
        Delivery::NotModified => assert!(asked(&["if-none-match", "if-modified-since"])),
        Delivery::PreconditionFailed => {
            assert!(asked(&["if-match", "if-unmodified-since", "if-none-match"]));
        }
    }
    assert!(!matches!(
        demand.delivery(candidate, true),
        Delivery::Part { .. } | Delivery::Unsatisfiable { .. }
    ));
}

/// Checks that a body in pieces is cut to exactly the announced bytes.
fn check_slice(slice: Slice, length: u64, piece: usize) {
    let body: Vec<u64> = (0..length).collect();
    let mut slicer = Slicer::new(Part::Slice(slice));
    let kept: Vec<u64> = body
        .chunks(piece)
        .flat_map(|part| part.get(slicer.keep(part.len())).unwrap_or_default())
        .copied()
        .collect();
    assert_eq!(kept.len() as u64, slice.length());
    let announced = match (kept.first(), kept.last()) {
        (Some(first), Some(last)) => format!("bytes {first}-{last}/{length}"),
        _ => String::new(),
    };
    assert_eq!(slice.content_range(length), announced);
}
