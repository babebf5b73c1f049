// SPDX-License-Identifier: Apache-2.0
//! Changes of a message's headers as values, which the host carries out.

use std::borrow::Cow;

/// One change of a message's headers. Edits are carried out in the order in which they are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderEdit<'a> {
    /// Puts one line in place of all of that name.
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
