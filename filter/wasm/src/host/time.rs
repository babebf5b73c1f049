// SPDX-License-Identifier: Apache-2.0
//! Clocks, the timer, and random numbers.

use super::imports::{clock_time_get, proxy_set_tick_period_milliseconds, random_get};
use super::{Result, check};

/// Sets the period of the effective root context's timer; zero stops it.
pub fn set_tick_period(milliseconds: u32) -> Result<()> {
    check(unsafe { proxy_set_tick_period_milliseconds(milliseconds) })
}

/// Random bytes.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    check(unsafe { random_get(bytes.as_mut_ptr(), N) })?;
    Ok(bytes)
}

fn clock(id: u32) -> u64 {
    let mut nanoseconds = 0;
    // SAFETY: the out-pointer is valid. Envoy has both clocks; without them time would stand still,
    // and nothing would be believed fresh for longer than one event.
    let _ = unsafe { clock_time_get(id, 1, &raw mut nanoseconds) };
    nanoseconds
}

/// Monotonic milliseconds, the same for all workers of the process.
pub fn monotonic_millis() -> u64 {
    const MONOTONIC: u32 = 1;
    clock(MONOTONIC) / 1_000_000
}

/// Milliseconds since the Unix epoch.
pub fn unix_millis() -> u64 {
    const REALTIME: u32 = 0;
    clock(REALTIME) / 1_000_000
}

/// Seconds since the Unix epoch.
pub fn unix_seconds() -> i64 {
    i64::try_from(unix_millis() / 1_000).unwrap_or(i64::MAX)
}
