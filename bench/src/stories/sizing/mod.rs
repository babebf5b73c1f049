// SPDX-License-Identifier: Apache-2.0
//! Number and size of pods: hit ratios by the formula and simulated, as a table and as a plot.

mod simulation;

use crate::figures::Table;
use crate::figures::format::count;
use crate::report::{Axis, Line as Curve, Picture, Report};
use simulation::{Balance, Pods};
use sluice_tests::chance::popularity::{Eviction, Zipf};
use std::num::NonZeroUsize;

const NUMBERS: [usize; 8] = [1, 2, 3, 5, 10, 20, 50, 100];
const EXPONENTS: [f64; 3] = [0.7, 0.9, 1.1];
/// The part of all objects for which a pod has room: one in this many.
const ONE_IN: usize = 50;

/// One line of the table.
struct Line {
    exponent: f64,
    eviction: Eviction,
    number: usize,
    apart: [f64; 2],
    fleet: [f64; 2],
    busiest: f64,
}

/// Computes, simulates and reports.
pub async fn run(quick: bool) -> Report {
    let objects = if quick { 20_000 } else { 100_000 };
    let lines = EXPONENTS
        .into_iter()
        .flat_map(|exponent| of_exponent(objects, exponent));
    let lines: Vec<_> = lines.collect();
    Report {
        title: "Hit ratios of separate pods and of a fleet".to_owned(),
        about: format!(
            "{objects} objects of one size; each pod has room for one in {ONE_IN}; formula / simulated; busiest: \
             requests of the pod that owns most, as a multiple of the mean"
        ),
        tables: vec![table_of(&lines)],
        pictures: vec![("hits".to_owned(), picture_of(&lines))],
        ..Report::default()
    }
}

fn of_exponent(objects: usize, exponent: f64) -> Vec<Line> {
    let zipf = Zipf::new(objects, exponent);
    let room = NonZeroUsize::new(objects / ONE_IN).expect("objects");
    let evictions = [Eviction::FirstIn, Eviction::LeastRecentlyUsed].into_iter();
    evictions
        .flat_map(|eviction| NUMBERS.map(|number| (eviction, number)))
        .map(|(eviction, number)| {
            let simulate = |balance| {
                let pods = Pods {
                    number,
                    room,
                    eviction,
                    balance,
                };
                pods.simulate(&zipf, 5 * objects)
            };
            let (apart, fleet) = (simulate(Balance::Anyone), simulate(Balance::Owner));
            Line {
                exponent,
                eviction,
                number,
                apart: [zipf.hit_ratio(room.get(), eviction), apart.hit_ratio],
                fleet: [
                    zipf.hit_ratio(number * room.get(), eviction),
                    fleet.hit_ratio,
                ],
                busiest: fleet.busiest,
            }
        })
        .collect()
}

const fn name(eviction: Eviction) -> &'static str {
    match eviction {
        Eviction::FirstIn => "first in",
        Eviction::LeastRecentlyUsed => "least recently used",
    }
}

fn table_of(lines: &[Line]) -> Table {
    let percent = |[formula, simulated]: [f64; 2]| {
        format!("{:.1} / {:.1} %", 100.0 * formula, 100.0 * simulated)
    };
    let cells = |line: &Line| {
        vec![
            format!("Zipf {}, evicts the {}", line.exponent, name(line.eviction)),
            line.number.to_string(),
            percent(line.apart),
            percent(line.fleet),
            format!("{:.2}", (1.0 - line.fleet[0]) / (1.0 - line.apart[0])),
            format!("{:.2}", line.busiest),
        ]
    };
    let columns = " | pods | each alone | fleet | origin requests | busiest";
    Table::new(columns, lines.iter().map(cells))
}

/// Fleets that evict as on most file systems, a line for each exponent, beside separate pods.
fn picture_of(lines: &[Line]) -> String {
    let curve = |name: String, exponent: f64, ratios: fn(&Line) -> [f64; 2]| {
        let own = lines
            .iter()
            .filter(|line| line.exponent.total_cmp(&exponent).is_eq());
        let own = own.filter(|line| line.eviction == Eviction::FirstIn);
        let points = own
            .map(|line| (count(line.number), 100.0 * ratios(line)[1]))
            .collect();
        Curve { name, points }
    };
    let both = |exponent: f64| {
        [
            curve(
                format!("Sluice, fleet, Zipf {exponent}"),
                exponent,
                |line| line.fleet,
            ),
            curve(format!("each pod alone, {exponent}"), exponent, |line| {
                line.apart
            }),
        ]
    };
    Picture {
        title: "Hits by the number of pods".to_owned(),
        x: ("pods", Axis::Linear),
        y: ("%", Axis::Linear),
        lines: EXPONENTS.into_iter().rev().flat_map(both).collect(),
    }
    .draw()
}
