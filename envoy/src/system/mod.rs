// SPDX-License-Identifier: Apache-2.0
//! What the entry point takes from the operating system: processes, threads, limits, private files and random names.

mod cgroup;
pub mod child;
pub mod joining_thread;
pub mod machine;
pub mod private;
pub mod random;

pub use machine::Machine;
