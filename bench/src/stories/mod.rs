// SPDX-License-Identifier: Apache-2.0
//! The stories: measurements, a file or a folder each.

mod hits;
mod instructions;
mod scope;
mod scrape;
mod sizing;
mod slow;
mod stampede;
mod tls;
mod variants;
mod wall;
mod workers;

use crate::report::Report;
use indicatif::HumanDuration;
use std::time::Duration;

/// The names of the stories for the command line, and their length in seconds on two cores: quick, and in full.
const STORIES: [(&str, [u64; 2]); 10] = [
    ("wall", [30, 1_260]),
    ("stampede", [44, 530]),
    ("slow", [26, 300]),
    ("scrape", [30, 600]),
    ("workers", [24, 260]),
    ("tls", [23, 540]),
    ("hits", [20, 330]),
    ("sizing", [3, 15]),
    ("variants", [12, 70]),
    ("instructions", [60, 90]),
];

/// The names for the command line.
pub fn names() -> Vec<&'static str> {
    STORIES.iter().map(|(name, _)| *name).collect()
}

/// Length of these stories, each and in all; unknown names are left out.
pub fn plan(wanted: &[String], quick: bool) -> String {
    let known = STORIES
        .iter()
        .filter(|(name, _)| wanted.iter().any(|wanted| wanted == name));
    let times = known.map(|(name, [short, long])| (name, if quick { *short } else { *long }));
    let about = |seconds| HumanDuration(Duration::from_secs(seconds));
    let each: Vec<_> = times
        .clone()
        .map(|(name, time)| format!("{name} {}", about(time)))
        .collect();
    let all = about(times.map(|(_, time)| time).sum());
    format!("about {all} in all: {}", each.join(", "))
}

/// Runs the story of this name and writes its report. `quick` selects a short plan which shows that it works.
///
/// # Panics
/// When the name is unknown.
pub async fn run(name: &str, quick: bool) {
    let report: Option<Report> = match name {
        "wall" => Some(wall::run(quick).await),
        "stampede" => Some(stampede::run(quick).await),
        "slow" => Some(slow::run(quick).await),
        "scrape" => Some(scrape::run(quick).await),
        "workers" => Some(workers::run(quick).await),
        "tls" => tls::run(quick).await,
        "hits" => hits::run(quick).await,
        "sizing" => Some(sizing::run(quick)),
        "variants" => variants::run(quick).await,
        "instructions" => instructions::run(quick).await,
        _ => panic!("unknown story {name:?}"),
    };
    if let Some(report) = report {
        report.keep(name, quick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_five_minutes_and_in_full_it_is_less_than_two_hours() {
        let seconds = |at: usize| STORIES.iter().map(|(_, times)| times[at]).sum::<u64>();
        assert!((210..330).contains(&seconds(0)), "{}", seconds(0));
        assert!(seconds(1) <= 120 * 60, "{}", seconds(1));
    }

    #[test]
    fn a_plan_names_each_story_and_all() {
        let wanted = ["sizing", "none"].map(str::to_owned);
        assert_eq!(
            plan(&wanted, true),
            "about 3 seconds in all: sizing 3 seconds"
        );
    }
}
