// SPDX-License-Identifier: Apache-2.0
//! The text forms by which the slicer asks EDGE for a slice, and EDGE tells it what became of the slice.

use std::fmt;

use crate::slices::plan::number;

/// Value of the request header `x-sluice-slice`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedSlice {
    /// The slice of that number.
    Number(u64),
    /// The client's own request, made again, because the object is no longer the object of the plan.
    Again,
}

impl AskedSlice {
    const AGAIN: &'static str = "again";

    /// Reads a field value; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        if text == Self::AGAIN {
            return Some(Self::Again);
        }
        number(text).map(Self::Number)
    }
}

impl fmt::Display for AskedSlice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(out, "{number}"),
            Self::Again => out.write_str(Self::AGAIN),
        }
    }
}

/// Value of the response header `x-sluice-slice-state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceState {
    /// The store had the slice.
    Hit,
    /// The origin sends the slice for this request.
    Led,
    /// The origin sends or sent the slice for another request, which this one has waited for.
    Followed,
    /// The origin has another object now.
    Changed,
    /// The origin no longer has the object, or does not give it.
    Gone,
}

impl SliceState {
    const ALL: [Self; 5] = [
        Self::Hit,
        Self::Led,
        Self::Followed,
        Self::Changed,
        Self::Gone,
    ];

    /// The text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Led => "led",
            Self::Followed => "followed",
            Self::Changed => "changed",
            Self::Gone => "gone",
        }
    }

    /// Reads a field value; `None` if it is not a state.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether the object is no longer the object of the index.
    pub const fn is_outdated(self) -> bool {
        matches!(self, Self::Changed | Self::Gone)
    }
}

#[cfg(test)]
mod tests {
    use crate::slices::asked::*;

    #[test]
    fn what_is_written_is_read() {
        for asked in [
            AskedSlice::Number(0),
            AskedSlice::Number(u64::MAX),
            AskedSlice::Again,
        ] {
            assert_eq!(AskedSlice::parse(&asked.to_string()), Some(asked));
        }
        for state in SliceState::ALL {
            assert_eq!(SliceState::parse(state.as_str()), Some(state));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "-1", "+1", " 1", "1.0", "18446744073709551616", "AGAIN"] {
            assert_eq!(AskedSlice::parse(text), None, "{text}");
        }
        assert_eq!(SliceState::parse("Hit"), None);
    }
}
