// SPDX-License-Identifier: Apache-2.0
//! The fields of a message in the encoding of Protocol Buffers (<https://protobuf.dev/programming-guides/encoding/>).

/// The fields of a message, in their order. The iterator ends at a field that is cut or has an unknown wire type.
#[derive(Clone, Copy, Debug)]
pub struct MessageFields<'a>(pub &'a [u8]);

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number of variable or fixed length.
    Number(u64),
    /// A string, bytes, or another message.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The bytes; none if the value is a number.
    pub const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => &[],
        }
    }

    /// The number; `None` for bytes.
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Bytes(_) => None,
        }
    }
}

impl<'a> Iterator for MessageFields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (tag, rest) = varint(self.0)?;
        let (value, rest) = match tag & 7 {
            0 => {
                let (number, rest) = varint(rest)?;
                (Value::Number(number), rest)
            }
            1 => {
                let (digits, rest) = rest.split_first_chunk::<8>()?;
                (Value::Number(u64::from_le_bytes(*digits)), rest)
            }
            2 => {
                let (length, rest) = varint(rest)?;
                let (bytes, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                (Value::Bytes(bytes), rest)
            }
            5 => {
                let (digits, rest) = rest.split_first_chunk::<4>()?;
                (Value::Number(u32::from_le_bytes(*digits).into()), rest)
            }
            _ => return None,
        };
        self.0 = rest;
        Some((tag >> 3, value))
    }
}

/// The number at the beginning, and the bytes after the number. Each byte has seven bits, the lowest first. The last
/// byte is below 128.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let digits = bytes.iter().position(|byte| *byte < 0x80)? + 1;
    let (digits, rest) = bytes.split_at_checked(digits).filter(|_| digits <= 10)?;
    let digits = digits.iter().rev();
    let number = digits.fold(0_u64, |number, byte| (number << 7) | u64::from(byte & 0x7f));
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_have_their_numbers_and_values() {
        let message = b"\x08\x96\x01\x12\x02ab\x1d\x01\0\0\0\x21\x02\0\0\0\0\0\0\0";
        let fields: Vec<_> = MessageFields(message).collect();
        let expected = [
            (1, Value::Number(150)),
            (2, Value::Bytes(b"ab")),
            (3, Value::Number(1)),
            (4, Value::Number(2)),
        ];
        assert_eq!(fields, expected);
        let cut = message.get(..message.len() - 1).unwrap();
        assert_eq!(MessageFields(cut).count(), 3);
    }

    proptest! {
        #[test]
        fn no_message_is_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            MessageFields(&bytes).count();
        }
    }
}
