// SPDX-License-Identifier: Apache-2.0
//! The scale of a story, from the environment.

use crate::contenders::Kind;

/// The number of rounds: `ROUNDS`, else `default`. Ends the program if `ROUNDS` is not a number above 0.
pub fn rounds(default: u32) -> u32 {
    or_exit(parse_rounds(&variable("ROUNDS"), default))
}

/// The kinds of `known` whose names begin with a word of `CONTENDERS`, or all of them. Ends the program if there are
/// none for a word.
pub fn contenders(known: &[Kind]) -> Vec<Kind> {
    or_exit(parse_contenders(&variable("CONTENDERS"), known))
}

/// The scenes of `known` that `SCENES` names, or all of them. Ends the program if a scene is unknown.
pub fn scenes(known: &[&'static str]) -> Vec<&'static str> {
    or_exit(parse_scenes(&variable("SCENES"), known))
}

/// The rates of `known`, in requests a second, that `RATES` names, or all of them. Ends the program if a rate is
/// unknown.
pub fn rates(known: &[u32]) -> Vec<u32> {
    or_exit(parse_rates(&variable("RATES"), known))
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn or_exit<T>(parsed: Result<T, String>) -> T {
    parsed.unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2);
    })
}

fn parse_rounds(value: &str, default: u32) -> Result<u32, String> {
    if value.trim().is_empty() {
        return Ok(default);
    }
    let rounds = value.trim().parse().ok().filter(|rounds| *rounds > 0);
    rounds.ok_or_else(|| format!("ROUNDS: {value:?}: expected a number from 1"))
}

fn parse_contenders(value: &str, known: &[Kind]) -> Result<Vec<Kind>, String> {
    let named = |kind: &Kind, word: &str| kind.to_string().starts_with(word);
    let unknown = |word: &&str| !known.iter().any(|kind| named(kind, word));
    if let Some(word) = value.split_whitespace().find(unknown) {
        let names: Vec<_> = known.iter().map(Kind::to_string).collect();
        let names = names.join("; ");
        return Err(format!(
            "CONTENDERS: {word:?}: expected the first word of one of: {names}"
        ));
    }
    let wanted = |kind: &Kind| {
        value.trim().is_empty() || value.split_whitespace().any(|word| named(kind, word))
    };
    Ok(known.iter().copied().filter(wanted).collect())
}

fn parse_scenes(value: &str, known: &[&'static str]) -> Result<Vec<&'static str>, String> {
    if value.trim().is_empty() {
        return Ok(known.to_vec());
    }
    let parse = |word: &str| {
        let scene = known.iter().find(|scene| **scene == word).copied();
        scene.ok_or_else(|| format!("SCENES: {word:?}: expected some of: {}", known.join(" ")))
    };
    value.split_whitespace().map(parse).collect()
}

fn parse_rates(value: &str, known: &[u32]) -> Result<Vec<u32>, String> {
    if value.trim().is_empty() {
        return Ok(known.to_vec());
    }
    let parse = |word: &str| {
        let rate = word.parse().ok().filter(|rate| known.contains(rate));
        rate.ok_or_else(|| format!("RATES: {word:?}: expected one of {known:?}"))
    };
    value.split_whitespace().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_the_default() {
        assert_eq!(parse_rounds("", 3), Ok(3));
        assert_eq!(parse_rates(" ", &[100, 500]), Ok(vec![100, 500]));
    }

    #[test]
    fn rounds_and_rates_are_taken_from_what_is_said() {
        assert_eq!(parse_rounds("5", 3), Ok(5));
        assert_eq!(parse_rates("500", &[100, 500]), Ok(vec![500]));
        assert_eq!(parse_scenes("far", &["far", "slow"]), Ok(vec!["far"]));
        assert_eq!(parse_scenes(" ", &["far"]), Ok(vec!["far"]));
    }

    #[test]
    fn contenders_are_named_by_their_first_word() {
        let known = [
            Kind::Origin,
            Kind::Sluice,
            Kind::SluiceNative,
            Kind::Varnish,
        ];
        assert_eq!(parse_contenders(" ", &known), Ok(known.to_vec()));
        let wanted = parse_contenders("Varnish Sluice", &known);
        assert_eq!(wanted, Ok(known[1..].to_vec()));
        let error = parse_contenders("Sluice Squid", &known[2..]).unwrap_err();
        let expected = "expected the first word of one of: Sluice, RUNTIME=native; Varnish";
        assert_eq!(error, format!("CONTENDERS: \"Squid\": {expected}"));
    }

    #[test]
    fn what_cannot_be_measured_is_named_with_what_can() {
        let error = parse_rounds("0", 3).unwrap_err();
        assert_eq!(error, "ROUNDS: \"0\": expected a number from 1");
        let error = parse_scenes("far b", &["far", "slow"]).unwrap_err();
        assert_eq!(error, "SCENES: \"b\": expected some of: far slow");
        let error = parse_rates("100 7", &[100, 500]).unwrap_err();
        assert_eq!(error, "RATES: \"7\": expected one of [100, 500]");
    }
}
