// SPDX-License-Identifier: Apache-2.0
//! How many pods, and how large: hit ratios by the formula and simulated, as a table and as a plot.

mod simulation;

use crate::report;
use crate::report::plot::{self, Fit};
use crate::report::table;
use crate::stories::sizing::simulation::{Balance, Pods};
use serde_json::json;
use sluice_tests::popularity::{Eviction, Zipf};
use std::num::NonZeroUsize;

const NUMBERS: [usize; 6] = [1, 2, 3, 5, 10, 20];
const EXPONENTS: [f64; 3] = [0.7, 0.9, 1.1];
/// Of all objects, what one pod has room for: one in so many.
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
pub fn run(quick: bool) {
    let objects = if quick { 20_000 } else { 100_000 };
    let lines: Vec<_> = EXPONENTS
        .into_iter()
        .flat_map(|exponent| of_exponent(objects, exponent))
        .collect();
    let title = format!(
        "Hit ratios of pods by themselves and of a fleet\n{objects} objects of one size, of which each pod has room for \
         one in {ONE_IN}; formula / simulated; busiest: requests of the pod that owns most, as a multiple of the mean\n\n"
    );
    let plots = json!([plot_of(&lines)]);
    report::keep_data(
        "sizing",
        &(title + &table_of(&lines)),
        json!({"plots": plots}),
    );
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

fn table_of(lines: &[Line]) -> String {
    let percent = |[formula, simulated]: [f64; 2]| {
        format!("{:.1} / {:.1} %", 100.0 * formula, 100.0 * simulated)
    };
    let rows: Vec<_> = lines
        .iter()
        .map(|line| {
            vec![
                format!("Zipf {}, evicts the {}", line.exponent, name(line.eviction)),
                line.number.to_string(),
                percent(line.apart),
                percent(line.fleet),
                format!("{:.2}", (1.0 - line.fleet[0]) / (1.0 - line.apart[0])),
                format!("{:.2}", line.busiest),
            ]
        })
        .collect();
    let head = [
        "",
        "pods",
        "each by itself",
        "fleet",
        "origin requests",
        "busiest",
    ];
    table::render(&head, &rows)
}

/// Fleets that evict as on most file systems, a line for each exponent, beside pods by themselves.
fn plot_of(lines: &[Line]) -> String {
    let of = |exponent: f64, pick: &dyn Fn(&Line) -> [f64; 2]| {
        let own = lines
            .iter()
            .filter(|line| line.exponent.total_cmp(&exponent).is_eq())
            .filter(|line| line.eviction == Eviction::FirstIn);
        let points: Vec<_> = own.map(|line| (line.number as f64, pick(line))).collect();
        let split = |index: usize| points.iter().map(|(x, y)| (*x, 100.0 * y[index])).collect();
        (split(0), split(1))
    };
    let fits: Vec<_> = EXPONENTS
        .into_iter()
        .flat_map(|exponent| {
            let (fleet, fleet_points) = of(exponent, &|line| line.fleet);
            let (apart, apart_points) = of(exponent, &|line| line.apart);
            [
                Fit {
                    name: format!("fleet, Zipf {exponent}"),
                    line: fleet,
                    points: fleet_points,
                },
                Fit {
                    name: format!("each by itself, Zipf {exponent}"),
                    line: apart,
                    points: apart_points,
                },
            ]
        })
        .collect();
    plot::fits(
        "Hit ratio: lines by the formula, points simulated",
        "pods",
        "% hits",
        &fits,
    )
}
