// SPDX-License-Identifier: Apache-2.0
//! The story's tables and findings.

use super::{
    Crowd, Far, Found, Huge, Leaver, MIB, Neighbours, Scale, Sequence, Slow, far, huge, neighbours,
    slow,
};
use crate::contenders::{Kind, WORKERS, settings};
use crate::figures::aim::{self, Aim, Goal};
use crate::figures::format::{ms, remark, whole};
use crate::figures::{Conclusions, Distribution, Figures, Row, Table};
use crate::machine;
use crate::origins::archive::{Counts, DISTANCE, RATE};
use crate::peers::nginx::Caching;
use crate::report::Report;

/// Size of a slice.
const SLICE: u64 = 1 << 20;
const OURS: Kind = Kind::Sluice;
const NGINX: Kind = Kind::Nginx(Caching::Slices);

const CROWD: &str = "crowd of a cold object, ms | first byte p50 | p99 | by round | last byte p50 | max | GET | HEAD \
    | MiB of origin | us CPU / MiB | MiB | ";
const SLOW: &str =
    "slow readers of a stored object | MiB each | by round | MiB | MiB/s each | MiB of origin | ";
const FAR: &str = "1,000 bytes at 4 GB of 5 GB, ms | cold p50 | max | again p50 | max | GET each | HEAD each | MiB of origin each | ";
const SEQUENCE: &str = "one client in sequence | MiB/s cold | by round | MiB/s hit | us CPU / MiB hit | by round | MiB of origin | ";
const HUGE: &str = "clients of a huge cold object | s | GET | HEAD | MiB of origin | MiB of growth | MiB of origin again | ";
const NEIGHBOURS: &str = "small objects beside one that is larger than the cache | hits alone, % | hits beside, % \
    | requests | MiB/s of the large one | GET | HEAD | MiB of origin | ";
const LEAVER: &str = "next client after one that left, ms | first byte | by round | last byte | GET | HEAD | MiB of origin | ";

#[allow(clippy::cast_precision_loss)]
const fn number(count: u64) -> f64 {
    count as f64
}

fn mib(bytes: u64) -> f64 {
    number(bytes) / MIB
}

/// A number with one digit of a fraction; a dash for NaN.
fn tenths(value: f64) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    format!("{value:.1}")
}

/// A number with a digit of its fraction, if it has one.
fn brief(value: f64) -> String {
    if value.fract() == 0.0 {
        return whole(value);
    }
    tenths(value)
}

/// GETs, HEADs and MiB of the origin, for each of `parts`.
fn origin<R>(row: &Row<Kind, R>, counts: impl Fn(&R) -> (Counts, f64)) -> [String; 3] {
    let of = |figure: fn(Counts) -> f64| {
        row.runs.of(|run| {
            let (counts, parts) = counts(run);
            figure(counts) / parts
        })
    };
    [
        of(|counts| number(counts.gets)).range(brief),
        of(|counts| number(counts.heads)).range(brief),
        of(|counts| mib(counts.bytes)).range(tenths),
    ]
}

fn crowd_cells(row: &Row<Kind, Crowd>) -> Vec<String> {
    let first = Distribution::pool(row.runs.iter().map(|crowd| &crowd.first_bytes));
    let end = Distribution::pool(row.runs.iter().map(|crowd| &crowd.ends));
    let cpu = row
        .runs
        .of_all(|crowd| Some(crowd.taken?.cpu.as_secs_f64() * 1e6 / mib(crowd.bytes)));
    let memory = row.runs.of_all(|crowd| Some(crowd.taken?.peak_mib));
    let mut cells = vec![
        row.case.to_string(),
        ms(first.percentile(50.0)),
        ms(first.percentile(99.0)),
        first_byte(row).range(ms),
        ms(end.percentile(50.0)),
        ms(end.percentile(100.0)),
    ];
    cells.extend(origin(row, |crowd| (crowd.origin, 1.0)));
    cells.push(whole(cpu.median()));
    cells.push(whole(memory.median()));
    cells.push(remark(row.runs.sum(|crowd| crowd.failed), "failed"));
    cells
}

