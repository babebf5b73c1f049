// SPDX-License-Identifier: Apache-2.0
//! One request to the origin for all requests for the same key: claims about the coalescer without roles.

mod alone;
mod refreshes;
mod soft_purge;
