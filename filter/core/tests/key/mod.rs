// SPDX-License-Identifier: Apache-2.0
//! The key of a request, and the variants of a URL.

mod allocations;
mod bucket;
mod http;
mod properties;
mod vary;
