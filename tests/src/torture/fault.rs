// SPDX-License-Identifier: Apache-2.0
//! Failures of the origin, drawn for each of its responses.

use super::object::{Object, Weakness};
use crate::chance::rng::Rng;

/// One failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed, in order, after this many bytes of the body.
    Fin(usize),
    /// The connection is reset after this many bytes of the body.
    Rst(usize),
    /// A response with this status.
    Error(u16),
    /// The connection is reset before a response.
    Reset,
    /// A response with [`REFUSED`], which the request has caused.
    Refused,
}

/// The status of a request whose header fields are too large for the origin (RFC 6585, 5).
pub const REFUSED: u16 = 431;

impl Fault {
    /// Draws a fault for a response of `size` bytes of body to a request, `padded` or not, if there is one.
    #[must_use]
    pub fn draw(object: &Object, size: usize, padded: bool, rng: &mut Rng) -> Option<Self> {
        let strikes = match object.weakness {
            Weakness::None => false,
            Weakness::Cuts => rng.below(6) == 0,
            Weakness::Errors | Weakness::Resets => rng.below(5) == 0,
            Weakness::Refusals => padded,
        };
        if !strikes {
            return None;
        }
        Some(match object.weakness {
            Weakness::Errors => Self::Error([500, 502, 503, 504][rng.below(4)]),
            Weakness::Cuts if rng.below(2) == 0 => Self::Fin(rng.below(size)),
            Weakness::Cuts => Self::Rst(rng.below(size)),
            Weakness::Refusals => Self::Refused,
            _ => Self::Reset,
        })
    }

    /// Whether it cuts a body.
    #[must_use]
    pub const fn cuts(self) -> bool {
        matches!(self, Self::Fin(_) | Self::Rst(_))
    }

    /// The name of its counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fin(_) => "bodies cut by FIN",
            Self::Rst(_) => "bodies cut by RST",
            Self::Error(_) => "answers 5xx",
            Self::Reset => "resets before an answer",
            Self::Refused => "requests refused for their header fields",
        }
    }
}
