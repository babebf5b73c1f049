// SPDX-License-Identifier: Apache-2.0
//! The `Cache-Control` of a response for one client alone.

use super::cache_control::directives;
use crate::http::syntax::field_value::FieldValue;

/// The directives that say how shared caches keep a response. A private response has none of them.
const OF_SHARED_CACHES: [&[u8]; 4] = [b"public", b"private", b"s-maxage", b"proxy-revalidate"];

/// The directives for the client alone: `private`, and those of `value` that do not concern shared caches. `private`
/// with a list of fields is replaced, because it allows shared caches to keep the rest (RFC 9111, 5.2.2.7).
pub fn private_directives(value: FieldValue<'_>) -> Vec<u8> {
    let mut private = b"private".to_vec();
    for (name, argument) in directives(value) {
        let of_shared = OF_SHARED_CACHES
            .iter()
            .any(|other| name.eq_ignore_ascii_case(other));
        if name.is_empty() || of_shared {
            continue;
        }
        private.extend(b", ");
        private.extend(name);
        if let Some(argument) = argument {
            private.push(b'=');
            private.extend(argument);
        }
    }
    private
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_caches_get_no_directive_that_lets_them_keep_a_response() {
        for (value, private) in [
            ("", "private"),
            ("public, max-age=60", "private, max-age=60"),
            ("max-age=60,s-maxage=600", "private, max-age=60"),
            ("Public, S-MaxAge=1, proxy-revalidate", "private"),
            ("private=\"x-a, x-b\", no-cache", "private, no-cache"),
            ("no-store", "private, no-store"),
            (
                "immutable, x=\"a,public\"",
                "private, immutable, x=\"a,public\"",
            ),
            (", ,max-age=1;public", "private, max-age=1"),
        ] {
            let made = private_directives(FieldValue::new(value.as_bytes()));
            assert_eq!(String::from_utf8_lossy(&made), private);
        }
    }
}
