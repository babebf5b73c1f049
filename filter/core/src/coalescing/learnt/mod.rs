// SPDX-License-Identifier: Apache-2.0
//! The facts that one worker has learned about keys and URLs. Each of them may be forgotten at any time.

pub mod hints;
pub mod varying;