/// The median time to the first byte.
fn first_byte(row: &Row<Kind, Crowd>) -> Figures {
    row.runs.of(|crowd| crowd.first_bytes.percentile(50.0))
}

fn slow_cells(row: &Row<Kind, Slow>) -> Vec<String> {
    let each = row.runs.of(|slow| slow.each_mib);
    vec![
        row.case.to_string(),
        format!("{:.2}", each.median()),
        each.range(|each| format!("{each:.2}")),
        whole(row.runs.of(|slow| slow.peak_mib).median()),
        format!("{:.2}", row.runs.of(|slow| slow.rate_mib).median()),
        row.runs.of(|slow| mib(slow.origin_bytes)).range(tenths),
        remark(row.runs.sum(|slow| slow.failed), "failed"),
    ]
}

fn far_cells(row: &Row<Kind, Far>) -> Vec<String> {
    let cold = Distribution::pool(row.runs.iter().map(|far| &far.cold));
    let again = Distribution::pool(row.runs.iter().map(|far| &far.again));
    let mut cells = vec![row.case.to_string()];
    cells.extend(
        [cold, again]
            .iter()
            .flat_map(|times| [50.0, 100.0].map(|at| ms(times.percentile(at)))),
    );
    cells.extend(origin(row, |far| (far.origin, number(far.objects))));
    cells.push(remark(row.runs.sum(|far| far.failed), "not in time"));
    cells
}

fn sequence_cells(row: &Row<Kind, Sequence>) -> Vec<String> {
    let cold = row.runs.of_all(|sequence| sequence.cold);
    let cpu = row.runs.of_all(|sequence| sequence.cpu);
    vec![
        row.case.to_string(),
        whole(cold.median()),
        cold.range(whole),
        whole(row.runs.of_all(|sequence| sequence.hit).median()),
        whole(cpu.median()),
        cpu.range(whole),
        row.runs
            .of(|sequence| mib(sequence.origin_bytes))
            .range(tenths),
        remark(row.runs.sum(|sequence| sequence.failed), "failed"),
    ]
}

fn leaver_cells(row: &Row<Kind, Leaver>) -> Vec<String> {
    let first = next_first_byte(row);
    let last = row
        .runs
        .of_all(|leaver| Some(leaver.next?.took.as_secs_f64() * 1e3));
    let mut cells = vec![
        row.case.to_string(),
        ms(first.median()),
        first.range(ms),
        ms(last.median()),
    ];
    cells.extend(origin(row, |leaver| (leaver.origin, 1.0)));
    cells.push(remark(row.runs.sum(|leaver| leaver.failed), "failed"));
    cells
}

fn huge_cells(row: &Row<Kind, Huge>) -> Vec<String> {
    let took = row.runs.of(|huge| huge.took.as_secs_f64());
    let mut cells = vec![row.case.to_string(), tenths(took.median())];
    cells.extend(origin(row, |huge| (huge.origin, 1.0)));
    cells.push(tenths(row.runs.of_all(|huge| huge.growth_mib).median()));
    cells.push(tenths(row.runs.of(|huge| mib(huge.again_bytes)).median()));
    cells.push(remark(row.runs.sum(|huge| huge.failed), "failed"));
    cells
}

fn neighbours_cells(row: &Row<Kind, Neighbours>, scale: &Scale) -> Vec<String> {
    let percent = |ratio: fn(&Neighbours) -> f64| tenths(row.runs.of(ratio).median() * 100.0);
    let large = mib(neighbours::CACHE * scale.times_cache);
    let rate = row.runs.of_all(|it| Some(large / it.took?.as_secs_f64()));
    let mut cells = vec![
        row.case.to_string(),
        percent(|it| it.alone),
        percent(|it| it.beside),
        row.runs.of(|it| number(it.requests)).range(brief),
        whole(rate.median()),
    ];
    cells.extend(origin(row, |it| (it.origin, 1.0)));
    cells.push(remark(row.runs.sum(|it| it.failed), "failed"));
    cells
}

