// SPDX-License-Identifier: Apache-2.0
//! The secret in the token of a purge.

use sluice_core::policy::purge::TokenHash;

/// Fewest characters of a token.
const SHORTEST: usize = 16;
/// The rule for a token. NB: a token is a secret, so no error may show it.
pub const ACCEPTED_TOKEN: &str = "must be at least 16 visible ASCII characters without spaces";

/// The hash of a token; `None`: the text cannot be a token.
pub fn hash_of_token(text: &str) -> Option<TokenHash> {
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    (text.len() >= SHORTEST && visible).then(|| TokenHash::of(text.as_bytes()))
}
