// SPDX-License-Identifier: Apache-2.0
//! How much a server carries: how many hits a second it answers when asked as fast as it goes, and with which rate it
//! keeps up when requests come whether it has answered or not.

use crate::contenders::cache::{Cache, Kind};
use crate::figures::conclusions::{Conclusions, Ratio};
use crate::figures::sample::Sample;
use crate::load::h2load::{self, Ask, Pace, Paced};
use crate::machine::spent::{Spent, Watch};
use serde_json::{Value, json};
use std::time::Duration;

/// With which it is asked as fast as it goes.
const CONNECTIONS: u32 = 32;
/// Who keeps up sends this part of what is due.
const SENT: f64 = 0.99;
/// And answers all but one of a hundred within so many milliseconds.
pub const P99_MS: f64 = 20.0;

/// What is found of a server.
pub struct Capacity {
    /// Which one.
    pub kind: Kind,
    /// In cleartext, as fast as it goes, by round.
    plain: Vec<Saturated>,
    /// Over TLS.
    tls: Vec<Saturated>,
    /// The rates that were tried, and whether it kept up; the last one may be that with which it did not.
    tried: Vec<(u32, bool)>,
}

/// A round of hits, asked as fast as it goes.
#[derive(Clone, Copy)]
struct Saturated {
    per_second: f64,
    spent: Spent,
}

/// The columns of a table of these.
pub const COLUMNS: [&str; 9] = [
    "as fast as it goes",
    "a second, plain",
    "TLS",
    "us CPU, plain",
    "TLS",
    "us h2load, plain",
    "TLS",
    "cores, TLS",
    "sustained, TLS",
];

/// So many hundreds that it is that part of `rate`, at least one.
pub fn hundreds(rate: f64, part: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let hundreds = (rate * part / 100.0) as u32;
    hundreds.max(1) * 100
}

/// Whether so many a second of that rate are all but those that chance delays.
pub fn carries(rate: u32, per_second: f64) -> bool {
    per_second >= SENT * f64::from(rate)
}

/// Asks each, in turn, as fast as it goes, once in cleartext and once as `ask` says.
pub async fn saturate(
    caches: &[(Kind, Cache)],
    ask: impl Fn(&Cache) -> Ask<'static>,
    rounds: u32,
    time: Duration,
) -> Vec<Capacity> {
    let capacity = |(kind, _): &(Kind, Cache)| Capacity {
        kind: *kind,
        plain: Vec::new(),
        tls: Vec::new(),
        tried: Vec::new(),
    };
    let mut capacities: Vec<_> = caches.iter().map(capacity).collect();
    // The first round warms up.
    for round in 0..=rounds {
        for (capacity, (_, cache)) in capacities.iter_mut().zip(caches) {
            let tls = ask(cache);
            let plain = Ask {
                address: cache.address,
                tls: false,
                ..tls
            };
            let found = (
                saturated(cache, &plain, time).await,
                saturated(cache, &tls, time).await,
            );
            if round > 0 {
                capacity.plain.push(found.0);
                capacity.tls.push(found.1);
            }
        }
    }
    capacities
}

async fn saturated(cache: &Cache, ask: &Ask<'_>, time: Duration) -> Saturated {
    let watch = Watch::start(cache.pid);
    let found = h2load::saturate(ask, CONNECTIONS, time).await;
    assert_eq!(found.failed, 0, "{found:?}");
    Saturated {
        per_second: found.per_second,
        spent: watch.spent(found.answered),
    }
}

/// Finds with which of these parts of its saturation each keeps up: goes on, from the first, as long as it does.
pub async fn climb(
    capacities: &mut [Capacity],
    caches: &[(Kind, Cache)],
    ask: impl Fn(&Cache) -> Ask<'static>,
    (parts, rounds, pace): (&[f64], u32, Pace),
) {
    for part in parts {
        let mut found = vec![Vec::new(); capacities.len()];
        for round in 1..=rounds {
            let all = capacities.iter().zip(caches).zip(&mut found);
            for ((capacity, (_, cache)), found) in all.filter(|((one, _), _)| one.goes_on()) {
                let rate = capacity.rate(*part);
                eprintln!(
                    "does {} keep up with {rate} a second? Round {round}",
                    capacity.kind
                );
                found.push(h2load::pace(&ask(cache), Pace { rate, ..pace }).await);
            }
        }
        for (capacity, found) in capacities.iter_mut().zip(found) {
            if !found.is_empty() {
                let rate = capacity.rate(*part);
                capacity.tried.push((rate, keeps_up(rate, &found)));
            }
        }
    }
}

