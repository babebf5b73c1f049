// SPDX-License-Identifier: Apache-2.0
//! The stories: measurements, a file or a folder each.

mod hits;
mod instructions;
mod large;
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
use std::pin::Pin;
use std::time::Duration;

/// A measurement that has begun; no report if a tool is missing.
type Running = Pin<Box<dyn Future<Output = Option<Report>>>>;

/// A story.
struct Story {
    /// Its name for the command line.
    name: &'static str,
    /// Whether it runs if no story is named.
    by_default: bool,
    /// Its length in seconds on two cores: quick, and in full.
    seconds: [u64; 2],
    /// Starts it, quick or in full.
    start: fn(bool) -> Running,
}

macro_rules! story {
    ($name:ident, $by_default:literal, $seconds:expr) => {
        Story {
            name: stringify!($name),
            by_default: $by_default,
            seconds: $seconds,
            start: |quick| Box::pin(async move { Option::<Report>::from($name::run(quick).await) }),
        }
    };
}

/// The stories. The position of a story, from 1 on, is its number for the command line.
const STORIES: [Story; 11] = [
    story!(wall, true, [30, 1_260]),
    story!(stampede, true, [44, 530]),
    story!(slow, true, [26, 300]),
    story!(scrape, true, [30, 600]),
    story!(workers, true, [24, 260]),
    story!(tls, true, [23, 540]),
    story!(hits, true, [20, 330]),
    story!(large, true, [36, 900]),
    story!(sizing, true, [3, 15]),
    story!(variants, false, [12, 70]),
    story!(instructions, false, [60, 90]),
];

/// The names for the command line.
pub fn names() -> Vec<&'static str> {
    STORIES.iter().map(|story| story.name).collect()
}

/// The names of the stories that are given by name or by number, or of the default ones if none is given.
///
/// # Errors
/// The word that names no story, and the known names.
pub fn chosen(wanted: &[String]) -> Result<Vec<&'static str>, String> {
    if wanted.is_empty() {
        let by_default = STORIES.iter().filter(|story| story.by_default);
        return Ok(by_default.map(|story| story.name).collect());
    }
    let find = |word: &String| {
        let mut numbered = (1..).zip(STORIES);
        let story =
            numbered.find(|(number, story)| word == story.name || *word == number.to_string());
        let story = story.map(|(_, story)| story.name);
        story.ok_or_else(|| {
            let (last, names) = (STORIES.len(), names().join(", "));
            format!("STORY: {word:?}: expected a number from 1 to {last}, or one of {names}")
        })
    };
    wanted.iter().map(find).collect()
}

/// Length of these stories, each and in all; unknown names are left out.
pub fn plan(wanted: &[&str], quick: bool) -> String {
    let known = STORIES.iter().filter(|story| wanted.contains(&story.name));
    let times = known.map(|story| (story.name, story.seconds[usize::from(!quick)]));
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
    let story = STORIES.into_iter().find(|story| story.name == name);
    let story = story.unwrap_or_else(|| panic!("unknown story {name:?}"));
    if let Some(report) = (story.start)(quick).await {
        report.keep(name, quick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_five_minutes_and_in_full_it_is_less_than_two_hours() {
        let seconds = |at: usize| STORIES.iter().map(|story| story.seconds[at]).sum::<u64>();
        assert!((210..330).contains(&seconds(0)), "{}", seconds(0));
        assert!(seconds(1) <= 120 * 60, "{}", seconds(1));
    }

    #[test]
    fn a_plan_names_each_story_and_all() {
        assert_eq!(
            plan(&["sizing", "none"], true),
            "about 3 seconds in all: sizing 3 seconds"
        );
    }

    #[test]
    fn a_story_has_a_name_and_a_number() {
        let chosen = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
            chosen(&words)
        };
        assert_eq!(chosen(&["tls", "2"]), Ok(vec!["tls", "stampede"]));
        let by_default = chosen(&[]).unwrap();
        assert!(by_default.contains(&"sizing") && !by_default.contains(&"variants"));
        let error = chosen(&["0"]).unwrap_err();
        assert!(
            error.starts_with("STORY: \"0\": expected a number from 1 to "),
            "{error}"
        );
    }
}
