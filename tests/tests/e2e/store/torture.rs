// SPDX-License-Identifier: Apache-2.0
//! The edge serves no wrong byte, lets no request wait without end, cuts only responses that the origin has cut, and
//! stays alive, whatever the origin, the clients and the machine do.

use sluice_tests::edge::store::Medium;
use sluice_tests::torture::run::Plan;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Duration of a run in `make test`.
const SHORT: Duration = Duration::from_secs(20);
/// Lifetime of the edge in a short run.
const SHORT_LIFE: Duration = Duration::from_secs(10);
/// Lifetime of the edge in a long run.
const LONG_LIFE: Duration = Duration::from_secs(30);

/// Returns a setting of the long run, or its default.
fn setting<T: FromStr>(name: &str, default: T) -> T {
    let Ok(value) = std::env::var(name) else {
        return default;
    };
    let expected = std::any::type_name::<T>();
    let parsed = value.parse();
    parsed.unwrap_or_else(|_| panic!("{name}={value}: expected a {expected}"))
}

/// Returns `TORTURE_SEED`, or a new seed for each run. A run prints its seed.
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

/// `TORTURE_SECONDS`, `TORTURE_WORKERS`, `TORTURE_CACHE` and `TORTURE_SEED` configure the run. `TORTURE_LIFE=0` leaves
/// the edge alive. Each of the other variables leaves out one disturbance if it is `false`. Only `TORTURE_FILLS` is
/// `false` by default: with `true`, other processes fill the disk.
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

/// Objects and their lengths change, and clients leave.
#[tokio::test]
async fn an_edge_whose_origin_does_not_fail_logs_nothing() {
    calm(SHORT).run().await;
}

#[tokio::test]
#[ignore = "long: make soak"]
async fn an_edge_whose_origin_does_not_fail_logs_nothing_for_minutes() {
    calm(Duration::from_secs(120)).run().await;
}
