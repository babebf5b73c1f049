// SPDX-License-Identifier: Apache-2.0
//! Small filters that do not need a worker of the roles. They are also used if the roles run in VMs.

mod next_turn;
mod once_more;
mod switching;

use crate::abi::{Filter, HeadersStatus};
use once_more::OnceMore;
use switching::Switching;

/// A small filter on one stream.
pub enum Aid {
    /// Resumes each request in a later turn of its worker.
    NextTurn,
    /// Sends a request to an origin again that has closed the connection.
    OnceMore(OnceMore),
    /// Refuses an origin that switches protocols without a request for it.
    Switching(Switching),
}

impl Aid {
    /// The filter of that name in Envoy's configuration, if it is one of these.
    pub fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"next_turn" => Some(Self::NextTurn),
            b"once_more" => Some(Self::OnceMore(OnceMore::default())),
            b"switching" => Some(Self::Switching(Switching::default())),
            _ => None,
        }
    }

    /// Handles the request's headers; the request `ends` with them or has a body.
    pub fn on_request_headers(&self, filter: Filter, ends: bool) -> HeadersStatus {
        match self {
            Self::NextTurn => next_turn::hold(filter),
            Self::OnceMore(once_more) => once_more.observe_request(filter, ends),
            Self::Switching(switching) => switching.observe_request(filter),
        }
    }

    /// Handles the response's headers.
    pub fn on_response_headers(&self, filter: Filter) -> HeadersStatus {
        match self {
            Self::NextTurn => HeadersStatus::Continue,
            Self::OnceMore(once_more) => once_more.observe_response(filter),
            Self::Switching(switching) => switching.observe_response(filter),
        }
    }

    /// Continues in the turn that the filter has requested.
    pub fn on_scheduled(&self, filter: Filter) {
        match self {
            Self::NextTurn => filter.continue_decoding(),
            Self::OnceMore(once_more) => once_more.ask_again(filter),
            Self::Switching(_) => {}
        }
    }
}
