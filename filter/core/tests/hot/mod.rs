// SPDX-License-Identifier: Apache-2.0
//! The hot tier: objects with frequent requests in memory.

mod sites;
mod support;
mod tier;
