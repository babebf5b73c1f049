// SPDX-License-Identifier: Apache-2.0
//! The response that a client received.

use super::clock::Moment;
use crate::http::message::Headers;
use std::time::Duration;

/// How a response ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The whole response was received.
    Whole,
    /// The client has left.
    Left,
    /// The connection or the stream was cut, or there is none.
    Cut(String),
    /// No more bytes were received.
    Stuck,
}

/// The received part of a response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The number of the edge that the client has asked.
    pub edge: usize,
    /// The status, after the head was received.
    pub status: Option<u16>,
    /// The fields.
    pub headers: Headers,
    /// The body.
    pub body: Vec<u8>,
    /// How the response ended.
    pub end: End,
    /// The previous response on its connection: its object, its status, and the time of its request.
    pub after: Option<(usize, u16, Moment)>,
    /// Time just before the request was sent.
    pub asked: Moment,
    /// Time at which the last bytes had been received, or of the request if there are none.
    pub progressed: Moment,
    /// Longest time in which no bytes were received.
    pub silence: Duration,
    /// Time at which the response had ended.
    pub ended: Moment,
}

impl Answer {
    /// Records that bytes have been received, or that the response has ended.
    pub fn progress(&mut self, now: Moment) {
        self.silence = self.silence.max(now - self.progressed);
        self.progressed = now;
    }
}
