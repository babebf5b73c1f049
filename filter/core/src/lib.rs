// SPDX-License-Identifier: Apache-2.0
//! The pure part of Sluice: no host call, no clock, no I/O.

pub mod policy;
