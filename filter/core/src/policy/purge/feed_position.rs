// SPDX-License-Identifier: Apache-2.0
//! The position of an edge in a purge feed.

use std::fmt;

use crate::hexadecimal;

/// Identity of a feed. Numbers of different feeds are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedId(pub u32);

impl FeedId {
    /// Reads eight hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let number = hexadecimal::number(text.as_bytes()).filter(|_| text.len() == 8)?;
        u32::try_from(number).ok().map(Self)
    }
}

impl fmt::Display for FeedId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:08x}", self.0)
    }
}

/// The last line of a feed that an edge has applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedPosition {
    /// Identity of the feed.
    pub id: FeedId,
    /// Number of the line.
    pub number: u64,
}

impl FeedPosition {
    /// Reads the text that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, number) = text.split_once('.')?;
        Some(Self {
            id: FeedId::parse(id)?,
            number: number.parse().ok()?,
        })
    }
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.id, self.number)
    }
}
