// SPDX-License-Identifier: Apache-2.0
//! Changes of a message's headers as values. The host carries them out.

use std::borrow::Cow;

/// One change of a message's headers. Edits are carried out in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderEdit<'a> {
    /// Replaces all lines of that name by one line.
    Set(&'a str, Cow<'a, [u8]>),
    /// Removes all lines of that name.
    Remove(&'a str),
}

impl<'a> HeaderEdit<'a> {
    /// An edit that sets `name` to a text.
    pub fn set(name: &'a str, value: impl Into<Cow<'a, str>>) -> Self {
        Self::Set(name, bytes_of(value.into()))
    }
}

fn bytes_of(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}
