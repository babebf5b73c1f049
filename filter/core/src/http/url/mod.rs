// SPDX-License-Identifier: Apache-2.0
//! URLs: their hosts, their paths, and the rejection of malformed ones (RFC 3986).

pub(crate) mod authority;
pub mod escaping;
pub mod rejection;
pub mod uri_reference;
