// SPDX-License-Identifier: Apache-2.0
//! Settings that the user of the bench gives to each Sluice.

/// The names and values of `SETTINGS="NAME=VALUE …"`. Ends the program if a word is not of that form.
pub fn settings() -> Vec<(String, String)> {
    let text = std::env::var("SETTINGS").unwrap_or_default();
    parse(&text).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2);
    })
}

fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |word: &str| {
        let pair = word.split_once('=').filter(|(name, _)| !name.is_empty());
        let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
        pair.ok_or_else(|| format!("SETTINGS: {word:?}: expected NAME=VALUE"))
    };
    text.split_whitespace().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_names_with_values() {
        assert_eq!(parse(" "), Ok(Vec::new()));
        let parsed = parse("SLUICE_HOT_BYTES=0 SLUICE_CACHE_MAX_BYTES=20GiB").unwrap();
        assert_eq!(parsed[1].0, "SLUICE_CACHE_MAX_BYTES");
        assert_eq!(parsed[1].1, "20GiB");
        let error = parse("SLUICE_HOT_BYTES").unwrap_err();
        assert_eq!(error, "SETTINGS: \"SLUICE_HOT_BYTES\": expected NAME=VALUE");
    }
}
