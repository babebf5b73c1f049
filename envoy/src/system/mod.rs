// SPDX-License-Identifier: Apache-2.0
//! The functions of the operating system for the entry point: processes, threads, limits, private files and random
//! names.

mod cgroup;
pub mod child;
pub mod joining_thread;
pub mod machine;
pub mod private;
pub mod random;

pub use machine::Machine;
