// SPDX-License-Identifier: Apache-2.0
//! Lists of names and values in OpenTelemetry's variables, in the form of W3C Baggage without properties.

/// Reads `NAME=VALUE`, separated by commas, with percent-encoded values; `None`: the text is not such a list.
pub fn key_values(text: &str) -> Option<Vec<(String, String)>> {
    let members = text.split(',').map(str::trim);
    let members = members.filter(|member| !member.is_empty());
    let pairs = members.map(|member| {
        let (name, value) = member.split_once('=')?;
        let name = name.trim();
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        let value = unescaped(value.trim())?;
        is_name.then(|| (name.to_owned(), value))
    });
    pairs.collect()
}

/// A percent-encoded text without its escapes; `None`: an escape is not complete, or the result is not UTF-8.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(part.bytes().skip(2));
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_names_and_percent_encoded_values() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (text, expected) in [
            ("", vec![]),
            ("a=1", vec![pair("a", "1")]),
            (
                " a = 1 , b.c=x=y,",
                vec![pair("a", "1"), pair("b.c", "x=y")],
            ),
            (
                "authorization=Basic%20aGk%3D",
                vec![pair("authorization", "Basic aGk=")],
            ),
            ("a=%C3%BC,b=", vec![pair("a", "\u{fc}"), pair("b", "")]),
        ] {
            assert_eq!(key_values(text), Some(expected), "{text}");
        }
        for text in ["a", "=1", "a b=1", "a=%", "a=%2", "a=%g0", "a=%+1", "a=%FF"] {
            assert_eq!(key_values(text), None, "{text}");
        }
    }
}
