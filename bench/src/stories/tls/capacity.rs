// SPDX-License-Identifier: Apache-2.0
//! Capacity of a server: the hits a second that it answers under full load, and the highest constant rate that it
//! sustains.

use crate::contenders::{Contender, Kind};
use crate::figures::format::whole;
use crate::figures::{Conclusions, Figures, Rounds, Table};
use crate::load::h2load::{self, Ask, Pace, Paced};
use crate::machine::usage::{Meter, Taken};
use std::time::Duration;

/// Connections for full load.
const CONNECTIONS: u32 = 32;
/// Part of the due requests that a server must send to sustain a rate.
const SENT: f64 = 0.99;
/// Bound on the 99th percentile of its times, in milliseconds.
pub const P99_MS: f64 = 20.0;

/// Capacity of one server.
pub struct Capacity {
    /// Its kind.
    pub kind: Kind,
    /// Full load in cleartext, by round.
    plain: Rounds<Saturated>,
    /// Full load over TLS, by round.
    tls: Rounds<Saturated>,
    /// The rates that were tried, and whether the server sustained them; it may not have sustained the last one.
    tried: Vec<(u32, bool)>,
}

/// A round of hits under full load.
#[derive(Clone, Copy)]
struct Saturated {
    per_second: f64,
    answered: u64,
    taken: Taken,
}

/// The capacities as a table.
pub fn table(capacities: &[Capacity]) -> Table {
    let columns = "as fast as possible | a second, plain | TLS | us CPU, plain | TLS | us h2load, plain | TLS \
    | cores, TLS | sustained, TLS";
    Table::new(columns, capacities.iter().map(Capacity::cells))
}

/// A part of `rate`, in hundreds, at least one hundred.
pub fn hundreds(rate: f64, part: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let hundreds = (rate * part / 100.0) as u32;
    hundreds.max(1) * 100
}

/// Whether `per_second` is `rate`, except for requests that are delayed by chance.
pub fn carries(rate: u32, per_second: f64) -> bool {
    per_second >= SENT * f64::from(rate)
}

/// Puts each server under full load, in turn, once in cleartext and once as `ask` says.
pub async fn saturate(
    servers: &[Contender],
    ask: impl Fn(&Contender) -> Ask<'static>,
    rounds: u32,
    time: Duration,
) -> Vec<Capacity> {
    let capacity = |server: &Contender| Capacity {
        kind: server.kind,
        plain: Rounds::default(),
        tls: Rounds::default(),
        tried: Vec::new(),
    };
    let mut capacities: Vec<_> = servers.iter().map(capacity).collect();
    // The first round warms up.
    for round in 0..=rounds {
        for (capacity, server) in capacities.iter_mut().zip(servers) {
            let tls = ask(server);
            let plain = Ask {
                address: server.address,
                tls: false,
                ..tls
            };
            let found = (
                saturated(server, &plain, time).await,
                saturated(server, &tls, time).await,
            );
            if round > 0 {
                capacity.plain.add(found.0);
                capacity.tls.add(found.1);
            }
        }
    }
    capacities
}

async fn saturated(server: &Contender, ask: &Ask<'_>, time: Duration) -> (Saturated, f64) {
    let meter = Meter::start(&server.pids);
    let found = h2load::saturate(ask, CONNECTIONS, time).await;
    assert_eq!(found.failed, 0, "{found:?}");
    let saturated = Saturated {
        per_second: found.per_second,
        answered: found.answered,
        taken: meter.taken().expect("a server that runs"),
    };
    (saturated, meter.foreign())
}

/// Finds which of these parts of its saturation each server sustains: tries them in order as long as it does.
pub async fn climb(
    capacities: &mut [Capacity],
    servers: &[Contender],
    ask: impl Fn(&Contender) -> Ask<'static>,
    (parts, rounds, pace): (&[f64], u32, Pace),
) {
    for part in parts {
        let mut found = vec![Vec::new(); capacities.len()];
        for round in 1..=rounds {
            let all = capacities.iter().zip(servers).zip(&mut found);
            for ((capacity, server), found) in all.filter(|((one, _), _)| one.goes_on()) {
                let rate = capacity.rate(*part);
                eprintln!(
                    "does {} keep up with {rate} a second? Round {round}",
                    capacity.kind
                );
                found.push(h2load::pace(&ask(server), Pace { rate, ..pace }).await);
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

/// Whether the median round sustains the rate.
fn keeps_up(rate: u32, rounds: &[Paced]) -> bool {
    let median =
        |figure: &dyn Fn(&Paced) -> f64| rounds.iter().map(figure).collect::<Figures>().median();
    let failed = rounds.iter().any(|round| round.failed > 0);
    let sent = median(&|round| round.per_second);
    !failed && carries(rate, sent) && median(&|round| round.times.percentile(99.0)) <= P99_MS
}

impl Saturated {
    fn cpu(&self) -> f64 {
        self.taken.cpu_us(self.answered)
    }
}

impl Capacity {
    fn goes_on(&self) -> bool {
        self.tried.iter().all(|(_, kept_up)| *kept_up)
    }

    /// A part of its rate over TLS under full load.
    fn rate(&self, part: f64) -> u32 {
        hundreds(self.tls.of(|round| round.per_second).median(), part)
    }

    /// The highest rate that the server sustained; the lowest one that was tried if it sustained none.
    ///
    /// # Panics
    /// When none was tried.
    pub fn sustained(&self) -> u32 {
        let kept_up = self.tried.iter().rev().find(|(_, kept_up)| *kept_up);
        kept_up.unwrap_or(&self.tried[0]).0
    }

    fn cells(&self) -> Vec<String> {
        let both = |figure: fn(&Saturated) -> f64| {
            [&self.plain, &self.tls].map(|rounds| whole(rounds.of(figure).median()))
        };
        let mut cells = vec![self.kind.to_string()];
        cells.extend(both(|round| round.per_second));
        cells.extend(both(Saturated::cpu));
        cells.extend(both(|round| round.taken.generator_us(round.answered)));
        cells.push(format!(
            "{:.2}",
            self.tls.of(|round| round.taken.cores()).median()
        ));
        let (sustained, last) = (self.sustained(), self.tried.last());
        cells.push(match last {
            Some((_, true)) => format!("{sustained} or more"),
            Some((rate, false)) if *rate == sustained => format!("less than {rate}"),
            _ => sustained.to_string(),
        });
        cells
    }

    /// Compares TLS with cleartext.
    pub fn compare(&self, findings: &mut Conclusions) {
        let what = format!("CPU time of a hit of {}", self.kind);
        let (plain, tls) = (self.plain.of(Saturated::cpu), self.tls.of(Saturated::cpu));
        findings.compare(what, ("cleartext", plain), ("TLS", tls));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Distribution;
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
                kind: Kind::Varnish,
                plain: Rounds::default(),
                tls: Rounds::default(),
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
