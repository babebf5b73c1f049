// SPDX-License-Identifier: Apache-2.0
//! The slicer's requests for slices.

use std::cell::{Cell, RefCell};

use sluice_core::internal_headers::SLICE_HEADER;
use sluice_core::slices::asked::AskedSlice;
use sluice_store::LINK_HEADER;

use crate::abi::{Filter, HeaderMapType};

/// Cluster of the listener for slices.
pub(super) const CLUSTER: &str = "sluice_slice";
/// The headers of EDGE's request that each request for a slice has. The link is the permission for the request.
const COPIED: [&str; 3] = [":authority", ":path", LINK_HEADER];

/// Requests for slices that are under way.
#[derive(Default)]
pub struct Requested {
    headers: RefCell<Vec<(&'static str, Vec<u8>)>>,
    exchanges: RefCell<Vec<(u64, AskedSlice)>>,
    /// The slice whose request is being sent. Envoy may answer it before its number is known.
    beginning: Cell<Option<AskedSlice>>,
}

impl Requested {
    /// Notes the headers of EDGE's request.
    pub fn note_request(&self, filter: Filter) {
        let header = |name| Some((name, filter.header(HeaderMapType::Request, name)?));
        let headers = COPIED.into_iter().filter_map(header);
        self.headers.replace(headers.collect());
    }

    /// Requests a slice by `send`, which returns the number of the request. Returns false if the request cannot be
    /// sent, and no hook has been called for it.
    pub fn ask(
        &self,
        asked: AskedSlice,
        send: impl FnOnce(&[(&str, &[u8])]) -> Option<u64>,
    ) -> bool {
        let noted = self.headers.borrow().clone();
        let asked_text = asked.to_string();
        let mut headers = vec![
            (":method", &b"GET"[..]),
            (":scheme", b"http"),
            (SLICE_HEADER, asked_text.as_bytes()),
        ];
        headers.extend(noted.iter().map(|(name, value)| (*name, value.as_slice())));
        let outer = self.beginning.replace(Some(asked));
        let exchange = send(&headers);
        let has_ended = self.beginning.replace(outer).is_none();
        if let Some(exchange) = exchange.filter(|_| !has_ended) {
            self.exchanges.borrow_mut().push((exchange, asked));
        }
        exchange.is_some() || has_ended
    }

    /// The slice of an exchange.
    pub fn find(&self, exchange: u64) -> Option<AskedSlice> {
        let exchanges = self.exchanges.borrow();
        let found = exchanges.iter().find(|(number, _)| *number == exchange);
        found.map(|(_, asked)| *asked).or(self.beginning.get())
    }

    /// Forgets all exchanges. Their events are not found any more.
    pub fn forget_all(&self) {
        self.exchanges.borrow_mut().clear();
    }

    /// Forgets an exchange that has ended.
    pub fn forget(&self, exchange: u64) {
        let mut exchanges = self.exchanges.borrow_mut();
        let known = exchanges.len();
        exchanges.retain(|(number, _)| *number != exchange);
        if exchanges.len() == known {
            self.beginning.set(None);
        }
    }
}
