// SPDX-License-Identifier: Apache-2.0
//! The requests of one client, and the responses that only this client may get.

mod around;
mod authorization;
mod failures;
mod responses;
