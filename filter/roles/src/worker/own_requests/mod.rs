// SPDX-License-Identifier: Apache-2.0
//! Requests of the worker's own: calls through the background listener, and what their answers lead to; and the bounds on
//! requests that go to the origin for no reader, or by themselves.

pub mod ahead;
pub mod background;
pub mod call_ends;
pub mod calls;
pub mod looks;
pub mod mismatches;
pub mod substitutes;
pub mod unread;
pub mod variants;
