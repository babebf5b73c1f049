// SPDX-License-Identifier: Apache-2.0
//! The secret that authorizes the caller of a purge.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::hexadecimal;

/// SHA-256 of the token. No configuration has the token itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Length of [`TokenHash::to_hex`] in characters.
    pub const HEX_LENGTH: usize = 64;

    /// The hash of `token`.
    pub fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        Some(Self(hexadecimal::bytes(text)?.try_into().ok()?))
    }

    /// Writes the digits that [`TokenHash::from_hex`] reads.
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The hash of the token in the value of an `Authorization` header (RFC 6750); `None` if it has no token.
    pub fn shown(authorization: Option<&[u8]>) -> Option<Self> {
        let (scheme, token) = authorization?.split_at_checked(7)?;
        scheme
            .eq_ignore_ascii_case(b"bearer ")
            .then(|| Self::of(token))
    }

    /// Whether `shown` is the same hash. The time does not depend on how much of it is right.
    pub fn is(&self, shown: Self) -> bool {
        shown.0.ct_eq(&self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_is_admitted() {
        let hash = TokenHash::of(b"correct horse battery");
        let admits =
            |authorization| TokenHash::shown(authorization).is_some_and(|shown| hash.is(shown));
        assert!(admits(Some(b"Bearer correct horse battery")));
        assert!(admits(Some(b"bearer correct horse battery")));
        for wrong in [
            None,
            Some(&b""[..]),
            Some(b"Bearer"),
            Some(b"Bearer "),
            Some(b"Bearer correct horse batterx"),
            Some(b"Bearer correct horse battery "),
            Some(b"Basic correct horse battery"),
            Some(b"correct horse battery"),
        ] {
            assert!(!admits(wrong));
        }
    }

    #[test]
    fn hexadecimal_round_trips() {
        let hash = TokenHash::of(b"");
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash.to_hex(), hex);
        assert_eq!(TokenHash::from_hex(hex), Some(hash));
        for wrong in [
            "",
            "e3",
            &hex[1..],
            &hex.to_uppercase(),
            &format!("{hex}00"),
        ] {
            assert_eq!(TokenHash::from_hex(wrong), None);
        }
    }
}