/// By the median round.
fn keeps_up(rate: u32, rounds: &[Paced]) -> bool {
    let sent = Sample::of(rounds.iter().map(|round| round.per_second)).median();
    let p99 = Sample::of(rounds.iter().map(|round| round.times.percentile(99.0))).median();
    let failed = rounds.iter().any(|round| round.failed > 0);
    !failed && carries(rate, sent) && p99 <= P99_MS
}

impl Capacity {
    fn goes_on(&self) -> bool {
        self.tried.iter().all(|(_, kept_up)| *kept_up)
    }

    /// That part of how many it answers over TLS.
    fn rate(&self, part: f64) -> u32 {
        let per_second = Sample::of(self.tls.iter().map(|round| round.per_second));
        hundreds(per_second.median(), part)
    }

    /// The highest rate with which it kept up; the least that was tried where it did with none.
    ///
    /// # Panics
    /// When none was tried.
    pub fn sustained(&self) -> u32 {
        let kept_up = self.tried.iter().rev().find(|(_, kept_up)| *kept_up);
        kept_up.unwrap_or(&self.tried[0]).0
    }

    /// By [`COLUMNS`].
    pub fn cells(&self) -> Vec<String> {
        let both = [&self.plain, &self.tls];
        let median = |figure: &dyn Fn(&Saturated) -> f64| {
            both.map(|rounds| Sample::of(rounds.iter().map(figure)).median())
        };
        let [plain, tls] = median(&|round| round.per_second);
        let mut cells = vec![
            self.kind.to_string(),
            format!("{plain:.0}"),
            format!("{tls:.0}"),
        ];
        let figures: [fn(&Spent) -> f64; 2] = [|spent| spent.server, |spent| spent.generator];
        for figure in figures {
            cells.extend(median(&|round| figure(&round.spent)).map(|us| format!("{us:.0}")));
        }
        let [_, cores] = median(&|round| round.spent.cores);
        cells.push(format!("{cores:.2}"));
        let (sustained, last) = (self.sustained(), self.tried.last());
        cells.push(match last {
            Some((_, true)) => format!("{sustained} or more"),
            Some((rate, false)) if *rate == sustained => format!("less than {rate}"),
            _ => sustained.to_string(),
        });
        cells
    }

    /// CPU time of a hit over TLS, by round.
    fn cpu(rounds: &[Saturated]) -> Vec<(f64, f64)> {
        let cpu = |round: &Saturated| (round.spent.server, round.spent.foreign);
        rounds.iter().map(cpu).collect()
    }

    /// What TLS costs it.
    pub fn compare(&self, findings: &mut Conclusions) {
        findings.compare(&Ratio {
            what: &format!("CPU time of a hit of {}", self.kind),
            ours: ("cleartext", &Self::cpu(&self.plain)),
            theirs: ("TLS", &Self::cpu(&self.tls)),
        });
    }

    /// As data.
    pub fn data(&self) -> Value {
        let round = |round: &Saturated| {
            json!({
                "per_second": round.per_second, "cpu_us_per_request": round.spent.server,
                "generator_us_per_request": round.spent.generator, "cores": round.spent.cores,
                "foreign": round.spent.foreign,
            })
        };
        let rounds = |rounds: &[Saturated]| rounds.iter().map(round).collect::<Vec<_>>();
        json!({
            "contender": self.kind.to_string(), "plain": rounds(&self.plain), "tls": rounds(&self.tls),
            "tried": self.tried,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::distribution::Distribution;
    use std::time::SystemTime;

    fn round(per_second: f64, millis: u64) -> Paced {
        let times = (0..100).map(|_| Duration::from_millis(millis));
        Paced {
            sent: 100,
            failed: 0,
            per_second,
            times: Distribution::since(SystemTime::now(), times),
            tls: None,
        }
    }

    #[test]
    fn who_keeps_up_sends_what_is_due_and_answers_soon() {
        assert!(keeps_up(100, &[round(99.5, 5)]));
        assert!(!keeps_up(100, &[round(98.0, 5)]));
        assert!(!keeps_up(100, &[round(100.0, 25)]));
        // The median round decides.
        assert!(keeps_up(
            100,
            &[round(100.0, 5), round(50.0, 90), round(100.0, 5)]
        ));
    }

    #[test]
    fn a_rate_that_was_not_kept_up_with_is_none_that_is_sustained() {
        let of = |tried: &[(u32, bool)]| {
            let capacity = Capacity {
                kind: Kind::Nginx,
                plain: vec![],
                tls: vec![],
                tried: tried.to_vec(),
            };
            (capacity.sustained(), capacity.goes_on())
        };
        assert_eq!(of(&[(300, true), (400, true)]), (400, true));
        assert_eq!(of(&[(300, true), (400, false)]), (300, false));
        assert_eq!(of(&[(300, false)]), (300, false));
        assert_eq!((hundreds(999.0, 0.5), hundreds(10.0, 0.5)), (400, 100));
    }
}
