// SPDX-License-Identifier: Apache-2.0
//! The facts that one worker has learnt of keys and URLs, each of which may be forgotten at any time.

pub mod hints;
pub mod varying;