fn next_first_byte(row: &Row<Kind, Leaver>) -> Figures {
    row.runs
        .of_all(|leaver| Some(leaver.next?.first_byte.as_secs_f64() * 1e3))
}

/// The figures of a kind; empty if it was not measured.
fn of<R>(rows: &[Row<Kind, R>], kind: Kind, figures: impl Fn(&Row<Kind, R>) -> Figures) -> Figures {
    let row = rows.iter().find(|row| row.case == kind);
    row.map(figures).unwrap_or_default()
}

impl Found {
    fn cold_rate(&self, kind: Kind) -> Figures {
        of(&self.sequences, kind, |row| {
            row.runs.of_all(|sequence| sequence.cold)
        })
    }

    fn hit_cpu(&self, kind: Kind) -> Figures {
        of(&self.sequences, kind, |row| {
            row.runs.of_all(|sequence| sequence.cpu)
        })
    }

    fn far_cold(&self, kind: Kind) -> Figures {
        of(&self.far, kind, |row| {
            row.runs.of(|far| far.cold.percentile(50.0))
        })
    }

    /// Memory of a slow reader of an object that was stored; empty if the origin was asked.
    fn each_mib(&self, kind: Kind) -> Figures {
        let stored = |slow: &Slow| (slow.origin_bytes == 0).then_some(slow.each_mib);
        of(&self.slow, kind, |row| row.runs.of_all(stored))
    }

    /// The figures that slices are to reach.
    fn goals(&self, scale: &Scale) -> Vec<Goal> {
        let goal = |what: &str, aim, unit, figures| Goal {
            what: format!("{what}, {OURS}"),
            aim,
            unit,
            figures,
        };
        let ratio = |ours: Figures, theirs: &Figures| ours.with(theirs, |our, their| our / their);
        let slices = number(scale.size.div_ceil(SLICE));
        let crowd = |figure: fn(&Crowd) -> f64| of(&self.crowds, OURS, |row| row.runs.of(figure));
        let again = of(&self.far, OURS, |row| {
            row.runs.of(|far| far.again.percentile(50.0))
        });
        // Two round trips, a slice at the origin's rate, and 10 ms.
        let slice_ms = number(SLICE) / number(RATE) * 1e3;
        let far = (2.0 * DISTANCE.as_secs_f64()).mul_add(1e3, slice_ms + 10.0);
        let whole = Kind::SluiceWhole;
        vec![
            goal(
                "crowd, first byte p50",
                Aim::AtMost(150.0),
                " ms",
                of(&self.crowds, OURS, first_byte),
            ),
            goal(
                "crowd, GETs of the origin",
                Aim::AtMost(slices),
                "",
                crowd(|crowd| number(crowd.origin.gets)),
            ),
            goal(
                "crowd, HEADs of the origin",
                Aim::AtMost(1.0),
                "",
                crowd(|crowd| number(crowd.origin.heads)),
            ),
            goal(
                "a slow reader",
                Aim::AtMost(4.0),
                " MiB",
                self.each_mib(OURS),
            ),
            goal(
                "far range, cold",
                Aim::AtMost(far),
                " ms",
                self.far_cold(OURS),
            ),
            goal("far range, again", Aim::AtMost(10.0), " ms", again),
            goal(
                "one client, cold, / whole",
                Aim::AtLeast(0.85),
                "x",
                ratio(self.cold_rate(OURS), &self.cold_rate(whole)),
            ),
            goal(
                "CPU of a hit, / whole",
                Aim::AtMost(2.2),
                "x",
                ratio(self.hit_cpu(OURS), &self.hit_cpu(whole)),
            ),
        ]
    }

    fn findings(&self) -> Conclusions {
        let mut findings = Conclusions::default();
        for theirs in [NGINX, Kind::Varnish, Kind::TrafficServerSlices] {
            let mut compare = |what: &str, figures: &dyn Fn(Kind) -> Figures| {
                findings.compare(what, (OURS, figures(OURS)), (theirs, figures(theirs)));
            };
            compare(
                "crowd of a cold object, median time to the first byte",
                &|kind| of(&self.crowds, kind, first_byte),
            );
            compare("memory of a slow reader", &|kind| self.each_mib(kind));
            compare("cold far range, time to the first byte", &|kind| {
                self.far_cold(kind)
            });
            compare("time of a MiB of a cold object, one client", &|kind| {
                self.cold_rate(kind)
                    .with(&self.cold_rate(kind), |rate, _| rate.recip())
            });
            compare("CPU time of a MiB of a hit", &|kind| self.hit_cpu(kind));
            compare(
                "next client after one that left, time to the first byte",
                &|kind| of(&self.leavers, kind, next_first_byte),
            );
        }
        findings
    }

