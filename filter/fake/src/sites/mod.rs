// SPDX-License-Identifier: Apache-2.0
//! Tables of sites and requests for them, made by chance, and an oracle that says which site a request is for. The oracle
//! has nothing from the filter: it decodes, splits and resolves by an algorithm of its own.

mod oracle;
mod request;
mod rng;
mod table;

pub use oracle::Verdict;
pub use request::SiteRequest;
pub use rng::Rng;
pub use table::{Site, Table};
