// SPDX-License-Identifier: Apache-2.0
//! Access: the clients that may read a site.

mod decisions;
mod properties;
mod requests;
mod support;
