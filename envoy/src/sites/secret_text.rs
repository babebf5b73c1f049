// SPDX-License-Identifier: Apache-2.0
//! The text of a secret, from any source.

/// The rule for a secret. NB: no error may show the secret itself.
pub const ACCEPTED_SECRET: &str = "must have no line end or other control character, and no blank at its beginning or its \
                                   end (`echo` adds a line end, and `printf %s` does not)";

/// Whether a text can be a secret. A Kubernetes secret that was made with `echo` has a line end. All requests
/// signed or sent with such a secret would be refused without a hint at the reason.
pub fn is_secret(text: &str) -> bool {
    !text.contains(char::is_control) && text.trim() == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_no_control_character_and_no_outer_blank() {
        for text in ["s", "wJalr/K7MDENG+bPx=", "two words", "h\u{fc}sh"] {
            assert!(is_secret(text), "{text:?}");
        }
        for text in [
            "s\n", "s\r\n", "\ns", "s\ns", "s ", " s", "s\t", "s\0", "s\u{7f}", "s\u{85}",
            "s\u{a0}",
        ] {
            assert!(!is_secret(text), "{text:?}");
        }
    }
}
