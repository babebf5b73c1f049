// SPDX-License-Identifier: Apache-2.0
//! The machine that tests run on: processes, ports, a small disk, and what stands still.

pub mod disk;
pub mod failure;
pub mod ports;
pub mod process;
pub mod stall;
pub mod standstill;
pub mod tool;
