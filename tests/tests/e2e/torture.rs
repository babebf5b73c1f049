// SPDX-License-Identifier: Apache-2.0
//! Whatever the origin, the clients and the machine do, nothing wrong is served, nobody waits for ever, nothing is cut
//! that the origin has not cut, and the edge lives.

use sluice_tests::matrix::{Cell, Store};
use sluice_tests::torture::run::Plan;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a run lasts in `make test`.
const SHORT: Duration = Duration::from_secs(20);
/// Whether files of the cache are torn while the edge is down.
const TEARS: bool = false;
/// Whether the disk is filled.
const FILLS: bool = false;
/// How long a run lasts in `make soak`, unless `TORTURE_SECONDS` says otherwise.
const LONG: &str = "1200";

/// A setting of the soak, or what it is by default.
fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn number(name: &str, default: &str) -> u64 {
    let value = setting(name, default);
    value
        .parse()
        .unwrap_or_else(|_| panic!("{name}={value}: expected a number"))
}

/// Another one each time; what a run prints has it again.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    number("TORTURE_SEED", &now.as_micros().to_string())
}

fn plan(store: Store, workers: usize, lasts: Duration) -> Plan {
    Plan {
        cell: Cell { store, workers },
        lasts,
        phase: None,
        seed: seed(),
        purges: true,
        stalls: false,
        tears: TEARS,
        fills: FILLS,
        faults: true,
    }
}

#[tokio::test]
async fn nothing_wrong_is_served_from_a_disk() {
    plan(Store::V1_DISK, 2, SHORT).run().await;
}

#[tokio::test]
async fn nothing_wrong_is_served_from_memory() {
    plan(Store::V1_MEMORY, 2, SHORT).run().await;
}

#[tokio::test]
#[ignore = "long: make soak"]
async fn nothing_wrong_is_served_for_as_long_as_one_likes() {
    let medium = setting("TORTURE_CACHE", "disk");
    let version = setting("TORTURE_STORE", "v1");
    let store = Store::ALL.into_iter().find(|store| {
        (store.medium_name(), store.version_name()) == (medium.as_str(), version.as_str())
    });
    let store = store.unwrap_or_else(|| panic!("TORTURE_CACHE={medium}: expected disk or memory"));
    let workers = usize::try_from(number("TORTURE_WORKERS", "2")).unwrap();
    let lasts = Duration::from_secs(number("TORTURE_SECONDS", LONG));
    let plan = plan(store, workers, lasts);
    let on = |name| setting(name, "1") == "1";
    Plan {
        phase: on("TORTURE_KILLS").then_some(Duration::from_secs(20)),
        purges: on("TORTURE_PURGES"),
        stalls: on("TORTURE_STALLS"),
        tears: setting("TORTURE_TEARS", "0") == "1",
        fills: setting("TORTURE_FILLS", "0") == "1",
        ..plan
    }
    .run()
    .await;
}
