// SPDX-License-Identifier: Apache-2.0
//! No wrong byte is served, no request waits forever, the edge cuts no response that the origin has not cut, and the
//! edge keeps running, whatever the origin, the clients and the machine do.

use sluice_tests::edge::store::Medium;
use sluice_tests::torture::plan::Plan;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Duration of a run in `make test`.
const SHORT: Duration = Duration::from_secs(20);
/// Time after which a short run kills the edge and starts it again.
const SHORT_LIFE: Duration = Duration::from_secs(10);
/// Time after which a long run kills the edge and starts it again.
const LONG_LIFE: Duration = Duration::from_secs(30);

/// Time after which a long run changes the files of the edge.
const RELOAD: Duration = Duration::from_secs(60);

/// Value of a setting of the long run, or its default.
fn setting<T: FromStr>(name: &str, default: T) -> T {
    let Ok(value) = std::env::var(name) else {
        return default;
    };
    let expected = std::any::type_name::<T>();
    let parsed = value.parse();
    parsed.unwrap_or_else(|_| panic!("{name}={value}: expected a {expected}"))
}

/// Seed of a run: a new one each time, unless `TORTURE_SEED` is set. Each run prints its seed.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    setting("TORTURE_SEED", now.as_micros().try_into().unwrap())
}

fn plan(medium: Medium) -> Plan {
    Plan {
        medium,
        workers: 2,
        lasts: SHORT,
        lives: Some(SHORT_LIFE),
        seed: seed(),
        faults: true,
        purges: true,
        stalls: true,
        tears: true,
        fills: false,
        hangs_up: true,
        dies: false,
        skews: false,
        access: false,
        reloads: None,
        feed: false,
        peers: false,
    }
}

#[tokio::test]
async fn nothing_wrong_is_served_from_a_disk() {
    plan(Medium::Disk).run().await;
}

#[tokio::test]
async fn nothing_wrong_is_served_from_memory() {
    plan(Medium::Memory).run().await;
}

#[tokio::test]
async fn nothing_wrong_is_served_while_others_fill_the_disk() {
    let plan = plan(Medium::Disk);
    Plan {
        fills: true,
        lives: None,
        ..plan
    }
    .run()
    .await;
}

#[tokio::test]
#[ignore = "long: make soak"]
async fn nothing_wrong_is_served_while_the_first_of_two_origins_dies_and_comes_back() {
    let plan = plan(Medium::Disk);
    Plan {
        dies: true,
        lives: None,
        ..plan
    }
    .run()
    .await;
}

/// The run is configured by `TORTURE_SECONDS`, `TORTURE_WORKERS`, `TORTURE_CACHE` and `TORTURE_SEED`.
/// `TORTURE_LIFE=0` never kills the edge. Each of the other variables turns off one disturbance where it is `false`.
/// `TORTURE_FILLS=true` makes other processes fill the disk. `TORTURE_DEATHS=true` adds a second origin, and has the
/// first one die. `TORTURE_SKEWS=true` has the origin's clock jump, `TORTURE_ACCESS=true` needs signatures,
/// `TORTURE_RELOAD` is the time between two changes of the edge's files in seconds, and `TORTURE_FEED=true` purges by
/// the feed too. `TORTURE_PEERS=true` makes three edges one cache. `TORTURE_ALL=true` turns all of these
/// on except `TORTURE_FILLS`.
#[tokio::test]
#[ignore = "long: make soak"]
async fn nothing_wrong_is_served_for_as_long_as_one_likes() {
    let medium: String = setting("TORTURE_CACHE", Medium::Disk.to_string());
    let medium = [Medium::Disk, Medium::Memory]
        .into_iter()
        .find(|known| known.to_string() == medium)
        .unwrap_or_else(|| panic!("TORTURE_CACHE={medium}: expected disk or memory"));
    let workers = setting("TORTURE_WORKERS", 2);
    let life = setting("TORTURE_LIFE", LONG_LIFE.as_secs());
    let all = setting("TORTURE_ALL", false);
    let reload = setting("TORTURE_RELOAD", if all { RELOAD.as_secs() } else { 0 });
    Plan {
        medium,
        workers,
        lasts: Duration::from_secs(setting("TORTURE_SECONDS", 1_200)),
        lives: (life > 0).then_some(Duration::from_secs(life)),
        seed: seed(),
        faults: setting("TORTURE_FAULTS", true),
        purges: setting("TORTURE_PURGES", true),
        stalls: setting("TORTURE_STALLS", true),
        tears: setting("TORTURE_TEARS", true),
        fills: setting("TORTURE_FILLS", false),
        hangs_up: setting("TORTURE_HANG_UPS", true),
        dies: setting("TORTURE_DEATHS", all),
        skews: setting("TORTURE_SKEWS", all),
        access: setting("TORTURE_ACCESS", all),
        reloads: (reload > 0).then_some(Duration::from_secs(reload)),
        feed: setting("TORTURE_FEED", all),
        peers: setting("TORTURE_PEERS", all),
    }
    .run()
    .await;
}

fn calm(lasts: Duration) -> Plan {
    Plan {
        lasts,
        lives: None,
        faults: false,
        purges: false,
        stalls: false,
        tears: false,
        hangs_up: false,
        ..plan(Medium::Disk)
    }
}

/// Objects change, and so do their lengths. Clients leave.
#[tokio::test]
async fn an_edge_whose_origin_does_not_fail_logs_nothing() {
    calm(SHORT).run().await;
}

#[tokio::test]
#[ignore = "long: make soak"]
async fn an_edge_whose_origin_does_not_fail_logs_nothing_for_minutes() {
    calm(Duration::from_secs(120)).run().await;
}
