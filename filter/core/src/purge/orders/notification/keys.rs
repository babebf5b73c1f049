// SPDX-License-Identifier: Apache-2.0
//! The keys of objects in events. Most servers encode a key as in a form, some as in a URL, and some not at all. An
//! event does not say which encoding it uses, so all readings count.

use crate::http::url::escaping::unescaped;

/// Returns the keys that the key of an event may mean: unchanged, without its escapes, and also with spaces for `+`.
pub fn readings(key: &str) -> Vec<String> {
    let mut readings = vec![key.to_owned()];
    let texts = [key.to_owned(), key.replace('+', " ")];
    for text in texts {
        let bytes: Vec<u8> = unescaped(text.as_bytes()).collect();
        // A key is UTF-8.
        readings.extend(String::from_utf8(bytes));
    }
    readings.sort_unstable();
    readings.dedup();
    readings
}

#[cfg(test)]
mod tests {
    use crate::purge::orders::notification::keys::*;

    #[test]
    fn a_key_is_read_as_each_server_writes_it() {
        for (key, expected) in [
            ("a.png", &["a.png"][..]),
            ("a+b.png", &["a b.png", "a+b.png"]),
            ("100%41", &["100%41", "100A"]),
            ("a+b%20c", &["a b c", "a+b c", "a+b%20c"]),
            ("a%2Bb+c", &["a%2Bb+c", "a+b c", "a+b+c"]),
            ("%ff", &["%ff"]),
            ("50%", &["50%"]),
        ] {
            assert_eq!(readings(key), expected, "{key}");
        }
    }
}