    /// The part of all cores that other work took, in each round of all scenes.
    fn foreign(&self) -> impl Iterator<Item = f64> {
        let some = Row::foreign(&self.crowds).chain(Row::foreign(&self.slow));
        let more = Row::foreign(&self.far).chain(Row::foreign(&self.sequences));
        let most = Row::foreign(&self.huge).chain(Row::foreign(&self.neighbours));
        some.chain(more)
            .chain(Row::foreign(&self.leavers))
            .chain(most)
    }
}

pub fn report(found: &Found, scale: &Scale) -> Report {
    let tables = vec![
        aim::table(&found.goals(scale)),
        Table::new(CROWD, found.crowds.iter().map(crowd_cells)),
        Table::new(SLOW, found.slow.iter().map(slow_cells)),
        Table::new(FAR, found.far.iter().map(far_cells)),
        Table::new(SEQUENCE, found.sequences.iter().map(sequence_cells)),
        Table::new(LEAVER, found.leavers.iter().map(leaver_cells)),
        Table::new(HUGE, found.huge.iter().map(huge_cells)),
        Table::new(
            NEIGHBOURS,
            found
                .neighbours
                .iter()
                .map(|row| neighbours_cells(row, scale)),
        ),
    ];
    let crowds = Row::distributions(&found.crowds, ", crowd", |crowd| &crowd.first_bytes);
    let far = Row::distributions(&found.far, ", far range", |far| &far.cold);
    Report {
        title: "Large objects".to_owned(),
        about: about(found, scale),
        tables,
        findings: found.findings(),
        distributions: [crowds, far].concat(),
        ..Report::default()
    }
}

fn about(found: &Found, scale: &Scale) -> String {
    let settings = settings()
        .into_iter()
        .map(|(name, value)| format!("{name}={value}, "));
    format!(
        "an origin that is {} ms away and sends each response at {} MiB/s; {} rounds, in turn, {WORKERS} workers\n\
         objects of {} MiB: {} clients that arrive within {} s, {} slow readers at {} KiB/s for {} s, {} hits in \
         sequence; {} objects of {} bytes with far ranges, {} s each at most; {} clients of {} bytes; {} MiB through a \
         cache of {} MiB; {}{}",
        DISTANCE.as_millis(),
        RATE >> 20,
        scale.rounds,
        scale.size >> 20,
        scale.crowd,
        scale.arrival.as_secs(),
        scale.readers,
        slow::RATE >> 10,
        scale.reading.as_secs(),
        scale.hits,
        scale.objects,
        far::SIZE,
        scale.patience.as_secs(),
        huge::CLIENTS,
        scale.huge,
        (neighbours::CACHE * scale.times_cache) >> 20,
        neighbours::CACHE >> 20,
        settings.collect::<String>(),
        machine::described(found.foreign()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_fraction_only_if_it_needs_one() {
        assert_eq!([64.0, 1.666, f64::NAN].map(brief), ["64", "1.7", "-"]);
    }

    #[test]
    fn requests_of_the_origin_are_those_of_each_part() {
        let mut row = Row::new(Kind::Sluice);
        for gets in [3, 6] {
            let counts = Counts {
                heads: 1,
                gets,
                small_gets: 0,
                bytes: 3 << 20,
            };
            row.runs.add((counts, 0.0));
        }
        assert_eq!(origin(&row, |counts| (*counts, 1.0)), ["3-6", "1", "3.0"]);
        assert_eq!(origin(&row, |counts| (*counts, 3.0)), ["1-2", "0.3", "1.0"]);
    }
}
