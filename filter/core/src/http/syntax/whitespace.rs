// SPDX-License-Identifier: Apache-2.0
//! White space in the values of header fields (RFC 9110, 5.6.3).

/// Returns the value as AWS's Signature Version 4 signs it: without white space at its ends, and with one space for
/// each run of white space inside. `None` if the value has this form already.
pub fn collapsed(value: &[u8]) -> Option<Vec<u8>> {
    let is_white = |byte: &u8| matches!(byte, b' ' | b'\t');
    let words = value.split(is_white).filter(|word| !word.is_empty());
    let collapsed = words.collect::<Vec<_>>().join(&b' ');
    (collapsed != value).then_some(collapsed)
}

#[cfg(test)]
mod tests {
    use crate::http::syntax::whitespace::*;

    #[test]
    fn each_run_of_white_space_is_one_space() {
        for (value, expected) in [
            ("a\tb", Some("a b")),
            (" \t a", Some("a")),
            ("a  b\t\tc ", Some("a b c")),
            ("\t", Some("")),
            ("a b", None),
            ("", None),
        ] {
            let expected = expected.map(|expected| expected.as_bytes().to_vec());
            assert_eq!(collapsed(value.as_bytes()), expected, "{value:?}");
        }
        assert_eq!(collapsed(b"\xe9\t\xff"), Some(b"\xe9 \xff".to_vec()));
    }
}
