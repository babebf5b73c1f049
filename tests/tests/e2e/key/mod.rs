// SPDX-License-Identifier: Apache-2.0
//! Which requests share a stored response: the URL's canonical spelling, and what the response varies by.

mod escaping;
mod vary;
