// SPDX-License-Identifier: Apache-2.0
//! Random tables of sites, random requests, and an oracle that says which site a request is for. The oracle shares no
//! code with the filter: it decodes, splits and resolves paths by another algorithm.

mod oracle;
mod request;
mod rng;
mod table;

pub use oracle::Verdict;
pub use request::SiteRequest;
pub use rng::Rng;
pub use table::{Site, Table};
