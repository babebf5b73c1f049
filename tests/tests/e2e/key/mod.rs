// SPDX-License-Identifier: Apache-2.0
//! The requests that share a stored response: the URL's canonical spelling, and the fields that the response varies
//! by.

mod escaping;
mod vary;
