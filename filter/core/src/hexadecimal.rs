// SPDX-License-Identifier: Apache-2.0
//! Numbers and bytes as hexadecimal digits.

/// Appends two digits for each byte. Formatting by the standard library takes eight times as long, which matters
/// because each request has a link.
pub fn push(text: &mut String, bytes: &[u8]) {
    let digit = |half: u8| {
        char::from(if half < 10 {
            b'0' + half
        } else {
            b'a' - 10 + half
        })
    };
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
}

/// Reads two lower-case digits for each byte; `None` for anything else.
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let pairs = pairs.iter();
    pairs
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

/// Reads `digits` as a number; `None` for anything else, or for more than 64 bits.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        let fits = number.leading_zeros() >= 4;
        fits.then(|| number << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for number in [0, 7, 0xfedc_ba98_7654_3210, u64::MAX] {
            let mut digits = String::new();
            push(&mut digits, &number.to_be_bytes());
            assert_eq!(super::number(digits.as_bytes()), Some(number));
            let padded = format!("0{digits}");
            assert_eq!(super::number(padded.as_bytes()), Some(number));
        }
        assert_eq!(number(b"aF"), Some(0xaf));
    }

    #[test]
    fn what_is_no_number_of_64_bits_is_none() {
        for digits in ["", "+1", "-1", "g", "1 ", "0x1", "10000000000000000"] {
            assert_eq!(number(digits.as_bytes()), None, "{digits}");
        }
    }
}
