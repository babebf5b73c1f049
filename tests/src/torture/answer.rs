// SPDX-License-Identifier: Apache-2.0
//! What a client got.

use super::clock::Moment;
use crate::http::message::Headers;

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It is whole.
    Whole,
    /// The client has left.
    Left,
    /// The connection or the stream was cut, or there is none.
    Cut(String),
    /// Nothing more came.
    Stuck,
}

/// What came, as far as it came.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, once there is one.
    pub status: Option<u16>,
    /// The fields.
    pub headers: Headers,
    /// The body.
    pub body: Vec<u8>,
    /// How it ended.
    pub end: End,
    /// The answer before it on its connection: of which object, with which status, and when it was asked for.
    pub after: Option<(usize, u16, Moment)>,
    /// Just before it was asked for.
    pub asked: Moment,
    /// When it had ended.
    pub ended: Moment,
}
