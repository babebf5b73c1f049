// SPDX-License-Identifier: Apache-2.0
//! Switches: settings that are on or off.

/// The texts that [`parse`] accepts, for error messages.
pub const ACCEPTED: &str = "on or off (true or false, 1 or 0)";

/// Reads a switch, in upper or lower case; `None` if the text is not a switch.
pub fn parse(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_has_three_spellings_in_any_case() {
        for text in ["on", "On", "true", "TRUE", "1"] {
            assert_eq!(parse(text), Some(true), "{text}");
        }
        for text in ["off", "OFF", "false", "False", "0"] {
            assert_eq!(parse(text), Some(false), "{text}");
        }
        for text in ["", "yes", "no", " on", "2", "enabled"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
