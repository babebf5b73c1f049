// SPDX-License-Identifier: Apache-2.0
//! The shares of the memory, and the number of workers.

use super::*;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// The workers, the hot copies of each and the heap, the last two in MiB.
fn shares(memory: u64, cores: u32, variables: &[(&str, &str)]) -> (u32, u64, u64) {
    let settings = read_on(machine(memory, cores), variables).unwrap();
    let (hot, heap) = (settings.hot.max_bytes, settings.heap_bytes);
    (settings.concurrency, hot / MIB, heap / MIB)
}

/// A container of 1 GiB without a limit on CPU, on a large node.
#[test]
fn workers_and_their_hot_copies_follow_the_memory() {
    assert_eq!(shares(GIB, 32, &[]), (8, 16, 672));
    assert_eq!(
        shares(GIB, 32, &[("SLUICE_RUNTIME", "native")]),
        (8, 16, 768)
    );
    assert_eq!(shares(GIB, 2, &[]), (2, 32, 720));
    assert_eq!(shares(16 * GIB, 8, &[]), (8, 32, 12_096));
    assert_eq!(shares(256 * MIB, 2, &[]), (2, 16, 168));
    let memory = [
        ("SLUICE_CACHE", "memory"),
        ("SLUICE_CACHE_MAX_BYTES", "1GiB"),
    ];
    assert_eq!(shares(2 * GIB, 32, &memory), (8, 16, 672));
    // An explicit number of workers is used, and these workers share the same part of the memory.
    assert_eq!(
        shares(GIB, 32, &[("SLUICE_CONCURRENCY", "32")]),
        (32, 4, 672)
    );
    assert_eq!(
        shares(GIB, 2, &[("SLUICE_HOT_BYTES", "128MiB")]),
        (2, 128, 576)
    );
    let settings = read_on(machine(GIB, 32), &[]).unwrap();
    let told = "8 workers for 32 cores, because the memory is 1GiB: SLUICE_CONCURRENCY sets another number";
    assert_eq!(settings.notices, [told]);
    let all_cores = read_on(machine(GIB, 32), &[("SLUICE_CONCURRENCY", "32")]).unwrap();
    assert_eq!(all_cores.notices, <[String; 0]>::default());
}

#[test]
fn a_start_with_too_little_memory_is_refused_with_what_to_set() {
    for (memory, variables, expected) in [
        (
            GIB,
            &[("SLUICE_CONCURRENCY", "8"), ("SLUICE_HOT_BYTES", "256MiB")][..],
            "SLUICE_HOT_BYTES=\"256MiB\": expected at most ",
        ),
        (
            512 * MIB,
            &[("SLUICE_CONCURRENCY", "512")],
            "SLUICE_CONCURRENCY=\"512\": expected a number of workers to 144, as the memory is 512MiB",
        ),
        (
            GIB,
            &[("SLUICE_CACHE", "memory")],
            "SLUICE_CACHE_MAX_BYTES=\"1GiB\": expected at most 893MiB, as SLUICE_CACHE=memory has it of the memory, 1GiB",
        ),
        (
            64 * MIB,
            &[],
            "the memory is 64MiB: expected at least 131MiB; raise the limit of the container or the unit",
        ),
    ] {
        for runtime in ["wasm", "native"] {
            let variables = [variables, &[("SLUICE_RUNTIME", runtime)]].concat();
            let error = read_on(machine(memory, 32), &variables).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
    // The size that the message names fits; copies of VMs are not in Envoy's heap.
    for (runtime, hot) in [("wasm", "109MiB"), ("native", "81MiB")] {
        let variables = [("SLUICE_RUNTIME", runtime), ("SLUICE_CONCURRENCY", "8")];
        let too_much = [&variables[..], &[("SLUICE_HOT_BYTES", "256MiB")]].concat();
        let error = read_on(machine(GIB, 32), &too_much).unwrap_err();
        let expected =
            format!("expected at most {hot} for each of 8 workers, as the memory is 1GiB");
        assert!(error.to_string().ends_with(&expected), "{error}");
        let fits = [&variables[..], &[("SLUICE_HOT_BYTES", hot)]].concat();
        read_on(machine(GIB, 32), &fits).unwrap();
    }
    read_on(machine(512 * MIB, 32), &[("SLUICE_CONCURRENCY", "144")]).unwrap();
    read_on(machine(131 * MIB, 32), &[]).unwrap();
}
