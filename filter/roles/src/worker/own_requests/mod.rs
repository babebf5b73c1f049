// SPDX-License-Identifier: Apache-2.0
//! The worker's own requests: calls through the background listener, and the handling of their answers. Also the
//! bounds on requests to the origin that no client reads or that bypass coalescing.

pub mod background;
pub mod call_ends;
pub mod calls;
pub mod created;
pub mod indexes;
pub mod looks;
pub mod mismatches;
pub mod substitutes;
pub mod unread;
pub mod variants;
