// SPDX-License-Identifier: Apache-2.0
//! The machine that tests run on: processes, ports, tools, a small disk, a kubelet's mounts, a network, and threads that
//! stand still.

pub mod disk;
pub mod failure;
pub mod kubelet;
pub mod names;
pub mod network;
pub mod ports;
pub mod process;
pub mod stall;
pub mod standstill;
pub mod tool;
